//! The four lists of one server on one endpoint, as callers with the same standing see them.

use super::listing::Listing;
use crate::mcp::{Era, ListKind, Revision};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use dashmap::DashMap;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
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
    lists: [ArcSwapOption<Listing>; 4],
    stale: [AtomicBool; 4],
}

impl Layer {
    /// What is known of a list, however old.
    pub fn known(&self, kind: ListKind) -> Option<Arc<Listing>> {
        self.lists[kind.index()].load_full()
    }

    pub fn is_stale(&self, kind: ListKind) -> bool {
        self.stale[kind.index()].load(Ordering::Acquire)
    }

    /// Called before a fetch, so that a change during it leaves the list stale.
    pub fn begin(&self, kind: ListKind) {
        self.stale[kind.index()].store(false, Ordering::Release);
    }

    pub fn put(&self, listing: Arc<Listing>) {
        self.lists[listing.kind.index()].store(Some(listing));
    }

    /// The server said that a list changed; templates change with resources.
    pub fn changed(&self, kind: ListKind) {
        let mark = |kind: ListKind| self.stale[kind.index()].store(true, Ordering::Release);
        mark(kind);
        if kind == ListKind::Resources {
            mark(ListKind::Templates);
        }
    }

    /// Lists of this layer as a new one starts with.
    pub fn copy(&self) -> Self {
        let copy = Self::default();
        for kind in ListKind::ALL {
            copy.lists[kind.index()].store(self.known(kind));
            let stale = self.is_stale(kind);
            copy.stale[kind.index()].store(stale, Ordering::Release);
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
