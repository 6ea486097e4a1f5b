//! Knowing the servers before any client asks, and telling clients when one is back.
//!
//! One watcher for each server opens a link without client capabilities, learns
//! era, capabilities and lists, and tries again with growing waits while the server
//! is down. A link to an HTTP server stays open for its announcements; a process
//! is let go.

use super::{
    core::Router,
    inlet::{Home, changed_note},
    lists::fetch,
    slot::{Face, Open, Slot},
};
use crate::{
    backend::{Fault, Health, Holder, Server},
    catalog::Layer,
    mcp::{Era, ListKind, Revision},
    session::Sort,
};
use bytes::Bytes;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How often a watcher looks whether its links still live.
const CHECK_EVERY: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Changes that come within this time are announced as one.
const DEBOUNCE: Duration = Duration::from_millis(30);

/// Changes that are about to be announced.
#[derive(Default)]
pub struct Pending(Mutex<HashSet<(String, ListKind)>>);

impl Pending {
    /// `false` if this change waits already.
    fn put(&self, server: &Server, kind: ListKind) -> bool {
        let mut pending = self.0.lock().expect(LOCK);
        pending.insert((server.id.to_string(), kind))
    }

    fn take(&self, server: &Server, kind: ListKind) {
        let mut pending = self.0.lock().expect(LOCK);
        pending.remove(&(server.id.to_string(), kind));
    }
}

const LOCK: &str = "no holder of this lock panics";

impl Router {
    /// Starts a watcher for every server.
    pub fn watch_servers(self: &Arc<Self>) {
        for server in self.servers.clone() {
            let router = self.clone();
            self.spawn(async move {
                tokio::select! {
                    () = router.shutdown.cancelled() => {}
                    () = router.watch(&server) => {}
                }
            });
        }
    }

