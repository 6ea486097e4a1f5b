//! The lists: fetched page by page, kept in layers, merged in configuration order.
//!
//! A server that is down or slow costs its part of a list, never the list: it is
//! answered from what was last known, or without it after a bound, and the missing
//! server is named in the result's `_meta`.

use super::{client::Client, core::Router, inlet::Home, names, pages::fetch, slot::Slot};
use crate::{
    backend::{Fault, Health},
    catalog::{Cursor, Fetched, Listing, Shared},
    mcp::{Era, ListKind, Message, RpcError, code, message::quote},
};
use bytes::Bytes;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// How long a list is taken for fresh where its server announces changes, or where nobody is connected to ask.
const KEPT: Duration = Duration::from_secs(60);
/// How long a list waits for a server that was down a moment ago.
const WAIT_FOR_DOWN: Duration = Duration::from_millis(300);
/// The result's `_meta` member that names servers whose part is missing.
const MISSING: &str = "drawbridge/missingServers";

/// A list that is being asked for.
type Fetching = JoinHandle<Result<Arc<Listing>, Fault>>;

/// An item of a merged list: its server's list, and its place there.
pub(super) type Row<'a> = (&'a Arc<Listing>, usize);

/// One server's part of a list.
pub(super) struct Part {
    /// `None` where nothing was ever known of it.
    pub listing: Option<Arc<Listing>>,
    /// Whether it can be taken for what the server has now.
    pub sure: bool,
}

impl Part {
    pub fn sure(listing: Arc<Listing>) -> Self {
        Self {
            listing: Some(listing),
            sure: true,
        }
    }
}

impl Router {
    /// A merged list, or a page of it.
    pub(super) async fn list(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
        kind: ListKind,
    ) -> Result<Bytes, RpcError> {
        let id = message.id().unwrap_or(b"null");
        let cursor = match message.inner().cursor {
            None => None,
            Some(span) => {
                let read = message.text(span).and_then(|t| Cursor::read(&t));
                Some(read.ok_or_else(|| {
                    RpcError::new(code::INVALID_PARAMS, "the cursor is not one of ours")
                })?)
            }
        };
        let endpoint = &self.endpoints[client.endpoint()];
        let parts = self.parts(client, kind).await;
        let mut missing = Vec::new();
        let mut ttl = KEPT;
        let mut rows: Vec<Row<'_>> = Vec::new();
        for (part, place) in parts.iter().zip(&endpoint.places) {
            let server = &place.server;
            if server.health() == Health::Down || part.listing.is_none() {
                missing.push(server.id.as_str());
            }
            if !part.sure {
                ttl = Duration::ZERO;
            }
            let Some(listing) = &part.listing else {
                continue;
            };
            ttl = ttl.min(self.ttl_of(server, listing, client.era()));
            rows.extend((0..listing.entries.len()).map(|at| (listing, at)));
        }
        let start = cursor.map_or(0, |c| self.after(client, &rows, &c));
        let rest = &rows[start.min(rows.len())..];
        let (now, later) = rest.split_at(rest.len().min(endpoint.page_size));
        let next = match (now.last(), later.is_empty()) {
            (Some((listing, at)), false) => Some(Cursor {
                server: endpoint.places[listing.place].server.id.to_string(),
                original: listing.entries[*at].original.clone(),
                place: *at,
            }),
            _ => None,
        };
        let body = match start == 0 && later.is_empty() {
            true => self.whole_body(client, kind, &rows, &parts),
            false => self.body(client, kind, &rows, now),
        };
        let ttl = if missing.is_empty() {
            ttl.as_millis() as u64
        } else {
            0
        };
        let next = next.map(|c| c.write());
        Ok(page(
            client.era(),
            id,
            kind,
            &body,
            next.as_deref(),
            &missing,
            ttl,
        ))
    }

    /// How long a part may be kept, as far as its server says.
    fn ttl_of(&self, server: &crate::backend::Server, listing: &Listing, era: Era) -> Duration {
        if let Some(ttl) = listing.ttl {
            return ttl;
        }
        let announces = |p: Arc<crate::backend::Profile>| {
            p.has(&format!("{}.listChanged", listing.kind.capability()))
        };
        match server.profile_for(era).is_some_and(announces) {
            true => KEPT,
            false => Duration::ZERO,
        }
    }

