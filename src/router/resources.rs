//! URIs of resources: which server a client's URI belongs to, and whether the operator shows it.
//!
//! URIs stay as their servers have them, so they are found by what is listed, then
//! by template, then by the only server that has the scheme. `{server}+{uri}` is
//! accepted too; what a server lists under exactly that URI goes first, since
//! schemes such as `git+ssh` look the same.

use super::{client::Client, core::Router, endpoint::Endpoint, lists::Part};
use crate::{
    backend::Fault,
    catalog::Listing,
    mcp::{Era, ListKind, Method, RpcError, code, template::scheme},
};
use std::sync::Arc;

/// What is known of the resources of an endpoint, by place.
struct Atlas<'a> {
    endpoint: &'a Endpoint,
    pages: Vec<[Option<Arc<Listing>>; 2]>,
    /// The places whose lists could not be had.
    unsure: Vec<usize>,
}

/// Whose a URI is.
enum Sight {
    /// Listed, or of a template; and the URI as the server knows it.
    Known(usize, String),
    /// Nothing that is known speaks against it.
    Guessed(usize, String),
    /// Several servers offer it.
    Ambiguous(Vec<usize>),
    Nobodys,
}

impl Router {
    /// The server of a URI, and the URI as that server knows it.
    pub(super) async fn route_uri(
        self: &Arc<Self>,
        client: &Client,
        uri: &str,
        method: Method,
    ) -> Result<(usize, String), RpcError> {
        let mut atlas = self.known_resources(client);
        let mut sight = atlas.sight(uri);
        let settled = match sight {
            Sight::Known(..) => true,
            Sight::Guessed(..) => atlas.unsure.is_empty(),
            Sight::Ambiguous(_) | Sight::Nobodys => false,
        };
        if !settled {
            atlas = self.fetch_resources(client).await;
            sight = atlas.sight(uri);
        }
        let (place, original) = match sight {
            Sight::Known(place, original) | Sight::Guessed(place, original) => (place, original),
            Sight::Ambiguous(places) => return Err(ambiguous(atlas.endpoint, uri, &places)),
            Sight::Nobodys => {
                return Err(match atlas.unsure.first() {
                    Some(&place) => unreachable(atlas.endpoint, place),
                    None => unknown(client, uri, method),
                });
            }
        };
        if !atlas.endpoint.places[place].shape.chooses_resources() {
            return Ok((place, original));
        }
        if atlas.unsure.contains(&place) {
            return Err(unreachable(atlas.endpoint, place));
        }
        match atlas.is_shown(place, &original) {
            true => Ok((place, original)),
            false => Err(unknown(client, uri, method)),
        }
    }

    fn known_resources(&self, client: &Client) -> Atlas<'_> {
        let endpoint = &self.endpoints[client.endpoint()];
        let known = |(number, place): (usize, &super::endpoint::Place)| {
            [ListKind::Resources, ListKind::Templates].map(|kind| {
                let own = self.slot_if_used(client, number);
                let own = own.and_then(|slot| slot.layer().known(kind));
                own.or_else(|| place.base(client.era()).known(kind))
            })
        };
        let pages: Vec<_> = endpoint.places.iter().enumerate().map(known).collect();
        let unsure = (0..pages.len()).filter(|&p| pages[p].iter().any(Option::is_none));
        Atlas {
            endpoint,
            unsure: unsure.collect(),
            pages,
        }
    }

    async fn fetch_resources(self: &Arc<Self>, client: &Client) -> Atlas<'_> {
        let endpoint = &self.endpoints[client.endpoint()];
        let (resources, templates) = tokio::join!(
            self.parts(client, ListKind::Resources),
            self.parts(client, ListKind::Templates),
        );
        let both = resources.into_iter().zip(templates);
        let mut unsure = Vec::new();
        let mut pages = Vec::new();
        for (place, (resources, templates)) in both.enumerate() {
            let known = |part: &Part| part.sure;
            if !(known(&resources) && known(&templates)) {
                unsure.push(place);
            }
            pages.push([resources.listing, templates.listing]);
        }
        Atlas {
            endpoint,
            pages,
            unsure,
        }
    }
}

