//! URIs that more than one server of an endpoint offers.
//!
//! URIs stay as they are, since they also stand inside results and prompts. Only
//! one that two servers have offered is told apart, as `{server}+{uri}`, from then
//! on and for the life of the configuration.

use crate::mcp::{ListKind, ServerId};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// Who offered what, on one endpoint.
#[derive(Default)]
pub struct Shared {
    any: AtomicBool,
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The first server that offered a URI or template.
    first: HashMap<String, usize>,
    shared: HashSet<String>,
}

impl Shared {
    /// Notes the URIs or templates that the server at `place` offers.
    pub fn note<'a>(&self, place: usize, uris: impl Iterator<Item = &'a str>) {
        let mut inner = self.inner.write().expect("no holder of this lock panics");
        for uri in uris {
            match inner.first.get(uri) {
                None => {
                    inner.first.insert(uri.to_owned(), place);
                }
                Some(&first) if first != place => {
                    if inner.shared.insert(uri.to_owned()) {
                        self.any.store(true, Ordering::Release);
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Whether anything is shared at all; cheap.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub fn is_shared(&self, uri: &str) -> bool {
        if !self.any() {
            return false;
        }
        let inner = self.inner.read().expect("no holder of this lock panics");
        inner.shared.contains(uri)
    }

    /// What clients see for a URI of `server`.
    pub fn expose(&self, server: &ServerId, uri: &str) -> String {
        if self.is_shared(uri) {
            format!("{server}+{uri}")
        } else {
            uri.to_owned()
        }
    }

    /// Whether URIs are what tells items of `kind` apart.
    pub fn concerns(kind: ListKind) -> bool {
        matches!(kind, ListKind::Resources | ListKind::Templates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_of_two_servers_is_told_apart_from_then_on() {
        let shared = Shared::default();
        let one = ServerId::new("one").unwrap();
        shared.note(0, ["a://x", "a://y"].into_iter());
        shared.note(0, ["a://x"].into_iter());
        assert!(!shared.any());
        assert_eq!(shared.expose(&one, "a://x"), "a://x");
        shared.note(1, ["a://x"].into_iter());
        assert_eq!(shared.expose(&one, "a://x"), "one+a://x");
        assert_eq!(shared.expose(&one, "a://y"), "a://y");
    }
}
