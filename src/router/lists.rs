//! The lists: fetched page by page, kept in layers, merged in configuration order.
//!
//! A server that is down or slow costs its part of a list, never the list: it is
//! answered from what was last known, or without it after a bound, and the missing
//! server is named in the result's `_meta`.

use super::{
    client::Client,
    core::Router,
    inlet::{Home, changed_note},
    slot::{Open, Slot},
};
use crate::{
    backend::{Fault, Health},
    bridge,
    catalog::{Cursor, Fetched, Listing, Shared},
    mcp::{
        Era, Kind, ListKind, Message, RpcError, code,
        list::{self, Item},
        message::quote,
        scan::MAX_DEPTH,
    },
    session::Sort,
};
use bytes::Bytes;
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Pages followed at most, against a server that never ends.
pub(super) const MAX_PAGES: usize = 1_000;
/// Items of one list at most.
const MAX_ITEMS: usize = 100_000;
/// How long a list is taken for fresh where its server announces changes, or where nobody is connected to ask.
const KEPT: Duration = Duration::from_secs(60);
/// How long a list waits for a server that was down a moment ago.
const WAIT_FOR_DOWN: Duration = Duration::from_millis(300);
/// The result's `_meta` member that names servers whose part is missing.
const MISSING: &str = "drawbridge/missingServers";

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
        if endpoint.places.iter().all(|p| {
            let profile = p.server.profile_for(client.era());
            profile.is_some_and(|p| !p.has(kind.capability()))
        }) && !endpoint.places.is_empty()
        {
            let text = format!("Method not found: {}", kind.method());
            return Err(RpcError::new(code::METHOD_NOT_FOUND, text));
        }
        let lists = self.listings(client, kind).await;
        let mut missing = Vec::new();
        let mut ttl = KEPT;
        let mut rows: Vec<(&Arc<Listing>, usize)> = Vec::new();
        for (place, listing) in &lists {
            let server = &endpoint.places[*place].server;
            if server.health() == Health::Down || listing.is_none() {
                missing.push(server.id.as_str());
            }
            let Some(listing) = listing else { continue };
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
        let body = self.body(client, kind, now, start == 0 && later.is_empty(), &lists);
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

    /// The items with commas between: whole bodies where a whole list goes out, single items else.
    fn body(
        &self,
        client: &Client,
        kind: ListKind,
        rows: &[(&Arc<Listing>, usize)],
        whole: bool,
        lists: &[(usize, Option<Arc<Listing>>)],
    ) -> Bytes {
        let endpoint = &self.endpoints[client.endpoint()];
        let bare = endpoint.places.len() > 1
            && endpoint
                .places
                .iter()
                .all(|p| p.shape.naming == crate::catalog::Naming::Bare)
            && matches!(kind, ListKind::Tools | ListKind::Prompts);
        if bare {
            return unique(endpoint, rows);
        }
        let told_apart = endpoint.shared.any() && Shared::concerns(kind);
        if whole && !told_apart {
            let bodies = lists.iter().filter_map(|(_, l)| l.as_ref());
            let full = bodies.map(|l| &l.body).filter(|b| !b.is_empty());
            return crate::catalog::join(full);
        }
        let piece = |(listing, at): &(&Arc<Listing>, usize)| {
            let entry = &listing.entries[*at];
            if told_apart && endpoint.shared.is_shared(&entry.original) {
                let server = &endpoint.places[listing.place].server.id;
                return entry.json_as(&endpoint.shared.expose(server, &entry.original));
            }
            entry.json.clone()
        };
        let pieces: Vec<Bytes> = rows.iter().map(piece).collect();
        crate::catalog::join(pieces.iter())
    }

    /// Every server's part, all asked at once.
    pub(super) async fn listings(
        self: &Arc<Self>,
        client: &Client,
        kind: ListKind,
    ) -> Vec<(usize, Option<Arc<Listing>>)> {
        let places = self.endpoints[client.endpoint()].places.len();
        let ask = (0..places).map(|place| {
            let slot = self.slot(client, place);
            async move { (place, self.listing_within(&slot, kind).await) }
        });
        futures_util::future::join_all(ask).await
    }

    /// One server's part, within the bound; the fetch goes on after it, and the session hears of its end.
    pub(super) async fn listing_within(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        kind: ListKind,
    ) -> Option<Arc<Listing>> {
        if let Some(listing) = self.fresh(slot, kind) {
            return Some(listing);
        }
        let limit = match slot.server.health() {
            Health::Down => self.settings.list_wait.min(WAIT_FOR_DOWN),
            _ => self.settings.list_wait,
        };
        let late = Arc::new(AtomicBool::new(false));
        let task = {
            let (router, slot, late) = (self.clone(), slot.clone(), late.clone());
            self.spawn(async move {
                let listing = router.fetch_listing(&slot, kind).await;
                if late.load(Ordering::Acquire)
                    && listing.is_ok()
                    && let Home::Session(session) = &slot.home
                    && let Some(session) = session.upgrade()
                {
                    session
                        .streams
                        .standing
                        .push(Sort::Changed(kind), changed_note(kind));
                }
                listing
            })
        };
        match tokio::time::timeout(limit, task).await {
            Ok(Ok(Ok(listing))) => Some(listing),
            Ok(_) => slot
                .layer()
                .known(kind)
                .or_else(|| self.base_of(slot, kind)),
            Err(_) => {
                late.store(true, Ordering::Release);
                slot.layer()
                    .known(kind)
                    .or_else(|| self.base_of(slot, kind))
            }
        }
    }

    fn base_of(&self, slot: &Slot, kind: ListKind) -> Option<Arc<Listing>> {
        let place = &self.endpoints[slot.endpoint].places[slot.place];
        place.base(slot.face.era).known(kind)
    }

    /// What is known, if it may still be taken for true.
    fn fresh(&self, slot: &Arc<Slot>, kind: ListKind) -> Option<Arc<Listing>> {
        let layer = slot.layer();
        let listing = layer.known(kind).filter(|_| !layer.is_stale(kind))?;
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
        let open = slot.open().await?;
        let layer = slot.layer();
        layer.begin(kind);
        let fetched = match fetch(&open, kind).await {
            Err(Fault::SessionLost) => {
                slot.forget(&open);
                let again = slot.open().await?;
                fetch(&again, kind).await
            }
            other => other,
        };
        if fetched.is_err() {
            layer.changed(kind);
        }
        let listing = self.shape(slot.endpoint, slot.place, kind, fetched?);
        layer.put(listing.clone());
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

/// On an endpoint with bare names: a name that an earlier server has is told apart by its server's prefix.
fn unique(endpoint: &super::endpoint::Endpoint, rows: &[(&Arc<Listing>, usize)]) -> Bytes {
    let mut seen = HashSet::new();
    let mut pieces = Vec::with_capacity(rows.len());
    for (listing, at) in rows {
        let entry = &listing.entries[*at];
        let server = &endpoint.places[listing.place].server.id;
        if seen.insert(entry.exposed.as_str()) {
            pieces.push(entry.json.clone());
            continue;
        }
        tracing::warn!(%server, name = %entry.exposed, "two servers of an endpoint with bare names have the same name; the later one gets its server's prefix");
        let name = crate::mcp::names::expose(server, &entry.exposed, 64);
        pieces.push(entry.json_as(&name));
    }
    crate::catalog::join(pieces.iter())
}

/// All pages of one list.
pub(super) async fn fetch(open: &Arc<Open>, kind: ListKind) -> Result<Fetched, Fault> {
    let profile = open.link.profile();
    let mut fetched = Fetched {
        items: Vec::new(),
        ttl: None,
        public: false,
        strict_params: profile.era() == Era::Modern,
    };
    if !profile.has(kind.capability()) {
        return Ok(fetched);
    }
    let mut cursors = HashSet::new();
    let mut params = "{}".to_owned();
    for _ in 0..MAX_PAGES {
        let answer = open.ask(kind.method(), &params).await?;
        if answer.kind() == Kind::Error {
            if answer.error_code() == Some(code::METHOD_NOT_FOUND) {
                return Ok(fetched);
            }
            return Err(Fault::Declined(crate::backend::error_text(&answer)));
        }
        take_page(&mut fetched, &answer, kind);
        let next = answer.inner().next_cursor.and_then(|s| answer.text(s));
        let Some(next) = next.filter(|n| !n.is_empty()) else {
            break;
        };
        if !cursors.insert(next.to_string()) || fetched.items.len() > MAX_ITEMS {
            tracing::warn!(
                method = kind.method(),
                "a server's list does not end; what came so far is used"
            );
            break;
        }
        params = format!("{{\"cursor\":{}}}", quote(&next));
    }
    let mut seen = HashSet::new();
    fetched.items.retain(|item| seen.insert(item.key.clone()));
    if open.inlet.face.era == Era::Legacy && profile.era() == Era::Modern && kind == ListKind::Tools
    {
        fetched.items.iter_mut().for_each(for_legacy);
    }
    Ok(fetched)
}

fn take_page(fetched: &mut Fetched, answer: &Message, kind: ListKind) {
    let inner = answer.inner();
    let ttl = inner
        .ttl
        .and_then(|s| std::str::from_utf8(answer.raw(s)).ok()?.parse().ok());
    if let Some(ttl) = ttl.map(Duration::from_millis) {
        fetched.ttl = Some(fetched.ttl.map_or(ttl, |t| t.min(ttl)));
    }
    fetched.public = inner.cache_scope.and_then(|s| answer.text(s)).as_deref() == Some("public");
    let Some(result) = answer.payload_span() else {
        return;
    };
    match list::items(&answer.slice(result), kind, MAX_DEPTH) {
        Ok((items, unusable)) => {
            if unusable > 0 {
                tracing::warn!(
                    method = kind.method(),
                    unusable,
                    "a server lists things without a name; they are left out"
                );
            }
            fetched.items.extend(items);
        }
        Err(error) => tracing::warn!(%error, "a server's list cannot be read"),
    }
}

fn for_legacy(item: &mut Item) {
    let Some(text) = bridge::legacy_tool(&item.json) else {
        return;
    };
    let json = Bytes::from(text);
    if let Some(span) = list::member(&json, "name", MAX_DEPTH) {
        item.json = json;
        item.key_span = span;
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
