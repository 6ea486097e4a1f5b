//! A range of waits between attempts, as `1s..30s`.

use std::{fmt, str::FromStr};

use super::{Period, Written, Wrong};

/// The wait before the first further attempt and the longest wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Period,
    longest: Period,
}

impl Backoff {
    /// The wait before the first further attempt.
    pub const fn first(self) -> Period {
        self.first
    }

    /// The wait that doubling stops at.
    pub const fn longest(self) -> Period {
        self.longest
    }

    /// One second, doubling up to thirty.
    pub(crate) const fn standard() -> Self {
        Backoff {
            first: Period::seconds(1),
            longest: Period::seconds(30),
        }
    }
}

impl Written for Backoff {
    const KIND: &'static str = "backoff";
    const NOUN: &'static str = "a range of durations";
    const EXAMPLE: &'static str = "1s..30s";
    const PATTERN: Option<&'static str> = Some(r"^([0-9]+(ms|s|m|h|d))+\.\.([0-9]+(ms|s|m|h|d))+$");
}

impl FromStr for Backoff {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let wrong = || {
            Wrong::new(
                "not a range of durations",
                "the first and the longest wait, such as `1s..30s`",
            )
        };
        let (first, longest) = text.split_once("..").ok_or_else(wrong)?;
        let (first, longest) = (first.parse::<Period>(), longest.parse::<Period>());
        let (Ok(first), Ok(longest)) = (first, longest) else {
            return Err(wrong());
        };
        if first.get().is_zero() {
            return Err(Wrong::new(
                "a range that starts at zero",
                "a first wait of at least `1ms`, such as `1s..30s`",
            ));
        }
        if first > longest {
            return Err(Wrong::new(
                "a range that ends before it starts",
                "the shorter wait first, such as `1s..30s`",
            ));
        }
        Ok(Backoff { first, longest })
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.longest)
    }
}

impl serde::Serialize for Backoff {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_ends_in_order() {
        let range: Backoff = "1s..2m".parse().unwrap();
        assert_eq!(
            (range.first(), range.longest()),
            (Period::seconds(1), Period::seconds(120))
        );
        assert_eq!(range.to_string(), "1s..2m");
        for text in [
            "", "1s", "1s..", "..1s", "2s..1s", "0s..1s", "1s...2s", "1s-2s",
        ] {
            assert!(text.parse::<Backoff>().is_err(), "{text}");
        }
    }
}
