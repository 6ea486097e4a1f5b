//! Sizes as `16MiB`, `512KiB`, `1GB`.

use std::{fmt, str::FromStr};

use super::{Written, Wrong};

/// A number of bytes, written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

impl Size {
    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes, as large as memory can address.
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// A whole number of KiB; for the defaults.
    pub(crate) const fn kib(kib: u64) -> Self {
        Size(kib << 10)
    }

    /// A whole number of MiB; for the defaults.
    pub(crate) const fn mib(mib: u64) -> Self {
        Size(mib << 20)
    }
}

impl Written for Size {
    const KIND: &'static str = "size";
    const NOUN: &'static str = "a size";
    const EXAMPLE: &'static str = "16MiB";
    const PATTERN: Option<&'static str> = Some(r"^[0-9]+([KMGT]i?)?B$");
}

impl FromStr for Size {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let wrong = || {
            Wrong::new(
                "not a size",
                "a number with its unit, such as `16MiB`, `512KiB` or `1GB`",
            )
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(wrong());
        }
        let (_, bytes) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(wrong)?;
        let total = number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(*bytes));
        total
            .map(Size)
            .ok_or_else(|| Wrong::new("too large a size", "a smaller one"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = UNITS
            .iter()
            .find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes));
        let (unit, bytes) = largest.unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

impl serde::Serialize for Size {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, bytes) in [
            ("16MiB", 16 << 20),
            ("512KiB", 512 << 10),
            ("1GB", 1_000_000_000),
            ("7B", 7),
            ("0B", 0),
        ] {
            assert_eq!(text.parse::<Size>().unwrap().get(), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "16",
            "MiB",
            "1.5MiB",
            "-1B",
            "16 MiB",
            "16mib",
            "16M",
            "99999999999TiB",
            "1é",
        ] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_size_survives_being_written_and_read(bytes in any::<u64>()) {
            prop_assert_eq!(Size(bytes).to_string().parse::<Size>().unwrap(), Size(bytes));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}") {
            let _ = text.parse::<Size>();
        }
    }
}
