//! A path of ours and what is behind it.

use crate::{
    backend::Server,
    catalog::{Layer, Naming, Shape, Shared},
    mcp::{Era, ListKind, ServerId},
};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

/// One server as one endpoint shows it.
pub struct Place {
    pub server: Arc<Server>,
    pub shape: Shape,
    /// Lists learned without a client's capabilities, by era: enough to find names by.
    pub base: [Arc<Layer>; 2],
}

pub struct Endpoint {
    pub path: String,
    pub places: Vec<Place>,
    /// One server, everything as it has it: messages pass without looking for names.
    pub through: bool,
    /// Longest page of a merged list.
    pub page_size: usize,
    /// Scopes that a caller needs.
    pub scopes: Vec<String>,
    /// URIs that several servers offer.
    pub shared: Shared,
    /// What was warned of, so that it is not in every list again.
    told: Mutex<HashSet<String>>,
}

/// Warnings that are remembered at most.
const TOLD: usize = 10_000;

impl Endpoint {
    pub fn new(
        path: String,
        servers: Vec<(Arc<Server>, Shape)>,
        page_size: usize,
        scopes: Vec<String>,
    ) -> Self {
        let through = servers.len() == 1 && servers[0].1.is_plain();
        let place = |(server, shape)| Place {
            server,
            shape,
            base: Default::default(),
        };
        Self {
            path,
            places: servers.into_iter().map(place).collect(),
            through,
            page_size,
            scopes,
            shared: Shared::default(),
            told: Mutex::default(),
        }
    }

    pub fn place_of(&self, server: &ServerId) -> Option<usize> {
        self.places.iter().position(|p| p.server.id == *server)
    }

    /// Whether several servers' things of this kind stand side by side without their servers' prefixes.
    pub fn has_bare_names(&self, kind: ListKind) -> bool {
        let bare = |p: &Place| matches!(p.shape.naming, Naming::Bare { .. });
        let named = matches!(kind, ListKind::Tools | ListKind::Prompts);
        named && self.places.len() > 1 && self.places.iter().any(bare)
    }

    /// Whether this was not warned of before.
    pub fn is_news(&self, text: &str) -> bool {
        let mut told = self.told.lock().expect("no holder of this lock panics");
        told.len() < TOLD && told.insert(text.to_owned())
    }

    /// Whether it is one server under its own name, whatever is hidden or renamed of it.
    pub fn stands_alone(&self) -> bool {
        let bare = |p: &Place| matches!(p.shape.naming, Naming::Bare { .. });
        self.only().is_some_and(bare)
    }

    /// Whether it is known that no server has the capability at a dotted path.
    pub fn lacks(&self, era: Era, capability: &str) -> bool {
        let lacks = |p: &Place| {
            let profile = p.server.profile_for(era);
            profile.is_some_and(|p| !p.may_have(capability))
        };
        !self.places.is_empty() && self.places.iter().all(lacks)
    }

    /// The one server, if there is just one.
    pub fn only(&self) -> Option<&Place> {
        match &self.places[..] {
            [place] => Some(place),
            _ => None,
        }
    }
}

impl Place {
    pub fn base(&self, era: Era) -> &Arc<Layer> {
        &self.base[era as usize]
    }
}