    async fn watch(self: &Arc<Self>, server: &Arc<Server>) {
        let mut wait = FIRST_WAIT;
        loop {
            let learned = self.learn(server).await;
            match learned {
                Ok(kept) => {
                    wait = FIRST_WAIT;
                    self.until_down(server, kept).await;
                }
                Err(fault) => {
                    server.note(Health::Down);
                    tracing::debug!(server = %server.id, %fault, wait_ms = wait.as_millis() as u64, "a server cannot be reached; it is tried again");
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Waits for a reason to look again.
    async fn until_down(&self, server: &Arc<Server>, kept: Vec<Arc<Slot>>) {
        let mut health = server.watch();
        let down = health.wait_for(|h| *h == Health::Down);
        let ended = async {
            loop {
                tokio::time::sleep(CHECK_EVERY).await;
                if kept.iter().any(|slot| slot.ready().is_none()) {
                    return;
                }
            }
        };
        tokio::select! {
            _ = down => {}
            () = ended => {}
        }
    }

    /// Learns eras, profiles and lists; returns the slots whose links stay open.
    async fn learn(self: &Arc<Self>, server: &Arc<Server>) -> Result<Vec<Arc<Slot>>, Fault> {
        let mut kept = Vec::new();
        let first = self.watcher(server, Era::Modern);
        let open = first.open().await?;
        let spoke = open.link.profile().era();
        self.learn_lists(&open, server).await?;
        self.keep_or_close(first, &mut kept).await;
        // A server of both eras is met by each client in its own, so the other one is learned too.
        if spoke == Era::Modern && server.speaks(Era::Legacy) != Some(false) {
            let second = self.watcher(server, Era::Legacy);
            if let Ok(open) = second.open().await
                && open.link.profile().era() == Era::Legacy
            {
                self.learn_lists(&open, server).await?;
            }
            self.keep_or_close(second, &mut kept).await;
        }
        server.note(Health::Up);
        server.introduce();
        Ok(kept)
    }

    async fn keep_or_close(&self, slot: Arc<Slot>, kept: &mut Vec<Arc<Slot>>) {
        if slot.server.is_stdio() {
            slot.close().await;
        } else if slot.ready().is_some() {
            kept.push(slot);
        }
    }

    pub(super) fn watcher(self: &Arc<Self>, server: &Arc<Server>, era: Era) -> Arc<Slot> {
        let at = self.places_of(server).next().unwrap_or((0, 0));
        let face = Face {
            era,
            revision: Revision::NEWEST_LEGACY,
            client_info: Bytes::from(format!(
                "{{\"name\":\"drawbridge\",\"version\":\"{}\"}}",
                env!("CARGO_PKG_VERSION")
            )),
            capabilities: Bytes::from_static(b"{}"),
            holder: Holder {
                principal: "drawbridge".into(),
                session: None,
            },
        };
        let layer = Arc::new(Layer::default());
        Slot::new(
            Arc::downgrade(self),
            at,
            server.clone(),
            face,
            Home::Watch,
            layer,
        )
    }

    /// Where a server stands: endpoint and place.
    fn places_of<'a>(&'a self, server: &'a Server) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.endpoints
            .iter()
            .enumerate()
            .filter_map(|(number, endpoint)| Some((number, endpoint.place_of(&server.id)?)))
    }

    async fn learn_lists(
        self: &Arc<Self>,
        open: &Arc<Open>,
        server: &Arc<Server>,
    ) -> Result<(), Fault> {
        for kind in ListKind::ALL {
            self.learn_list(open, server, kind).await?;
        }
        Ok(())
    }

    /// Fetches one list into the base of every endpoint; sessions hear of it if it is new to them.
    async fn learn_list(
        self: &Arc<Self>,
        open: &Arc<Open>,
        server: &Arc<Server>,
        kind: ListKind,
    ) -> Result<(), Fault> {
        let fetched = fetch(open, kind).await?;
        let era = open.link.profile().era();
        for (endpoint, place) in self.places_of(server).collect::<Vec<_>>() {
            let listing = self.shape(endpoint, place, kind, fetched.clone());
            let base = self.endpoints[endpoint].places[place].base(era);
            let before = base.known(kind);
            // An empty list is what everyone takes for granted of a list not known yet.
            let new = match before {
                Some(before) => before.body != listing.body,
                None => !listing.entries.is_empty(),
            };
            base.put(listing.clone());
            if new {
                self.layers.changed(endpoint, place, kind);
                self.announce(endpoint, place, kind);
            }
        }
        Ok(())
    }

    /// Tells the sessions of an endpoint that have no link of their own to the server.
    fn announce(&self, endpoint: usize, place: usize, kind: ListKind) {
        let note = changed_note(kind);
        for session in self.sessions.all() {
            if session.caller.endpoint != endpoint {
                continue;
            }
            let slot = session.state.slot_if_used(place);
            if slot.and_then(|s| s.ready()).is_none() {
                session
                    .streams
                    .standing
                    .push(Sort::Changed(kind), note.clone());
            }
        }
    }

    /// A server said that a list changed.
    pub(super) fn list_changed(self: &Arc<Self>, slot: &Arc<Slot>, kind: ListKind) {
        match &slot.home {
            Home::Session(session) => {
                slot.take_own_layer().changed(kind);
                if !slot.server.is_stdio() {
                    for (endpoint, place) in self.places_of(&slot.server) {
                        self.layers.changed(endpoint, place, kind);
                    }
                }
                if let Some(session) = session.upgrade() {
                    session
                        .streams
                        .standing
                        .push(Sort::Changed(kind), changed_note(kind));
                }
            }
            Home::Pool => slot.layer().changed(kind),
            Home::Watch => self.relearn(slot, kind),
        }
    }

    /// Fetches the changed list first and announces it then, so that who asks on the announcement gets the new one.
    fn relearn(self: &Arc<Self>, slot: &Arc<Slot>, kind: ListKind) {
        if !self.pending.put(&slot.server, kind) {
            return;
        }
        let (router, slot) = (self.clone(), slot.clone());
        self.spawn(async move {
            tokio::time::sleep(DEBOUNCE).await;
            router.pending.take(&slot.server, kind);
            let kinds: &[ListKind] = match kind {
                ListKind::Resources => &[ListKind::Resources, ListKind::Templates],
                _ => std::slice::from_ref(&kind),
            };
            if let Some(open) = slot.ready() {
                for kind in kinds {
                    if let Err(fault) = router.learn_list(&open, &slot.server, *kind).await {
                        tracing::debug!(server = %slot.server.id, %fault, "a changed list could not be fetched");
                    }
                }
            }
            for (endpoint, place) in router.places_of(&slot.server).collect::<Vec<_>>() {
                router.layers.changed(endpoint, place, kind);
                router.announce(endpoint, place, kind);
            }
        });
    }
}
