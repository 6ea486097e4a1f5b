//! Durations as `30s`, `5m`, `1h30m`, `500ms`.

use std::{fmt, str::FromStr, time::Duration};

use super::{Written, Wrong};

/// A length of time, written with its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(Duration);

/// The units, largest first: the order in which they must be written.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

impl Period {
    /// The duration.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// A whole number of seconds; for the defaults.
    pub(crate) const fn seconds(seconds: u64) -> Self {
        Period(Duration::from_secs(seconds))
    }
}

impl From<Period> for Duration {
    fn from(period: Period) -> Duration {
        period.0
    }
}

impl Written for Period {
    const KIND: &'static str = "duration";
    const NOUN: &'static str = "a duration";
    const EXAMPLE: &'static str = "30s";
    const PATTERN: Option<&'static str> = Some(r"^([0-9]+(ms|s|m|h|d))+$");
}

impl FromStr for Period {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let wrong = || {
            Wrong::new(
                "not a duration",
                "numbers with units, such as `30s`, `5m`, `1h30m` or `500ms`",
            )
        };
        let too_long = || Wrong::new("too long a duration", "a shorter one");
        let mut rest = text;
        let mut units = UNITS.iter();
        let mut total = 0u64;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let letters = rest[digits..]
                .bytes()
                .take_while(u8::is_ascii_lowercase)
                .count();
            let (number, unit) = rest[..digits + letters].split_at(digits);
            if number.is_empty() || unit.is_empty() {
                return Err(wrong());
            }
            let (_, millis) = units.find(|(name, _)| *name == unit).ok_or_else(wrong)?;
            let part = number
                .parse::<u64>()
                .ok()
                .and_then(|n| n.checked_mul(*millis))
                .ok_or_else(too_long)?;
            total = total.checked_add(part).ok_or_else(too_long)?;
            rest = &rest[digits + letters..];
        }
        if text.is_empty() {
            Err(wrong())
        } else {
            Ok(Period(Duration::from_millis(total)))
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, millis) in UNITS {
            if rest >= millis {
                write!(f, "{}{unit}", rest / millis)?;
                rest %= millis;
            }
        }
        Ok(())
    }
}

impl serde::Serialize for Period {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_with_their_units() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1d", 86_400_000),
            ("0s", 0),
        ] {
            assert_eq!(
                text.parse::<Period>().unwrap().get().as_millis(),
                millis,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "30",
            "s",
            "1.5s",
            "-1s",
            " 1s",
            "1 s",
            "1m1h",
            "1s1s",
            "1S",
            "1y",
            "99999999999999999999s",
            "1sé",
        ] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_duration_survives_being_written_and_read(millis in 0..u64::MAX) {
            let period = Period(Duration::from_millis(millis));
            prop_assert_eq!(period.to_string().parse::<Period>().unwrap(), period);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}") {
            let _ = text.parse::<Period>();
        }
    }
}
