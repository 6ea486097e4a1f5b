//! Callers of the modern era: no session, so the gateway keeps backends for them.

use super::{
    client::ModernCaller,
    core::Router,
    inlet::Home,
    slot::{Face, Slot},
};
use crate::{
    backend::Holder,
    catalog::LayerKey,
    mcp::{Era, Revision},
};
use bytes::Bytes;
use dashmap::DashMap;
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// What a pooled backend is declared: requests of servers cannot be carried to these callers yet, so nothing is promised.
const CAPABILITIES: &[u8] = b"{}";

/// Slots of the pool that nobody used for this long are let go.
const UNUSED: Duration = Duration::from_secs(600);

type Key = (usize, usize, Arc<str>);

/// The backends of modern callers, by endpoint, place and principal.
#[derive(Default)]
pub struct Pool {
    slots: DashMap<Key, Pooled>,
}

struct Pooled {
    slot: Arc<Slot>,
    used: Mutex<Instant>,
}

impl Pool {
    pub fn find(&self, caller: &ModernCaller, place: usize) -> Option<Arc<Slot>> {
        let key = (caller.endpoint, place, caller.principal.name.clone());
        let pooled = self.slots.get(&key)?;
        *pooled.used.lock().expect(LOCK) = Instant::now();
        Some(pooled.slot.clone())
    }

    fn take(
        &self,
        caller: &ModernCaller,
        place: usize,
        make: impl FnOnce() -> Arc<Slot>,
    ) -> Arc<Slot> {
        let key = (caller.endpoint, place, caller.principal.name.clone());
        let made = || Pooled {
            slot: make(),
            used: Mutex::new(Instant::now()),
        };
        self.slots.entry(key).or_insert_with(made).slot.clone()
    }

    /// Takes out what nobody used lately and nobody holds.
    pub fn sweep(&self) -> Vec<Arc<Slot>> {
        let mut over = Vec::new();
        self.slots.retain(|_, pooled| {
            let unused = pooled.used.lock().expect(LOCK).elapsed() > UNUSED;
            let drop = unused && Arc::strong_count(&pooled.slot) == 1;
            if drop {
                over.push(pooled.slot.clone());
            }
            !drop
        });
        over
    }

    pub fn all(&self) -> Vec<Arc<Slot>> {
        self.slots.iter().map(|p| p.slot.clone()).collect()
    }
}

const LOCK: &str = "no holder of this lock panics";

impl Router {
    pub(super) fn pooled(self: &Arc<Self>, caller: &ModernCaller, place: usize) -> Arc<Slot> {
        if let Some(slot) = self.pool.find(caller, place) {
            return slot;
        }
        self.pool.take(caller, place, || {
            let key = LayerKey {
                endpoint: caller.endpoint,
                place,
                principal: caller.principal.name.clone(),
                capabilities: Bytes::from_static(CAPABILITIES),
                revision: caller.revision,
                era: Era::Modern,
            };
            let face = Face {
                era: Era::Modern,
                revision: Revision::NEWEST_LEGACY,
                client_info: caller.client_info.clone(),
                capabilities: Bytes::from_static(CAPABILITIES),
                holder: Holder {
                    principal: caller.principal.name.clone(),
                    session: None,
                },
            };
            let server = self.endpoints[caller.endpoint].places[place].server.clone();
            let layer = self.layers.take(key);
            let at = (caller.endpoint, place);
            Slot::new(Arc::downgrade(self), at, server, face, Home::Pool, layer)
        })
    }

    pub(super) fn pooled_if_used(&self, caller: &ModernCaller, place: usize) -> Option<Arc<Slot>> {
        self.pool.find(caller, place)
    }
}
