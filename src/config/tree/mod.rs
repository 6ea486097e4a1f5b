//! A file as a tree in which every value and every key knows its place, whatever the format.
//!
//! The three parsers differ in what they can tell: each reports duplicate keys and syntax as faults of ours, and none
//! repeats more of the text than a key.

mod json;
mod toml;
mod yaml;

use super::fault::{Path, Position, Quoted, Report};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.
    Toml,
    /// JSON, with comments and trailing commas.
    Json,
}

/// A value at its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub at: Position,
    pub data: Data,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    /// A number as it was written, and as an integer if it is one.
    Number(String, Option<i64>),
    Text(Text),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A text, and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub text: String,
    pub origin: Origin,
}

/// Where a text came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It stands in the file as it is.
    File,
    /// Something of it came from the environment or from another file: it must not be repeated.
    Elsewhere,
    /// Something of it is missing; this says what. The text means nothing.
    Missing(String),
}

/// A key, its place and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub at: Position,
    /// The key that counts.
    pub key: String,
    /// The key as it stands in the file.
    pub written: String,
    pub value: Node,
}

impl Entry {
    fn new(at: Position, key: String, value: Node) -> Self {
        Entry {
            at,
            written: key.clone(),
            key,
            value,
        }
    }
}

impl Node {
    fn text(at: Position, text: String) -> Self {
        Node {
            at,
            data: Data::Text(Text {
                text,
                origin: Origin::File,
            }),
        }
    }

    /// The entries, if it is a map.
    pub fn entries(&self) -> &[Entry] {
        match &self.data {
            Data::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key, if this is a map that has it and it is not null.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key)
            .map(|entry| &entry.value)
            .filter(|value| !matches!(value.data, Data::Null))
    }

    /// The entry of a key, if this is a map that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// Whether a fault may repeat it: it stands in the file as it is.
    pub fn is_shown(&self) -> bool {
        !matches!(&self.data, Data::Text(text) if text.origin != Origin::File)
    }

    /// What it is, for a fault.
    pub fn noun(&self) -> &'static str {
        match &self.data {
            Data::Null => "nothing",
            Data::Bool(_) => "a boolean",
            Data::Number(..) => "a number",
            Data::Text(_) => "a text",
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
        }
    }
}

/// Reads a text. Nothing if it cannot be read at all; the report then has the reason.
pub(crate) fn parse(text: &str, format: Format, report: &mut Report) -> Option<Node> {
    match format {
        Format::Yaml => yaml::parse(text, report),
        Format::Toml => toml::parse(text, report),
        Format::Json => json::parse(text, report),
    }
}

/// The top of an empty file.
fn empty() -> Node {
    Node {
        at: Position { line: 1, column: 1 },
        data: Data::Map(Vec::new()),
    }
}

/// Adds an entry, unless the key is there already.
fn insert(entries: &mut Vec<Entry>, entry: Entry, path: &Path, report: &mut Report) {
    let Some(first) = entries.iter().find(|other| other.key == entry.key) else {
        entries.push(entry);
        return;
    };
    let text = format!(
        "the key {} stands here twice; it is already in line {}",
        Quoted(&entry.key, '`'),
        first.at.line
    );
    report.fault(entry.at, &path.key(&entry.key), text);
}

impl Format {
    /// The format that a file's name tells, or its content if the name tells none.
    pub(crate) fn detect(name: &str, text: &str) -> Format {
        let extension = std::path::Path::new(name)
            .extension()
            .map(|e| e.to_ascii_lowercase());
        match extension.as_deref().and_then(|e| e.to_str()) {
            Some("yaml" | "yml") => Format::Yaml,
            Some("toml") => Format::Toml,
            Some("json" | "jsonc") => Format::Json,
            _ => Format::of_content(text),
        }
    }

    fn of_content(text: &str) -> Format {
        let lines = text.lines().map(str::trim);
        let first = lines
            .into_iter()
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .unwrap_or("");
        if first.starts_with('{') || first.starts_with("//") || first.starts_with("/*") {
            return Format::Json;
        }
        let word = |text: &str| {
            text.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-.\"' ".contains(&b))
        };
        let table = first.starts_with('[') && first.contains(']');
        match table || first.split_once('=').is_some_and(|(key, _)| word(key)) {
            true => Format::Toml,
            false => Format::Yaml,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_name_or_content() {
        for (name, text, format) in [
            ("a.yml", "{}", Format::Yaml),
            ("a.TOML", "", Format::Toml),
            ("a.jsonc", "", Format::Json),
            ("a", "", Format::Yaml),
            ("a.conf", "# x\n\n{", Format::Json),
            ("a.conf", "// x", Format::Json),
            ("a.conf", "# x\nlisten = \"a\"", Format::Toml),
            ("a.conf", "[servers.a]", Format::Toml),
            ("a.conf", "listen: a=b", Format::Yaml),
            ("a.conf", "---\nlisten: a", Format::Yaml),
        ] {
            assert_eq!(Format::detect(name, text), format, "{name} {text}");
        }
    }
}
