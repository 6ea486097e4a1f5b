//! The four lists of one server on one endpoint, as callers with the same standing see them.

use super::listing::Listing;
use crate::mcp::{Era, ListKind, Revision};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use dashmap::DashMap;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

/// Callers with equal keys see equal lists, until their server says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LayerKey {
    pub endpoint: usize,
    /// Place of the server in the endpoint.
    pub place: usize,
    pub principal: Arc<str>,
    /// What the client declared; some servers list by it.
    pub capabilities: Bytes,
    pub revision: Revision,
    pub era: Era,
}

#[derive(Debug, Default)]
pub struct Layer {
    lists: [ArcSwapOption<Kept>; 4],
    /// How often each list was said to have changed.
    changes: [AtomicU64; 4],
}

/// A list, and how many changes were known when it was asked for.
#[derive(Clone, Debug)]
struct Kept {
    listing: Arc<Listing>,
    changes: u64,
}

impl Layer {
    /// What is known of a list, however old.
    pub fn known(&self, kind: ListKind) -> Option<Arc<Listing>> {
        let kept = self.lists[kind.index()].load();
        kept.as_ref().map(|kept| kept.listing.clone())
    }

    /// What is known of a list, if no change was told since it was asked for.
    pub fn current(&self, kind: ListKind) -> Option<Arc<Listing>> {
        let kept = self.lists[kind.index()].load();
        let kept = kept
            .as_ref()
            .filter(|kept| kept.changes == self.changes(kind));
        kept.map(|kept| kept.listing.clone())
    }

    /// The changes told so far: read before a fetch, so that a change during it leaves the list stale.
    pub fn changes(&self, kind: ListKind) -> u64 {
        self.changes[kind.index()].load(Ordering::Acquire)
    }

    /// Keeps a list that was asked for when `changes` were known; one that was asked for later stays.
    pub fn put(&self, listing: Arc<Listing>, changes: u64) {
        self.lists[listing.kind.index()].rcu(|kept| match kept {
            Some(kept) if kept.changes > changes => Some(kept.clone()),
            _ => Some(Arc::new(Kept {
                listing: listing.clone(),
                changes,
            })),
        });
    }

    /// The server said that a list changed; templates change with resources.
    pub fn changed(&self, kind: ListKind) {
        let note = |kind: ListKind| self.changes[kind.index()].fetch_add(1, Ordering::AcqRel);
        note(kind);
        if kind == ListKind::Resources {
            note(ListKind::Templates);
        }
    }

    /// The server was started anew: any list may be another one.
    pub fn all_changed(&self) {
        for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            self.changed(kind);
        }
    }

    /// Lists of this layer as a new one starts with.
    pub fn copy(&self) -> Self {
        let copy = Self::default();
        for kind in ListKind::ALL {
            let at = kind.index();
            copy.lists[at].store(self.lists[at].load_full());
            copy.changes[at].store(self.changes(kind), Ordering::Release);
        }
        copy
    }
}

/// The layers in use. One that nobody holds any more is gone.
#[derive(Default)]
pub struct Layers {
    shared: DashMap<LayerKey, Weak<Layer>>,
}

impl Layers {
    /// The layer for `key`, made empty if nobody holds one.
    pub fn take(&self, key: LayerKey) -> Arc<Layer> {
        let mut entry = self.shared.entry(key).or_default();
        if let Some(layer) = entry.upgrade() {
            return layer;
        }
        let layer = Arc::new(Layer::default());
        *entry = Arc::downgrade(&layer);
        layer
    }

    /// Marks a list of one server stale for everyone.
    pub fn changed(&self, endpoint: usize, place: usize, kind: ListKind) {
        for entry in &self.shared {
            let key = entry.key();
            if key.endpoint == endpoint
                && key.place == place
                && let Some(layer) = entry.upgrade()
            {
                layer.changed(kind);
            }
        }
    }

    /// Frees the places of layers that are gone.
    pub fn sweep(&self) {
        self.shared.retain(|_, layer| layer.strong_count() > 0);
    }
}
