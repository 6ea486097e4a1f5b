//! Which server a request is for, and under which name that server knows the target.

use super::{client::Client, core::Router, endpoint::Endpoint, slot::Slot};
use crate::{
    backend::Fault,
    catalog::Listing,
    mcp::{
        Era, ListKind, Message, Method, RpcError, Span, Target, code,
        list::member,
        message::{quote, string},
        names::SEPARATOR,
        param::Param,
        scan::MAX_DEPTH,
        template::scheme,
    },
};
use bytes::Bytes;
use std::sync::Arc;

/// Where a request goes and what changes on the way.
#[derive(Debug, Default)]
pub struct Route {
    pub place: usize,
    pub changes: Vec<(Span, Bytes)>,
    /// The target as the server knows it, decoded: `Mcp-Name`.
    pub name: Option<String>,
    pub params: Vec<Param>,
    /// Fixed parameters to put into the arguments.
    pub fixed: Option<serde_json::Map<String, serde_json::Value>>,
}

/// One text for what is unknown, hidden or forbidden: an answer must not tell which.
fn unknown(what: &str, name: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("Unknown {what}: {name}"))
}

fn missing(member: &str) -> RpcError {
    RpcError::new(
        code::INVALID_PARAMS,
        format!("`{member}` is missing or not a string"),
    )
}

impl Router {
    /// Finds the server of a request on an endpoint that merges or filters.
    pub(super) async fn route(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
    ) -> Result<Route, RpcError> {
        match message.row().target {
            Target::Tool => self.route_name(client, message, ListKind::Tools).await,
            Target::Prompt => self.route_name(client, message, ListKind::Prompts).await,
            Target::Uri => {
                let span = message.inner().uri.ok_or_else(|| missing("uri"))?;
                let uri = message
                    .text(span)
                    .ok_or_else(|| missing("uri"))?
                    .into_owned();
                let (place, original) = self.route_uri(client, &uri, message.method()).await?;
                Ok(renamed(place, span, &uri, original))
            }
            Target::Reference => self.route_reference(client, message).await,
            _ => self.route_only(client, message),
        }
    }

    fn route_only(&self, client: &Client, message: &Message) -> Result<Route, RpcError> {
        let endpoint = &self.endpoints[client.endpoint()];
        if message.method() == Method::Listen && endpoint.places.len() != 1 {
            return Err(RpcError::new(
                code::NOT_CARRIED,
                "subscriptions are not carried on an endpoint with several servers yet",
            ));
        }
        match endpoint.only() {
            Some(_) => Ok(Route::default()),
            None => Err(RpcError::new(
                code::METHOD_NOT_FOUND,
                format!("Method not found: {}", message.method_name()),
            )),
        }
    }

    async fn route_name(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
        kind: ListKind,
    ) -> Result<Route, RpcError> {
        let span = message.inner().name.ok_or_else(|| missing("name"))?;
        let name = message.text(span).ok_or_else(|| missing("name"))?;
        let what = if kind == ListKind::Tools {
            "tool"
        } else {
            "prompt"
        };
        let (place, listing, at) = self
            .find_name(client, &name, kind)
            .await?
            .ok_or_else(|| unknown(what, &name))?;
        let entry = &listing.entries[at];
        let mut route = renamed(place, span, &name, entry.original.clone());
        route.params = entry.params.clone();
        if kind == ListKind::Tools {
            let shape = &self.endpoints[client.endpoint()].places[place].shape;
            route.fixed = shape.fixed(&entry.original);
        }
        Ok(route)
    }

    /// Looks a client's name up: in what its own session saw, in what was learned at the start, and last in the named server's list, fetched now.
    async fn find_name(
        self: &Arc<Self>,
        client: &Client,
        name: &str,
        kind: ListKind,
    ) -> Result<Option<(usize, Arc<Listing>, usize)>, RpcError> {
        let endpoint = &self.endpoints[client.endpoint()];
        let places: Vec<usize> = (0..endpoint.places.len())
            .filter(|&place| may_hold(endpoint, place, name))
            .collect();
        for &place in &places {
            if let Some((listing, at)) = self.known_name(client, place, name, kind) {
                return Ok(Some((place, listing, at)));
            }
        }
        let mut silent = None;
        for place in places {
            let slot = self.slot(client, place);
            match self.listing_within(&slot, kind).await {
                Some(listing) => {
                    if let Some(at) = listing.position(name) {
                        return Ok(Some((place, listing, at)));
                    }
                }
                None => silent = Some(slot),
            }
        }
        // Nobody can tell whether a server that never answered has the name.
        match silent.filter(|_| !places_are_many(endpoint)) {
            Some(slot) => Err(Fault::unreachable("no list").answer(slot.server.id.as_str())),
            None => Ok(None),
        }
    }

