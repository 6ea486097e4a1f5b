//! API keys: how one looks, how it is made, how it is kept.
//!
//! A key is 256 random bits, so a plain SHA-256 is what has to be stored; slow
//! password hashes exist for secrets that can be guessed.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// What every key starts with, so that leaked ones can be found.
pub const PREFIX: &str = "db_";

/// A fresh key, shown once, and the hash to keep.
pub struct NewKey {
    pub key: String,
    /// Lower-case hexadecimal SHA-256 of the key.
    pub sha256: String,
}

/// Makes a key.
pub fn new_key() -> NewKey {
    let mut bytes = [0u8; 38];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers");
    let (id, secret) = bytes.split_at(6);
    let id: String = id.iter().map(|b| format!("{b:02x}")).collect();
    let key = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
    let sha256 = hash(&key).iter().map(|b| format!("{b:02x}")).collect();
    NewKey { key, sha256 }
}

/// The hash that a key is known by.
pub(super) fn hash(key: &str) -> [u8; 32] {
    let digest = digest(&SHA256, key.as_bytes());
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}
