//! Knowing the servers before any client asks, and telling clients when one is back.
//!
//! One watcher for each server opens a link without client capabilities, learns
//! era, capabilities and lists, and tries again with growing waits while the server
//! is down. A link to an HTTP server stays open for its announcements; a process
//! is let go.

use super::{
    core::Router,
    inlet::Home,
    pages::{crossed, fetch},
    slot::{Face, Open, Slot},
};
use crate::{
    backend::{Fault, Health, Holder, Server},
    catalog::Layer,
    mcp::{Era, ListKind, Revision},
};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};

const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How often a watcher looks whether its links still live.
const CHECK_EVERY: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
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
    pub(super) fn places_of<'a>(
        &'a self,
        server: &'a Server,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.endpoints
            .iter()
            .enumerate()
            .filter_map(|(number, endpoint)| Some((number, endpoint.place_of(&server.id)?)))
    }

    /// Learns all lists at once. One that cannot be had costs the others nothing, as long as any can.
    async fn learn_lists(
        self: &Arc<Self>,
        open: &Arc<Open>,
        server: &Arc<Server>,
    ) -> Result<(), Fault> {
        let learn = ListKind::ALL.map(|kind| async move {
            let learned = self.learn_list(open, server, kind, true).await;
            if let Err(fault) = &learned {
                tracing::warn!(server = %server.id, list = kind.method(), %fault, "a list cannot be had");
            }
            learned
        });
        let learning = futures_util::future::join_all(learn);
        let mut learning = std::pin::pin!(learning);
        let limit = self.settings.list_wait;
        let learned = match tokio::time::timeout(limit, &mut learning).await {
            Ok(learned) => learned,
            Err(_) => {
                // Nobody waits for a list that hangs before getting to know the server.
                server.introduce();
                learning.await
            }
        };
        let good = learned.iter().any(Result::is_ok) && open.link.is_alive();
        match learned.into_iter().find_map(Result::err) {
            Some(fault) if !good => Err(fault),
            _ => Ok(()),
        }
    }

    /// Fetches one list into the base of every endpoint; sessions hear of it if it is new to them, those with a link of their own only if `linked_too`.
    pub(super) async fn learn_list(
        self: &Arc<Self>,
        open: &Arc<Open>,
        server: &Arc<Server>,
        kind: ListKind,
        linked_too: bool,
    ) -> Result<(), Fault> {
        let fetched = fetch(open, kind).await?;
        let spoken = open.link.profile().era();
        // What a client of the other era sees, unless the server speaks to it in its own.
        let other = match spoken {
            Era::Legacy => Era::Modern,
            Era::Modern => Era::Legacy,
        };
        let mut versions = vec![(spoken, fetched.clone())];
        if server.speaks(other) != Some(true) {
            versions.push((other, crossed(fetched, other, kind)));
        }
        for (endpoint, place) in self.places_of(server).collect::<Vec<_>>() {
            let mut newest = None;
            for (era, fetched) in &versions {
                let listing = self.shape(endpoint, place, kind, fetched.clone());
                let base = self.endpoints[endpoint].places[place].base(*era);
                // An empty list is what everyone takes for granted of a list not known yet.
                let new = match base.known(kind) {
                    Some(before) => before.body != listing.body,
                    None => !listing.entries.is_empty(),
                };
                base.put(listing.clone(), base.changes(kind));
                newest = newest.or(new.then_some(listing));
            }
            if let Some(listing) = newest {
                self.layers.changed(endpoint, place, kind);
                self.announce((endpoint, place), kind, Some(&listing), linked_too);
            }
        }
        Ok(())
    }
}