    /// Where the walk goes on: after the cursor's item, or where it stood if it is gone.
    fn after(&self, client: &Client, rows: &[(&Arc<Listing>, usize)], cursor: &Cursor) -> usize {
        let endpoint = &self.endpoints[client.endpoint()];
        let server = |place: usize| endpoint.places[place].server.id.as_str();
        let exact = rows.iter().position(|(l, at)| {
            server(l.place) == cursor.server && l.entries[*at].original == cursor.original
        });
        if let Some(at) = exact {
            return at + 1;
        }
        let order = |place: usize| (0..place).len();
        let stood = endpoint
            .places
            .iter()
            .position(|p| p.server.id.as_str() == cursor.server);
        let Some(stood) = stood else {
            return rows.len();
        };
        let later = |(l, at): &(&Arc<Listing>, usize)| {
            order(l.place) > stood || (l.place == stood && *at >= cursor.place)
        };
        rows.iter().position(later).unwrap_or(rows.len())
    }

    /// All items with commas between, of whole lists where none of them needs another name.
    fn whole_body(
        &self,
        client: &Client,
        kind: ListKind,
        rows: &[Row<'_>],
        parts: &[Part],
    ) -> Bytes {
        let endpoint = &self.endpoints[client.endpoint()];
        let told_apart = endpoint.shared.any() && Shared::concerns(kind);
        if told_apart || endpoint.has_bare_names(kind) {
            return self.body(client, kind, rows, rows);
        }
        let bodies = parts.iter().filter_map(|p| p.listing.as_ref());
        let full = bodies.map(|l| &l.body).filter(|b| !b.is_empty());
        crate::catalog::join(full)
    }

    /// The items of `page`, a part of all `rows`, with commas between.
    fn body(&self, client: &Client, kind: ListKind, rows: &[Row<'_>], page: &[Row<'_>]) -> Bytes {
        let endpoint = &self.endpoints[client.endpoint()];
        let collisions = match endpoint.has_bare_names(kind) {
            true => names::collisions(endpoint, rows),
            false => HashMap::new(),
        };
        let piece = |(listing, at): &Row<'_>| {
            let entry = &listing.entries[*at];
            if let Some(name) = collisions.get(&(listing.place, *at)) {
                return entry.json_as(name);
            }
            if Shared::concerns(kind) && endpoint.shared.is_shared(&entry.original) {
                let server = &endpoint.places[listing.place].server.id;
                return entry.json_as(&endpoint.shared.expose(server, &entry.original));
            }
            entry.json.clone()
        };
        let pieces: Vec<Bytes> = page.iter().map(piece).collect();
        crate::catalog::join(pieces.iter())
    }

    /// Every server's part, all asked at once.
    pub(super) async fn parts(self: &Arc<Self>, client: &Client, kind: ListKind) -> Vec<Part> {
        let places = self.endpoints[client.endpoint()].places.len();
        let ask = (0..places).map(|place| {
            let slot = self.slot(client, place);
            async move { self.part(&slot, kind).await }
        });
        futures_util::future::join_all(ask).await
    }

    /// One server's part: what is known of it, as long as that may be taken for true, else asked for.
    pub(super) async fn part(self: &Arc<Self>, slot: &Arc<Slot>, kind: ListKind) -> Part {
        match self.fresh(slot, kind) {
            Some(listing) => Part::sure(listing),
            None => self.reload(slot, kind).await,
        }
    }

    /// One server's part, asked for within the bound; the fetch goes on after it, and the session hears of its end.
    pub(super) async fn reload(self: &Arc<Self>, slot: &Arc<Slot>, kind: ListKind) -> Part {
        let known = || Part {
            listing: slot
                .layer()
                .known(kind)
                .or_else(|| self.base_of(slot, kind)),
            sure: false,
        };
        if slot.is_behind(kind) {
            return known();
        }
        let mut fetching = {
            let (router, slot) = (self.clone(), slot.clone());
            self.spawn(async move { router.fetch_listing(&slot, kind).await })
        };
        match tokio::time::timeout(self.list_limit(&slot.server), &mut fetching).await {
            Ok(Ok(Ok(listing))) => Part::sure(listing),
            Ok(_) => known(),
            Err(_) => {
                self.wait_on(slot, kind, fetching);
                known()
            }
        }
    }

