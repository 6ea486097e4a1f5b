//! Names of tools and prompts: which server a client's name belongs to, and under which name that server knows it.
//!
//! The way back is always a table, never a split of the string; the server's id in
//! front of a name only chooses whose table to look into.

use super::{
    client::Client,
    core::Router,
    endpoint::{Endpoint, Place},
    lists::{Part, Row},
    slot::Slot,
};
use crate::{
    backend::{Fault, Health},
    catalog::{Entry, Listing, Naming},
    mcp::{Era, ListKind, RpcError, names},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Where a name was found.
pub(super) struct Found {
    pub place: usize,
    pub listing: Arc<Listing>,
    at: usize,
}

impl Found {
    fn exactly(place: usize, listing: &Arc<Listing>, name: &str) -> Option<Self> {
        let at = listing.position(name)?;
        Some(Self {
            place,
            listing: listing.clone(),
            at,
        })
    }

    pub fn entry(&self) -> &Entry {
        &self.listing.entries[self.at]
    }
}

impl Router {
    /// Looks a client's name up: in what its own session saw, in what was learned at the start, and last in the lists of the servers that may have it, loaded anew.
    /// An error where a server that may have it cannot be asked.
    pub(super) async fn find_name(
        self: &Arc<Self>,
        client: &Client,
        name: &str,
        kind: ListKind,
    ) -> Result<Option<Found>, RpcError> {
        let endpoint = &self.endpoints[client.endpoint()];
        let places: Vec<usize> = (0..endpoint.places.len())
            .filter(|&place| may_hold(&endpoint.places[place], name))
            .collect();
        for &place in &places {
            let mut known = self.known(client, place, kind);
            if let Some(found) = known.find_map(|l| Found::exactly(place, &l, name)) {
                return Ok(Some(found));
            }
            // Where names are bare the first server that has one goes first, so what it has must be known.
            if places.len() > 1 && self.known(client, place, kind).next().is_none() {
                let found = self.first_look(client, place, name, kind).await;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        let known = places
            .iter()
            .flat_map(|&place| self.known(client, place, kind).map(move |l| (place, l)));
        if let Some(found) = told_apart(endpoint, known, name) {
            return Ok(Some(found));
        }
        self.find_anew(client, &places, name, kind).await
    }

    async fn first_look(
        self: &Arc<Self>,
        client: &Client,
        place: usize,
        name: &str,
        kind: ListKind,
    ) -> Option<Found> {
        let server = &self.endpoints[client.endpoint()].places[place].server;
        if server.health() == Health::Down {
            return None;
        }
        let listing = self.part(&self.slot(client, place), kind).await.listing?;
        Found::exactly(place, &listing, name)
    }

    async fn find_anew(
        self: &Arc<Self>,
        client: &Client,
        places: &[usize],
        name: &str,
        kind: ListKind,
    ) -> Result<Option<Found>, RpcError> {
        let endpoint = &self.endpoints[client.endpoint()];
        let ask = places.iter().map(|&place| {
            let slot = self.slot(client, place);
            async move { (place, self.after_a_miss(&slot, kind).await) }
        });
        let parts = futures_util::future::join_all(ask).await;
        let listings = || {
            let listing = |(place, part): &(usize, Part)| Some((*place, part.listing.clone()?));
            parts.iter().filter_map(listing)
        };
        let exactly = listings().find_map(|(place, l)| Found::exactly(place, &l, name));
        let found = exactly.or_else(|| told_apart(endpoint, listings(), name));
        if found.is_some() {
            return Ok(found);
        }
        // Nobody can tell whether a server that could not be asked has the name.
        match parts.iter().find(|(_, part)| !part.sure) {
            Some((place, _)) => {
                let server = endpoint.places[*place].server.id.as_str();
                Err(Fault::unreachable("no list").answer(server))
            }
            None => Ok(None),
        }
    }

    /// What the server has now: a name that is not in a list may be one of a server that was replaced without a word.
    async fn after_a_miss(self: &Arc<Self>, slot: &Arc<Slot>, kind: ListKind) -> Part {
        match slot.missed(kind) {
            true => self.reload(slot, kind).await,
            false => self.part(slot, kind).await,
        }
    }

    /// The lists that are known of a place: the client's own, then what was learned at the start.
    fn known(
        &self,
        client: &Client,
        place: usize,
        kind: ListKind,
    ) -> impl Iterator<Item = Arc<Listing>> {
        let own = self.slot_if_used(client, place);
        let own = own.and_then(|slot| slot.layer().known(kind));
        let place = &self.endpoints[client.endpoint()].places[place];
        let eras = [Era::Legacy, Era::Modern].into_iter();
        let base = eras.filter_map(move |era| place.base(era).known(kind));
        own.into_iter().chain(base)
    }
}

/// Whether a name can be one of this server's.
fn may_hold(place: &Place, name: &str) -> bool {
    match place.shape.naming {
        Naming::Bare { .. } => true,
        Naming::Prefixed { .. } => is_prefixed(place, name),
    }
}

fn is_prefixed(place: &Place, name: &str) -> bool {
    let rest = name.strip_prefix(place.shape.server.as_str());
    rest.is_some_and(|rest| rest.starts_with(names::SEPARATOR))
}

/// On an endpoint with bare names: a name with its server's prefix, as [`collisions`] gives it; it is accepted whether there is a collision now or not.
fn told_apart(
    endpoint: &Endpoint,
    mut known: impl Iterator<Item = (usize, Arc<Listing>)>,
    name: &str,
) -> Option<Found> {
    known.find_map(|(number, listing)| {
        let place = &endpoint.places[number];
        let Naming::Bare { max } = place.shape.naming else {
            return None;
        };
        if endpoint.places.len() < 2 || !is_prefixed(place, name) {
            return None;
        }
        let server = &place.shape.server;
        let is_it = |e: &Entry| names::expose(server, &e.exposed, max) == name;
        let at = listing.entries.iter().position(is_it)?;
        Some(Found {
            place: number,
            listing,
            at,
        })
    })
}

/// On an endpoint with bare names: the names of those items whose own is one that an earlier server has, by place and item.
pub(super) fn collisions(endpoint: &Endpoint, rows: &[Row<'_>]) -> HashMap<(usize, usize), String> {
    let mut taken = HashSet::new();
    let mut renamed = HashMap::new();
    for (listing, at) in rows {
        let name = listing.entries[*at].exposed.as_str();
        let place = &endpoint.places[listing.place];
        if let Naming::Bare { max } = place.shape.naming
            && !taken.insert(name)
        {
            let server = &place.server.id;
            if endpoint.is_news(&format!("{server} {name}")) {
                tracing::warn!(%server, name, "two servers of an endpoint with bare names have the same name; the later one gets its server's prefix");
            }
            renamed.insert((listing.place, *at), names::expose(server, name, max));
        }
    }
    renamed
}
