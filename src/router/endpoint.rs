//! A path of ours and what is behind it.

use crate::{
    backend::Server,
    catalog::{Layer, Shape, Shared},
    mcp::{Era, ServerId},
};
use std::sync::Arc;

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
}

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
        }
    }

    pub fn place_of(&self, server: &ServerId) -> Option<usize> {
        self.places.iter().position(|p| p.server.id == *server)
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
