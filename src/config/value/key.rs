//! What an API key consists of: its name, its hash, its scopes and the moment it expires.

use std::{
    fmt,
    str::FromStr,
    time::{Duration, SystemTime},
};

use super::{Written, Wrong};

/// The name of an API key, which is the principal's name in logs and limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyName(Box<str>);

/// One scope, as RFC 6749 section 3.3 has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope(Box<str>);

/// The SHA-256 hash of a key, written as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Sha256([u8; 32]);

/// The moment from which something is no longer valid: an RFC 3339 date (its first second, UTC) or date-time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry(SystemTime);

impl KeyName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Written for KeyName {
    const KIND: &'static str = "key-name";
    const NOUN: &'static str = "the name of a key";
    const EXAMPLE: &'static str = "ci";
    const PATTERN: Option<&'static str> = Some("^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$");
}

impl FromStr for KeyName {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let fits = text.len() <= 64
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'@' | b'-'));
        let wrong = || {
            Wrong::new(
                "not a name for a key",
                "up to 64 letters, digits, `.`, `_`, `@` and `-`, such as `ci`",
            )
        };
        if fits {
            Ok(KeyName(text.into()))
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Scope {
    /// The scope.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Written for Scope {
    const KIND: &'static str = "scope";
    const NOUN: &'static str = "a scope";
    const EXAMPLE: &'static str = "tools:read";
}

impl FromStr for Scope {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let fits = !text.is_empty()
            && text
                .bytes()
                .all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
        let wrong = || {
            Wrong::new(
                "not a scope",
                "one word without spaces, such as `tools:read`",
            )
        };
        if fits {
            Ok(Scope(text.into()))
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Sha256 {
    /// The hash.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Written for Sha256 {
    const KIND: &'static str = "sha256";
    const NOUN: &'static str = "a SHA-256 hash";
    const EXAMPLE: &'static str =
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    const PATTERN: Option<&'static str> = Some("^[0-9a-fA-F]{64}$");
}

impl FromStr for Sha256 {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let wrong = || {
            Wrong::new(
                "not a SHA-256 hash",
                "the 64 hexadecimal digits that `drawbridge key new NAME` prints",
            )
        };
        if text.len() != 64 {
            return Err(wrong());
        }
        let mut hash = [0; 32];
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit = |b: u8| char::from(b).to_digit(16);
            let (Some(high), Some(low)) = (digit(digits[0]), digit(digits[1])) else {
                return Err(wrong());
            };
            *byte = u8::try_from(high << 4 | low).expect("two hexadecimal digits are one byte");
        }
        Ok(Sha256(hash))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Expiry {
    /// The moment.
    pub fn at(self) -> SystemTime {
        self.0
    }

    /// Whether the moment has come.
    pub fn is_past(self, now: SystemTime) -> bool {
        self.0 <= now
    }
}

impl Written for Expiry {
    const KIND: &'static str = "expiry";
    const NOUN: &'static str = "a date";
    const EXAMPLE: &'static str = "2027-01-01";
}

impl FromStr for Expiry {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let seconds = seconds_of(text).ok_or_else(|| {
            Wrong::new(
                "not a date",
                "an RFC 3339 date or date-time, such as `2027-01-01` or `2027-01-01T09:00:00Z`",
            )
        })?;
        // A date before 1970 has simply passed.
        let seconds = u64::try_from(seconds).unwrap_or(0);
        Ok(Expiry(
            SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        ))
    }
}

/// Seconds since 1970 of an RFC 3339 date or date-time. Fractions are dropped.
fn seconds_of(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse::<i64>().ok())?
    };
    let is = |at: usize, any: &[u8]| text.as_bytes().get(at).is_some_and(|b| any.contains(b));
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    if !is(4, b"-")
        || !is(7, b"-")
        || !(1..=12).contains(&month)
        || day < 1
        || day > days_in(year, month)
    {
        return None;
    }
    let days = days_since_1970(year, month, day);
    if text.len() == 10 {
        return Some(days * 86_400);
    }
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    // 60 is a leap second.
    if !is(10, b"Tt ") || !is(13, b":") || !is(16, b":") || hour > 23 || minute > 59 || second > 60
    {
        return None;
    }
    let mut zone = text.get(19..)?;
    if let Some(fraction) = zone.strip_prefix('.') {
        zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if zone.len() == fraction.len() {
            return None;
        }
    }
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second - offset_of(zone)?)
}

/// Seconds east of UTC of `Z` or `+hh:mm`.
fn offset_of(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let (hour, minute) = rest.split_once(':')?;
    let two = |part: &str| {
        (part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit()))
            .then(|| part.parse::<i64>().ok())?
    };
    let (hour, minute) = (two(hour)?, two(minute)?);
    (hour < 24 && minute < 60).then_some(sign * (hour * 3_600 + minute * 60))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Howard Hinnant's `days_from_civil`: years begin in March, so that the leap day is their last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_date_times_are_moments() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400),
            ("2027-01-01", 1_798_761_600),
            ("2027-01-01T00:00:00Z", 1_798_761_600),
            ("2027-01-01T02:30:00.25+02:30", 1_798_761_600),
            ("2026-12-31t19:00:00-05:00", 1_798_761_600),
        ] {
            assert_eq!(seconds_of(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "2027",
            "2027-1-1",
            "2027-13-01",
            "2026-02-29",
            "2027-01-01T",
            "2027-01-01T00:00:00",
            "2027-01-01T24:00:00Z",
            "2027-01-01T00:00:00.Z",
            "2027-01-01T00:00:00+1:00",
            "+027-01-01",
            "2027-01-01é",
        ] {
            assert!(text.parse::<Expiry>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_hash_is_64_digits_and_does_not_print() {
        let hash: Sha256 = Sha256::EXAMPLE.parse().unwrap();
        assert_eq!((hash.bytes()[0], hash.bytes()[31]), (0x2c, 0x24));
        assert_eq!(format!("{hash:?}"), "***");
        for text in ["", "ab", &"g".repeat(64), &"é".repeat(32)] {
            assert!(text.parse::<Sha256>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_and_scopes_are_single_words() {
        assert!("ci@team-1".parse::<KeyName>().is_ok() && "tools:read".parse::<Scope>().is_ok());
        assert!(
            ["", "a b", "-a", "é"]
                .iter()
                .all(|text| text.parse::<KeyName>().is_err())
        );
        assert!(
            ["", "a b", "a\"", "é"]
                .iter()
                .all(|text| text.parse::<Scope>().is_err())
        );
    }
}
