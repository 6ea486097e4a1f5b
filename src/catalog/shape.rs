//! How one server's things appear on one endpoint: prefix, filters, new names and texts, fixed parameters.

use crate::{
    config,
    mcp::{ListKind, ServerId, names},
};
use serde_json::{Map, Value};

/// How names are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `{server}__{name}`, at most this long.
    Prefixed { max: usize },
    /// As the server has them; one that an earlier server has gets its server's prefix and is at most this long.
    Bare { max: usize },
}

/// What the operator said of one server on one endpoint.
#[derive(Clone, Debug)]
pub struct Shape {
    pub server: ServerId,
    pub naming: Naming,
    pub tools: config::Tools,
    pub prompts: config::Shown,
    pub resources: config::Shown,
    /// The endpoint's own choice of tools, by exposed name.
    pub selection: config::Selection,
}

impl Shape {
    /// Whether everything appears exactly as the server has it.
    pub fn is_plain(&self) -> bool {
        let shown = |s: &config::Shown| {
            s.allow.is_none() && s.deny.is_none() && s.rename.is_empty() && s.describe.is_empty()
        };
        let tools = &self.tools;
        matches!(self.naming, Naming::Bare { .. })
            && tools.allow.is_none()
            && tools.deny.is_none()
            && tools.rename.is_empty()
            && tools.describe.is_empty()
            && tools.fix.is_empty()
            && self.selection.allow.is_none()
            && self.selection.deny.is_none()
            && shown(&self.prompts)
            && shown(&self.resources)
    }

    /// The name that clients see, or `None` for a thing that is not shown here.
    pub fn expose(&self, kind: ListKind, original: &str) -> Option<String> {
        let (admitted, rename) = match kind {
            ListKind::Tools => (self.tools.admits(original), Some(&self.tools.rename)),
            ListKind::Prompts => (self.prompts.admits(original), Some(&self.prompts.rename)),
            ListKind::Resources | ListKind::Templates => (self.resources.admits(original), None),
        };
        if !admitted {
            return None;
        }
        let name = rename
            .and_then(|r| r.get(original))
            .map_or(original, String::as_str);
        let exposed = match (kind, self.naming) {
            (ListKind::Resources | ListKind::Templates, _) => original.to_owned(),
            (_, Naming::Bare { .. }) => name.to_owned(),
            (_, Naming::Prefixed { max }) => names::expose(&self.server, name, max),
        };
        let chosen = kind != ListKind::Tools || self.selection.admits(&exposed);
        chosen.then_some(exposed)
    }

    /// Whether some resources are hidden.
    pub fn chooses_resources(&self) -> bool {
        self.resources.allow.is_some() || self.resources.deny.is_some()
    }

    /// Whether a resource is hidden whatever else is said of it.
    pub fn denies_resource(&self, uri: &str) -> bool {
        let deny = self.resources.deny.as_ref();
        deny.is_some_and(|globs| globs.matches(uri))
    }

    /// A new description for a thing, if the operator gave one.
    pub fn description(&self, kind: ListKind, original: &str) -> Option<&str> {
        let describe = match kind {
            ListKind::Tools => &self.tools.describe,
            ListKind::Prompts => &self.prompts.describe,
            ListKind::Resources | ListKind::Templates => &self.resources.describe,
        };
        describe.get(original).map(String::as_str)
    }

    /// Parameters of a tool that are fixed and hidden: name and JSON value.
    pub fn fixed(&self, original: &str) -> Option<Map<String, Value>> {
        let fixed = self.tools.fix.get(original)?;
        let value = |v: &config::Fixed| v.value().clone();
        Some(fixed.iter().map(|(k, v)| (k.clone(), value(v))).collect())
    }
}
