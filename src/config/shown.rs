//! What of a server is shown, and how: chosen by globs, renamed, described anew, with parameters fixed.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::value::Patterns;

/// Which names are shown.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// Globs of names to show. Left out: all.
    pub allow: Option<Patterns>,
    /// Globs of names to hide, whatever `allow` says.
    pub deny: Option<Patterns>,
}

impl Selection {
    /// Whether a name is shown.
    pub fn admits(&self, name: &str) -> bool {
        admits(self.allow.as_ref(), self.deny.as_ref(), name)
    }
}

/// Which things are shown, and how. Names are the server's own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shown {
    /// Globs of names to show. Left out: all.
    pub allow: Option<Patterns>,
    /// Globs of names to hide, whatever `allow` says.
    pub deny: Option<Patterns>,
    /// New names, by the server's own.
    pub rename: IndexMap<String, String>,
    /// New descriptions, by the server's own names.
    pub describe: IndexMap<String, String>,
}

impl Shown {
    /// Whether the thing with this name of the server's is shown.
    pub fn admits(&self, name: &str) -> bool {
        admits(self.allow.as_ref(), self.deny.as_ref(), name)
    }
}

/// Which tools are shown, and how. Names are the server's own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// Globs of names to show. Left out: all.
    pub allow: Option<Patterns>,
    /// Globs of names to hide, whatever `allow` says.
    pub deny: Option<Patterns>,
    /// New names, by the server's own.
    pub rename: IndexMap<String, String>,
    /// New descriptions, by the server's own names.
    pub describe: IndexMap<String, String>,
    /// Values of parameters that are fixed and hidden from callers, by tool and parameter.
    pub fix: IndexMap<String, IndexMap<String, Fixed>>,
}

impl Tools {
    /// Whether the tool with this name of the server's is shown.
    pub fn admits(&self, name: &str) -> bool {
        admits(self.allow.as_ref(), self.deny.as_ref(), name)
    }
}

fn admits(allow: Option<&Patterns>, deny: Option<&Patterns>, name: &str) -> bool {
    allow.is_none_or(|globs| globs.matches(name)) && !deny.is_some_and(|globs| globs.matches(name))
}

/// The value of a fixed parameter. It may hold what came from the environment, so it does not print.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Fixed(serde_json::Value);

impl Fixed {
    /// The value.
    pub fn value(&self) -> &serde_json::Value {
        &self.0
    }
}

impl std::fmt::Debug for Fixed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