    fn known_name(
        &self,
        client: &Client,
        place: usize,
        name: &str,
        kind: ListKind,
    ) -> Option<(Arc<Listing>, usize)> {
        let found = |listing: Arc<Listing>| {
            let at = listing.position(name)?;
            Some((listing, at))
        };
        let own = self.slot_if_used(client, place);
        let own = own.and_then(|slot| slot.layer().known(kind));
        let base = || {
            let place = &self.endpoints[client.endpoint()].places[place];
            let other = [Era::Legacy, Era::Modern].into_iter();
            other
                .filter_map(|era| place.base(era).known(kind))
                .find_map(found)
        };
        own.and_then(found).or_else(base)
    }

    /// The server of a URI: by the listed URIs, then by template, then the only one that has the scheme.
    async fn route_uri(
        self: &Arc<Self>,
        client: &Client,
        uri: &str,
        method: Method,
    ) -> Result<(usize, String), RpcError> {
        let endpoint = &self.endpoints[client.endpoint()];
        if let Some((place, original)) = qualified(endpoint, uri) {
            return Ok((place, original));
        }
        let mut lists = self.known_resources(client);
        let mut found = find_uri(endpoint, &lists, uri);
        if found.is_none() {
            lists = self.fetch_resources(client).await;
            found = find_uri(endpoint, &lists, uri);
        }
        if endpoint.shared.is_shared(uri) {
            let owners: Vec<String> = owners(endpoint, &lists, uri);
            return Err(RpcError::new(
                code::INVALID_PARAMS,
                format!(
                    "Ambiguous resource: {uri} is offered by several servers; use one of {}",
                    owners.join(", ")
                ),
            ));
        }
        match found {
            Some(place) => Ok((place, uri.to_owned())),
            None => {
                let legacy = client.era() == Era::Legacy && method == Method::ReadResource;
                let code = if legacy {
                    code::RESOURCE_NOT_FOUND
                } else {
                    code::INVALID_PARAMS
                };
                Err(RpcError::new(code, format!("Unknown resource: {uri}"))
                    .with(serde_json::json!({"uri": uri})))
            }
        }
    }

    /// What is known of resources and templates, by place.
    fn known_resources(&self, client: &Client) -> Vec<Arc<Listing>> {
        let endpoint = &self.endpoints[client.endpoint()];
        let mut lists = Vec::new();
        for (place, one) in endpoint.places.iter().enumerate() {
            for kind in [ListKind::Resources, ListKind::Templates] {
                let own = self.slot_if_used(client, place);
                let own = own.and_then(|slot| slot.layer().known(kind));
                let base = || one.base(client.era()).known(kind);
                lists.extend(own.or_else(base));
            }
        }
        lists
    }

    async fn fetch_resources(self: &Arc<Self>, client: &Client) -> Vec<Arc<Listing>> {
        let mut lists = Vec::new();
        for kind in [ListKind::Resources, ListKind::Templates] {
            let all = self.listings(client, kind).await;
            lists.extend(all.into_iter().filter_map(|(_, listing)| listing));
        }
        lists
    }