    /// Waits for a list that did not come in time; until it is there, nobody else waits for it.
    fn wait_on(self: &Arc<Self>, slot: &Arc<Slot>, kind: ListKind, fetching: Fetching) {
        slot.set_overdue(kind, true);
        let (router, slot) = (self.clone(), slot.clone());
        self.spawn(async move {
            let fetched = fetching.await;
            slot.set_overdue(kind, false);
            if matches!(fetched, Ok(Ok(_)))
                && let Home::Session(session) = &slot.home
                && let Some(session) = session.upgrade()
            {
                router.tell_changed(&session, kind);
            }
        });
    }

    /// How long a list waits for one server. One that has not come up since the start is waited for once and not in every list again.
    pub(super) fn list_limit(&self, server: &crate::backend::Server) -> Duration {
        let longest = self.settings.list_wait;
        let shortest = longest.min(WAIT_FOR_DOWN);
        match server.health() {
            Health::Up => longest,
            Health::Down => shortest,
            Health::Starting => longest.saturating_sub(self.started.elapsed()).max(shortest),
        }
    }

    fn base_of(&self, slot: &Slot, kind: ListKind) -> Option<Arc<Listing>> {
        let place = &self.endpoints[slot.endpoint].places[slot.place];
        place.base(slot.face.era).known(kind)
    }

    /// What is known, if it may still be taken for true.
    pub(super) fn fresh(&self, slot: &Arc<Slot>, kind: ListKind) -> Option<Arc<Listing>> {
        let layer = slot.layer();
        let listing = layer.current(kind)?;
        let ttl = match (slot.ready(), listing.ttl) {
            (_, Some(ttl)) => ttl,
            (None, None) => KEPT,
            (Some(open), None) => {
                let profile = open.link.profile();
                match profile.has(&format!("{}.listChanged", kind.capability())) {
                    true => KEPT,
                    false => Duration::ZERO,
                }
            }
        };
        (listing.fetched.elapsed() < ttl).then_some(listing)
    }

    /// Asks the server and keeps the answer in the slot's layer.
    async fn fetch_listing(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        kind: ListKind,
    ) -> Result<Arc<Listing>, Fault> {
        let mut open = slot.take().await?;
        let layer = slot.layer();
        let mut changes = layer.changes(kind);
        let mut fetched = fetch(&open, kind).await;
        if matches!(fetched, Err(Fault::SessionLost)) {
            slot.forget(&open);
            open = slot.take().await?;
            changes = layer.changes(kind);
            fetched = fetch(&open, kind).await;
        }
        slot.done(&open).await;
        let listing = self.shape(slot.endpoint, slot.place, kind, fetched?);
        layer.put(listing.clone(), changes);
        Ok(listing)
    }

    /// A fetched list as an endpoint shows it.
    pub(super) fn shape(
        &self,
        endpoint: usize,
        place: usize,
        kind: ListKind,
        fetched: Fetched,
    ) -> Arc<Listing> {
        let endpoint = &self.endpoints[endpoint];
        let listing = Listing::build(kind, place, &endpoint.places[place].shape, fetched);
        if Shared::concerns(kind) && endpoint.places.len() > 1 {
            let uris = listing.entries.iter().map(|e| e.original.as_str());
            endpoint.shared.note(place, uris);
        }
        Arc::new(listing)
    }
}

/// A list result.
pub(super) fn page(
    era: Era,
    id: &[u8],
    kind: ListKind,
    body: &[u8],
    next: Option<&str>,
    missing: &[&str],
    ttl_ms: u64,
) -> Bytes {
    let mut out = Vec::with_capacity(body.len() + id.len() + 160);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    out.extend_from_slice(b",\"result\":{\"");
    out.extend_from_slice(kind.member().as_bytes());
    out.extend_from_slice(b"\":[");
    out.extend_from_slice(body);
    out.push(b']');
    if let Some(next) = next {
        out.extend_from_slice(format!(",\"nextCursor\":{}", quote(next)).as_bytes());
    }
    if era == Era::Modern {
        out.extend_from_slice(
            format!(",\"resultType\":\"complete\",\"ttlMs\":{ttl_ms},\"cacheScope\":\"private\"")
                .as_bytes(),
        );
    }
    if !missing.is_empty() {
        let names = serde_json::json!({ MISSING: missing });
        out.extend_from_slice(format!(",\"_meta\":{names}").as_bytes());
    }
    out.extend_from_slice(b"}}");
    out.into()
}
