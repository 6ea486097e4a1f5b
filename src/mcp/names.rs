//! Exposed names of tools and prompts on a merged endpoint.
//!
//! A pure function of server id, original name and the length setting, so that a
//! name is the same on every replica and after every restart. The way back is a
//! table that the catalog keeps, never a split of the string.

use std::sync::Arc;

/// What stands between a server's id and the name it gave.
pub const SEPARATOR: &str = "__";

/// Shortest useful setting: the hash and its mark must fit.
pub const MIN_LENGTH: usize = 16;

/// A configured server's name: `[a-z][a-z0-9-]{0,30}`, so the first `__` after it always ends it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(Arc<str>);

impl ServerId {
    pub fn new(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(|c: char| c.is_ascii_lowercase())?;
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (text.len() <= 31 && rest.chars().all(good)).then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ServerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// `{server}__{name}`, always matching `^[a-zA-Z0-9_-]{1,max}$`.
pub fn expose(server: &ServerId, name: &str, max: usize) -> String {
    legal(&format!("{server}{SEPARATOR}{name}"), name, max)
}

/// A name without a prefix, made legal the same way.
pub fn bare(name: &str, max: usize) -> String {
    legal(name, name, max)
}

/// `wanted` if it is legal; else its legal characters, cut, `_`, and eight characters of the original's hash.
fn legal(wanted: &str, original: &str, max: usize) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !original.is_empty() && wanted.len() <= max && wanted.chars().all(good) {
        return wanted.to_owned();
    }
    let hash = short_hash(original);
    let room = max.max(MIN_LENGTH) - hash.len() - 1;
    let mut out: String = wanted
        .chars()
        .map(|c| if good(c) { c } else { '_' })
        .take(room)
        .collect();
    out.push('_');
    out.push_str(&hash);
    out
}

/// Eight characters, base32 (RFC 4648, lower case), of the text's SHA-256.
fn short_hash(text: &str) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    let first = digest.as_ref()[..5]
        .iter()
        .fold(0u64, |n, &b| n << 8 | u64::from(b));
    (0..8)
        .map(|i| char::from(ALPHABET[(first >> (35 - 5 * i) & 31) as usize]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(text: &str) -> ServerId {
        ServerId::new(text).unwrap()
    }

    #[test]
    fn a_legal_name_stays_and_others_are_marked() {
        assert_eq!(expose(&id("db"), "a__b", 64), "db__a__b");
        let dotted = expose(&id("db"), "admin.list", 64);
        assert!(dotted.starts_with("db__admin_list_"), "{dotted}");
        assert_ne!(expose(&id("db"), "admin/list", 64), dotted);
        assert_eq!(dotted, expose(&id("db"), "admin.list", 64));
    }

    #[test]
    fn ids_are_narrow() {
        for bad in ["", "A", "1a", "a_b", "a b", "é", &"a".repeat(32)] {
            assert!(ServerId::new(bad).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_exposed_name_is_legal_and_unlike_names_differ(
            a in "\\PC{0,80}", b in "[a-z./ ]{0,80}", max in MIN_LENGTH..128,
        ) {
            let server = id("enterprise-database-management");
            for name in [&a, &b] {
                let out = expose(&server, name, max);
                prop_assert!(out.len() <= max && !out.is_empty());
                prop_assert!(out.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            }
            prop_assume!(a != b);
            prop_assert_ne!(expose(&server, &a, max), expose(&server, &b, max));
        }
    }
}