    /// `completion/complete`: by the prompt or template that it refers to.
    async fn route_reference(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
    ) -> Result<Route, RpcError> {
        let outer = message.inner().reference.ok_or_else(|| missing("ref"))?;
        let raw = message.raw(outer);
        let field = |name: &str| {
            let span = member(raw, name, MAX_DEPTH)?;
            let text = string(span.of(raw))?.into_owned();
            Some((outer.within(span), text))
        };
        let kind = field("type").ok_or_else(|| missing("ref.type"))?.1;
        match kind.as_str() {
            "ref/prompt" => {
                let (span, name) = field("name").ok_or_else(|| missing("ref.name"))?;
                let found = self.find_name(client, &name, ListKind::Prompts).await?;
                let (place, listing, at) = found.ok_or_else(|| unknown("prompt", &name))?;
                let original = listing.entries[at].original.clone();
                Ok(renamed(place, span, &name, original))
            }
            "ref/resource" => {
                let (span, uri) = field("uri").ok_or_else(|| missing("ref.uri"))?;
                let (place, original) = self.route_uri(client, &uri, message.method()).await?;
                Ok(renamed(place, span, &uri, original))
            }
            _ => Err(RpcError::new(
                code::INVALID_PARAMS,
                "`ref.type` is neither ref/prompt nor ref/resource",
            )),
        }
    }

    fn slot_if_used(&self, client: &Client, place: usize) -> Option<Arc<Slot>> {
        match client {
            Client::Legacy(session) => session.state.slot_if_used(place).cloned(),
            Client::Modern(caller) => self.pooled_if_used(caller, place),
        }
    }
}

fn renamed(place: usize, span: Span, seen: &str, original: String) -> Route {
    let mut changes = Vec::new();
    if seen != original {
        changes.push((span, Bytes::from(quote(&original))));
    }
    Route {
        place,
        changes,
        name: Some(original),
        ..Route::default()
    }
}

/// Whether a name can be one of this server's: only to choose whose table to look into.
fn may_hold(endpoint: &Endpoint, place: usize, name: &str) -> bool {
    let shape = &endpoint.places[place].shape;
    match shape.naming {
        crate::catalog::Naming::Bare => true,
        crate::catalog::Naming::Prefixed { .. } => name
            .strip_prefix(shape.server.as_str())
            .is_some_and(|rest| rest.starts_with(SEPARATOR)),
    }
}

/// Whether a name without a prefix could be any of several servers'.
fn places_are_many(endpoint: &Endpoint) -> bool {
    let bare = |p: &super::endpoint::Place| p.shape.naming == crate::catalog::Naming::Bare;
    endpoint.places.len() > 1 && endpoint.places.iter().any(bare)
}

/// `{server}+{uri}`, which is always accepted.
fn qualified(endpoint: &Endpoint, uri: &str) -> Option<(usize, String)> {
    let (server, rest) = uri.split_once('+')?;
    scheme(rest)?;
    let place = endpoint
        .places
        .iter()
        .position(|p| p.server.id.as_str() == server)?;
    Some((place, rest.to_owned()))
}

/// The place that offers `uri`. Lists come in pairs of resources and templates and know their place.
fn find_uri(endpoint: &Endpoint, lists: &[Arc<Listing>], uri: &str) -> Option<usize> {
    if let Some(listing) = lists.iter().find(|l| l.position(uri).is_some()) {
        return Some(listing.place);
    }
    let templates = lists.iter().filter(|l| l.kind == ListKind::Templates);
    let matching = templates.flat_map(|l| l.entries.iter().map(|e| (l.place, e)));
    let best = matching
        .filter_map(|(place, e)| Some((place, e.template.as_ref()?)))
        .filter(|(_, template)| template.matches(uri))
        .max_by_key(|(place, template)| (template.weight(), std::cmp::Reverse(*place)));
    if let Some((place, _)) = best {
        return Some(place);
    }
    let scheme_of = scheme(uri);
    let mut holders: Vec<usize> = lists
        .iter()
        .filter(|l| {
            l.entries
                .iter()
                .any(|e| scheme_of.is_some() && scheme(&e.original) == scheme_of)
        })
        .map(|l| l.place)
        .collect();
    holders.dedup();
    match (&holders[..], endpoint.only()) {
        ([place], _) => Some(*place),
        (_, Some(_)) => Some(0),
        _ => None,
    }
}

fn owners(endpoint: &Endpoint, lists: &[Arc<Listing>], uri: &str) -> Vec<String> {
    let offering = lists.iter().filter(|l| l.position(uri).is_some());
    offering
        .map(|l| format!("{}+{uri}", endpoint.places[l.place].server.id))
        .collect()
}
