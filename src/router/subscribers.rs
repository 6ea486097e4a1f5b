//! How many sessions follow a resource, where they share a backend.

use super::slot::Slot;
use crate::config::Isolation;
use std::{collections::HashMap, sync::Mutex};

/// Server, sharing principal (empty where everyone shares), URI.
type Key = (String, String, String);

#[derive(Default)]
pub struct Subscribers {
    counts: Mutex<HashMap<Key, usize>>,
}

impl Subscribers {
    /// A session follows the resource now.
    pub fn join(&self, slot: &Slot, uri: &str) {
        if let Some(key) = key(slot, uri) {
            *self.lock().entry(key).or_insert(0) += 1;
        }
    }

    /// A session left: how many others still follow; `None` where each session has a backend of its own.
    pub fn leave(&self, slot: &Slot, uri: &str) -> Option<usize> {
        let key = key(slot, uri)?;
        let mut counts = self.lock();
        let count = counts.get_mut(&key)?;
        *count -= 1;
        let others = *count;
        if others == 0 {
            counts.remove(&key);
        }
        Some(others)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, usize>> {
        self.counts.lock().expect("no holder of this lock panics")
    }
}

/// `None` where each session has a backend of its own.
fn key(slot: &Slot, uri: &str) -> Option<Key> {
    let principal = match (slot.server.is_stdio(), slot.server.isolation) {
        (true, Isolation::Shared) => String::new(),
        (true, Isolation::Principal) => slot.face.holder.principal.to_string(),
        _ => return None,
    };
    Some((slot.server.id.to_string(), principal, uri.to_owned()))
}
