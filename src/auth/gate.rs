//! The one decision at the door: which principal a credential proves.

use super::key::hash;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use std::{sync::Arc, time::SystemTime};

/// Who a caller has proved to be. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Stable identity: `key:NAME`, or `anonymous`.
    pub name: Arc<str>,
    pub scopes: Arc<[String]>,
}

/// Why a caller is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No credential was shown.
    Missing,
    /// The credential is not one of ours, or not any more. Which of the two is not told.
    Invalid,
}

struct Key {
    principal: Principal,
    sha256: [u8; 32],
    expires: Option<SystemTime>,
}

/// What the operator configured.
pub struct Gate {
    /// `None` lets everyone in as `anonymous`.
    keys: Option<Vec<Key>>,
    anonymous: Principal,
}

impl Gate {
    /// A gate that everyone passes.
    pub fn open() -> Self {
        Self {
            keys: None,
            anonymous: Principal {
                name: "anonymous".into(),
                scopes: [].into(),
            },
        }
    }

    /// A gate that asks for a key and has none yet.
    pub fn closed() -> Self {
        Self {
            keys: Some(Vec::new()),
            ..Self::open()
        }
    }

    /// Lets the holder of the key with this SHA-256 in under `name`.
    pub fn add(
        &mut self,
        name: &str,
        sha256: [u8; 32],
        scopes: Vec<String>,
        expires: Option<SystemTime>,
    ) {
        let principal = Principal {
            name: format!("key:{name}").into(),
            scopes: scopes.into(),
        };
        let key = Key {
            principal,
            sha256,
            expires,
        };
        self.keys.get_or_insert_default().push(key);
    }

    /// Lets the holder of `token` in under `name`.
    pub fn add_token(&mut self, name: &str, token: &str) {
        self.add(name, hash(token), Vec::new(), None);
    }

    /// Whether callers have to show something.
    pub fn asks(&self) -> bool {
        self.keys.is_some()
    }

    /// Checks a credential. Every key is compared, in constant time, so that the time taken tells nothing.
    pub fn admit(&self, credential: Option<&str>) -> Result<Principal, Denied> {
        let Some(keys) = &self.keys else {
            return Ok(self.anonymous.clone());
        };
        let shown = hash(credential.ok_or(Denied::Missing)?);
        let mut found = None;
        for key in keys {
            if verify_slices_are_equal(&key.sha256, &shown).is_ok() {
                found = Some(key);
            }
        }
        let valid = |k: &&Key| k.expires.is_none_or(|at| SystemTime::now() < at);
        let key = found.filter(valid).ok_or(Denied::Invalid)?;
        Ok(key.principal.clone())
    }
}

impl Principal {
    /// The scopes of `needed` that are not held.
    pub fn lacks<'a>(&self, needed: &'a [String]) -> Vec<&'a str> {
        needed
            .iter()
            .filter(|s| !self.scopes.contains(s))
            .map(String::as_str)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::new_key;
    use std::time::Duration;

    fn bytes(hex: &str) -> [u8; 32] {
        let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
        std::array::from_fn(byte)
    }

    #[test]
    fn a_key_opens_under_its_name_and_nothing_else_does() {
        let (ci, old) = (new_key(), new_key());
        let mut gate = Gate::closed();
        gate.add("ci", bytes(&ci.sha256), vec!["read".into()], None);
        let past = SystemTime::now() - Duration::from_secs(1);
        gate.add("old", bytes(&old.sha256), vec![], Some(past));
        let principal = gate.admit(Some(&ci.key)).unwrap();
        assert_eq!(&*principal.name, "key:ci");
        assert_eq!(principal.lacks(&["read".into(), "write".into()]), ["write"]);
        assert_eq!(gate.admit(Some(&old.key)), Err(Denied::Invalid));
        assert_eq!(gate.admit(Some(&ci.sha256)), Err(Denied::Invalid));
        assert_eq!(gate.admit(None), Err(Denied::Missing));
    }

    #[test]
    fn an_open_gate_knows_one_principal() {
        assert_eq!(&*Gate::open().admit(Some("x")).unwrap().name, "anonymous");
    }

    #[test]
    fn keys_differ_and_can_be_recognised() {
        let key = new_key();
        assert!(key.key.starts_with("db_") && key.key.len() > 50);
        assert_ne!(key.key, new_key().key);
    }
}
