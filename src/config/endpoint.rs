//! The paths that clients connect to and how things are named there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    shown::Selection,
    value::{Scope, ServerId},
};

/// A path that clients connect to and what is behind it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Endpoint {
    /// The servers behind it, in the order of its lists. Left out: all of them.
    pub servers: Option<Vec<ServerId>>,
    /// Which tools appear here, by the names that clients see.
    pub tools: Selection,
    /// How tools and prompts are named.
    pub names: Naming,
    /// The longest page of a list. Lists go out in one page unless they are longer.
    #[schemars(range(min = 1, max = 100_000))]
    pub page_size: usize,
    /// Scopes that a caller needs to use it.
    pub scopes: Vec<Scope>,
}

impl Default for Endpoint {
    fn default() -> Self {
        Endpoint {
            servers: None,
            tools: Selection::default(),
            names: Naming::default(),
            page_size: 1_000,
            scopes: Vec::new(),
        }
    }
}

/// How tools and prompts are named on an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Naming {
    /// `{server}__{name}`: no two servers can collide.
    #[default]
    Prefixed,
    /// As the server has them. Two servers with the same name are an error.
    Bare,
}

/// How tools and prompts are named on endpoints with `names: prefixed`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Names {
    /// The longest name. Model APIs reject more than 64 characters, and some clients put a prefix of their own in
    /// front. What is longer is cut and ends in a hash.
    #[schemars(range(min = 44, max = 128))]
    pub max: usize,
}

impl Default for Names {
    fn default() -> Self {
        Names { max: 64 }
    }
}