impl Atlas<'_> {
    fn sight(&self, uri: &str) -> Sight {
        let qualified = qualified(self.endpoint, uri);
        let listed: Vec<usize> = self.places().filter(|&p| self.is_listed(p, uri)).collect();
        if listed.len() > 1 || (!listed.is_empty() && self.endpoint.shared.is_shared(uri)) {
            return Sight::Ambiguous(listed);
        }
        if let [place] = listed[..] {
            return Sight::Known(place, uri.to_owned());
        }
        if let Some((place, rest)) = &qualified
            && self.is_listed(*place, rest)
        {
            return Sight::Known(*place, rest.clone());
        }
        match self.by_template(uri)[..] {
            [place] => return Sight::Known(place, uri.to_owned()),
            [] => {}
            ref several => return Sight::Ambiguous(several.to_vec()),
        }
        if let Some((place, rest)) = qualified {
            return match self.weight(place, &rest) {
                Some(_) => Sight::Known(place, rest),
                None => match self.by_scheme(uri) {
                    Some(holder) => Sight::Guessed(holder, uri.to_owned()),
                    None => Sight::Guessed(place, rest),
                },
            };
        }
        let only = self.endpoint.only().map(|_| 0);
        match self.by_scheme(uri).or(only) {
            Some(place) => Sight::Guessed(place, uri.to_owned()),
            None => Sight::Nobodys,
        }
    }

    fn places(&self) -> std::ops::Range<usize> {
        0..self.pages.len()
    }

    fn lists(&self, place: usize) -> impl Iterator<Item = &Arc<Listing>> {
        self.pages[place].iter().flatten()
    }

    fn is_listed(&self, place: usize, uri: &str) -> bool {
        self.lists(place).any(|l| l.position(uri).is_some())
    }

    /// How much of the best template that a URI can come from stands fixed.
    fn weight(&self, place: usize, uri: &str) -> Option<usize> {
        let templates = self.pages[place][1].iter();
        let templates =
            templates.flat_map(|l| l.entries.iter().filter_map(|e| e.template.as_ref()));
        let matching = templates.filter(|t| t.matches(uri));
        matching.map(|t| t.weight()).max()
    }

    /// The places of the templates that say most about the URI.
    fn by_template(&self, uri: &str) -> Vec<usize> {
        let weights: Vec<_> = self.places().map(|place| self.weight(place, uri)).collect();
        let most = weights.iter().flatten().max();
        let best = |&place: &usize| most.is_some() && weights[place].as_ref() == most;
        self.places().filter(best).collect()
    }

    /// The only place that has anything of the scheme.
    fn by_scheme(&self, uri: &str) -> Option<usize> {
        let wanted = scheme(uri)?;
        let has = |&place: &usize| {
            let mut entries = self.lists(place).flat_map(|l| &l.entries);
            entries.any(|e| scheme(&e.original).as_ref() == Some(&wanted))
        };
        let mut holders = self.places().filter(has);
        let first = holders.next()?;
        holders.next().is_none().then_some(first)
    }

    /// Whether the operator shows it: because it is listed here, or of a template that is, or because nothing says otherwise.
    fn is_shown(&self, place: usize, uri: &str) -> bool {
        if self.is_listed(place, uri) {
            return true;
        }
        let shape = &self.endpoint.places[place].shape;
        let hidden = self.pages[place][1].iter().flat_map(|l| &l.hidden);
        let hidden = hidden.filter(|t| t.matches(uri)).map(|t| t.weight()).max();
        match (self.weight(place, uri), hidden) {
            (Some(shown), hidden) => {
                hidden.is_none_or(|h| shown > h) && !shape.denies_resource(uri)
            }
            (None, Some(_)) => false,
            (None, None) => shape.resources.admits(uri),
        }
    }
}

/// `{server}+{uri}` taken apart.
fn qualified(endpoint: &Endpoint, uri: &str) -> Option<(usize, String)> {
    let (server, rest) = uri.split_once('+')?;
    scheme(rest)?;
    let is_it = |p: &super::endpoint::Place| p.server.id.as_str() == server;
    let place = endpoint.places.iter().position(is_it)?;
    Some((place, rest.to_owned()))
}

fn unreachable(endpoint: &Endpoint, place: usize) -> RpcError {
    Fault::unreachable("no list").answer(endpoint.places[place].server.id.as_str())
}

fn ambiguous(endpoint: &Endpoint, uri: &str, places: &[usize]) -> RpcError {
    let full = |p: &usize| format!("{}+{uri}", endpoint.places[*p].server.id);
    let all: Vec<String> = places.iter().map(full).collect();
    let text = format!(
        "Ambiguous resource: {uri} is offered by several servers; use one of {}",
        all.join(", ")
    );
    RpcError::new(code::INVALID_PARAMS, text)
}

/// One text for what is unknown, hidden or forbidden.
fn unknown(client: &Client, uri: &str, method: Method) -> RpcError {
    let legacy = client.era() == Era::Legacy && method == Method::ReadResource;
    let code = match legacy {
        true => code::RESOURCE_NOT_FOUND,
        false => code::INVALID_PARAMS,
    };
    RpcError::new(code, format!("Unknown resource: {uri}")).with(serde_json::json!({"uri": uri}))
}
