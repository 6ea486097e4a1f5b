//! Globs over names and URIs.

use std::{borrow::Cow, fmt, str::FromStr};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{Written, Wrong};

/// Several globs, compiled: `*` any characters (also `/`), `?` one, `[ab]` and `{x,y}` a choice, `\` before a literal.
#[derive(Clone)]
pub struct Patterns {
    set: GlobSet,
    written: Vec<String>,
}

/// One glob, only to check it.
pub(super) struct Glob(globset::Glob);

impl Patterns {
    /// Whether any of the globs matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        self.set.is_match(name)
    }

    /// The globs as they were written.
    pub fn written(&self) -> &[String] {
        &self.written
    }
}

impl Written for Glob {
    const KIND: &'static str = "glob";
    const NOUN: &'static str = "a glob";
    const EXAMPLE: &'static str = "read_*";
}

impl FromStr for Glob {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let glob = GlobBuilder::new(text)
            .backslash_escape(true)
            .literal_separator(false)
            .build();
        match glob {
            Ok(glob) if !text.is_empty() => Ok(Glob(glob)),
            Ok(_) => Err(Wrong::new("an empty glob", "a name, or `*` for all")),
            Err(error) => Err(Wrong::new(
                format!("not a glob ({})", error.kind()),
                r"a name in which `*` stands for any characters, such as `read_*`; `\` makes the next character literal",
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Vec::<String>::deserialize(from)?;
        let mut builder = GlobSetBuilder::new();
        for text in &written {
            builder.add(text.parse::<Glob>().map_err(D::Error::custom)?.0);
        }
        let set = builder
            .build()
            .map_err(|error| D::Error::custom(error.kind()))?;
        Ok(Patterns { set, written })
    }
}

impl JsonSchema for Patterns {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Patterns".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": super::schema_of::<Glob>() })
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        let patterns: Patterns =
            serde_json::from_value(serde_json::json!(["read_*", "a/?", r"\*"])).unwrap();
        for name in ["read_", "read_a/b", "a/b", "*"] {
            assert!(patterns.matches(name), "{name}");
        }
        for name in ["xread_a", "Read_a", "a/bc", ""] {
            assert!(!patterns.matches(name), "{name}");
        }
        assert!("[".parse::<Glob>().is_err() && "".parse::<Glob>().is_err());
    }
}
