//! One list of one server as one endpoint shows it.

use super::shape::Shape;
use crate::mcp::{
    Edit, ListKind,
    list::{self, Item},
    message::quote,
    param::{self, Param},
    raw,
    scan::{MAX_DEPTH, Span},
    template::Template,
};
use bytes::Bytes;
use serde_json::{Map, Value};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// What came from the server, all pages together.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub items: Vec<Item>,
    /// How long it may be kept; `None` where the server did not say.
    pub ttl: Option<Duration>,
    /// Whether it may serve every caller.
    pub public: bool,
    /// Whether a fault of a tool's header annotations leaves it out (the hop is modern HTTP) or only the annotation.
    pub strict_params: bool,
}

/// One thing of the list.
#[derive(Clone, Debug)]
pub struct Entry {
    pub exposed: String,
    pub original: String,
    /// What goes out.
    pub json: Bytes,
    /// Where the exposed name stands in `json`.
    key_span: Span,
    /// Arguments that travel in headers too (tools only).
    pub params: Vec<Param>,
    pub template: Option<Template>,
}

#[derive(Debug)]
pub struct Listing {
    pub kind: ListKind,
    /// Place of the server in its endpoint.
    pub place: usize,
    pub entries: Vec<Entry>,
    table: HashMap<String, usize>,
    /// The entries' JSON with commas between.
    pub body: Bytes,
    /// Templates that the operator hid: what comes from them is hidden too.
    pub hidden: Vec<Template>,
    /// Whether any tool has arguments that travel in headers.
    pub has_params: bool,
    pub fetched: Instant,
    pub ttl: Option<Duration>,
    pub public: bool,
}

impl Listing {
    /// Shapes what came from the server for one endpoint. What cannot be used is left out with a warning.
    pub fn build(kind: ListKind, place: usize, shape: &Shape, fetched: Fetched) -> Self {
        let mut entries: Vec<Entry> = Vec::with_capacity(fetched.items.len());
        let mut hidden = Vec::new();
        let mut table = HashMap::with_capacity(fetched.items.len());
        for item in fetched.items {
            let Some(exposed) = shape.expose(kind, &item.key) else {
                if kind == ListKind::Templates {
                    hidden.extend(Template::parse(&item.key));
                }
                continue;
            };
            if table.contains_key(&exposed) {
                tracing::warn!(server = %shape.server, kind = kind.member(), "a name stands twice in a server's list; the first one is used");
                continue;
            }
            let Some(entry) = entry(kind, shape, item, exposed, fetched.strict_params) else {
                continue;
            };
            table.insert(entry.exposed.clone(), entries.len());
            entries.push(entry);
        }
        Self {
            kind,
            place,
            body: join(entries.iter().map(|e| &e.json)),
            hidden,
            has_params: entries.iter().any(|e| !e.params.is_empty()),
            entries,
            table,
            fetched: Instant::now(),
            ttl: fetched.ttl,
            public: fetched.public,
        }
    }

    /// The entry that clients know as `exposed`.
    pub fn find(&self, exposed: &str) -> Option<&Entry> {
        self.table.get(exposed).map(|&place| &self.entries[place])
    }

    /// Where the entry stands that clients know as `exposed`.
    pub fn position(&self, exposed: &str) -> Option<usize> {
        self.table.get(exposed).copied()
    }

    /// Where the entry stands that its server knows as `original`.
    pub fn place_of(&self, original: &str) -> Option<usize> {
        self.entries.iter().position(|e| e.original == original)
    }
}

impl Entry {
    /// What goes out with another name in the place of the exposed one.
    pub fn json_as(&self, name: &str) -> Bytes {
        let mut edit = Edit::new();
        edit.replace(self.key_span, quote(name));
        edit.apply(&self.json)
    }
}

/// Pieces of JSON with commas between.
pub fn join<'a>(pieces: impl Iterator<Item = &'a Bytes> + Clone) -> Bytes {
    let length = pieces.clone().map(|p| p.len() + 1).sum();
    let mut out = Vec::with_capacity(length);
    for piece in pieces {
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(piece);
    }
    out.into()
}

fn entry(
    kind: ListKind,
    shape: &Shape,
    item: Item,
    exposed: String,
    strict_params: bool,
) -> Option<Entry> {
    let mut json = item.json;
    let mut params = Vec::new();
    if kind == ListKind::Tools && memchr::memmem::find(&json, b"x-mcp-header").is_some() {
        match read_params(&json) {
            Ok(found) => params = found,
            Err(reason) if strict_params => {
                tracing::warn!(server = %shape.server, tool = %item.key, reason, "a tool is left out: its header annotations are invalid");
                return None;
            }
            Err(_) => json = without_annotations(&json)?,
        }
    }
    let fixed = shape.fixed(&item.key).filter(|_| kind == ListKind::Tools);
    let described = shape.description(kind, &item.key);
    if fixed.is_some() || described.is_some() {
        json = rewritten(&json, described, fixed.as_ref())?;
    }
    let key_span = list::member(&json, kind.key(), MAX_DEPTH)?;
    let mut edit = Edit::new();
    if exposed != item.key {
        edit.replace(key_span, quote(&exposed));
    }
    let json = edit.apply(&json);
    let key_span = list::member(&json, kind.key(), MAX_DEPTH)?;
    let template = (kind == ListKind::Templates).then(|| Template::parse(&item.key));
    Some(Entry {
        exposed,
        original: item.key,
        json,
        key_span,
        params,
        template: template.flatten(),
    })
}

fn read_params(json: &[u8]) -> Result<Vec<Param>, &'static str> {
    let tool: Value = serde_json::from_slice(json).map_err(|_| "the tool cannot be read")?;
    param::of_tool(&tool)
}

/// The tool without any header annotation; its other bytes are written anew.
fn without_annotations(json: &[u8]) -> Option<Bytes> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.shift_remove("x-mcp-header");
                object.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut tool: Value = serde_json::from_slice(json).ok()?;
    strip(tool.get_mut("inputSchema")?);
    Some(tool.to_string().into())
}

/// A new description, and fixed parameters taken out of the schema.
fn rewritten(
    json: &[u8],
    described: Option<&str>,
    fixed: Option<&Map<String, Value>>,
) -> Option<Bytes> {
    let mut thing = raw::object(json)?;
    if let Some(text) = described {
        thing.insert("description".into(), raw::value(quote(text))?);
    }
    let schema = thing.get("inputSchema").map(|s| s.get().to_owned());
    if let (Some(fixed), Some(schema)) = (fixed, schema) {
        let schema = raw::value(without(&schema, fixed)?)?;
        thing.insert("inputSchema".into(), schema);
    }
    Some(raw::write(&thing).into())
}

/// A tool's input schema without the parameters that are fixed.
fn without(schema: &str, fixed: &Map<String, Value>) -> Option<String> {
    let mut schema = raw::object(schema.as_bytes())?;
    if let Some(properties) = schema.get("properties") {
        let mut properties = raw::object(properties.get().as_bytes())?;
        properties.retain(|name, _| !fixed.contains_key(name));
        schema.insert("properties".into(), raw::value(raw::write(&properties))?);
    }
    if let Some(required) = schema.get("required") {
        let mut required: Vec<Value> = serde_json::from_str(required.get()).ok()?;
        required.retain(|name| !name.as_str().is_some_and(|n| fixed.contains_key(n)));
        let required = Value::Array(required).to_string();
        schema.insert("required".into(), raw::value(required)?);
    }
    Some(raw::write(&schema))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{catalog::Naming, config, mcp::ServerId};

    pub fn shape(server: &str) -> Shape {
        Shape {
            server: ServerId::new(server).unwrap(),
            naming: Naming::Prefixed { max: 64 },
            tools: config::Tools::default(),
            prompts: config::Shown::default(),
            resources: config::Shown::default(),
            selection: config::Selection::default(),
        }
    }

    pub fn fetched(kind: ListKind, result: &'static str) -> Fetched {
        let (items, _) = list::items(&Bytes::from_static(result.as_bytes()), kind, 64).unwrap();
        Fetched {
            items,
            ttl: None,
            public: false,
            strict_params: true,
        }
    }

    #[test]
    fn only_the_name_of_an_item_changes() {
        let list = fetched(
            ListKind::Tools,
            r#"{"tools":[{"x":1.0, "name":"a.b","z":{"name":"a.b"}},{"name":"ok"}]}"#,
        );
        let listing = Listing::build(ListKind::Tools, 0, &shape("db"), list);
        let first = &listing.entries[0];
        assert!(first.exposed.starts_with("db__a_b_"));
        assert_eq!(
            first.json,
            format!(
                r#"{{"x":1.0, "name":"{}","z":{{"name":"a.b"}}}}"#,
                first.exposed
            )
        );
        assert_eq!(listing.find("db__ok").unwrap().original, "ok");
        assert!(listing.find("ok").is_none());
    }

    #[test]
    fn what_the_operator_hid_renamed_or_fixed_shows() {
        let mut shape = shape("db");
        shape.tools = serde_json::from_str(r#"{"deny":["drop_*"],"rename":{"run":"query"},"describe":{"run":"new"},"fix":{"run":{"db":"prod"}}}"#).unwrap();
        let list = fetched(
            ListKind::Tools,
            r#"{"tools":[{"name":"drop_all"},{"name":"run","description":"old","inputSchema":{"properties":{"db":{},"q":{}},"required":["db","q"]}}]}"#,
        );
        let listing = Listing::build(ListKind::Tools, 0, &shape, list);
        assert_eq!(listing.entries.len(), 1);
        let tool: Value = serde_json::from_slice(&listing.entries[0].json).unwrap();
        assert_eq!(tool["name"], "db__query");
        assert_eq!(tool["description"], "new");
        assert_eq!(
            tool["inputSchema"],
            serde_json::json!({"properties": {"q": {}}, "required": ["q"]})
        );
        assert_eq!(listing.entries[0].original, "run");
    }

    #[test]
    fn a_bad_header_annotation_costs_the_tool_only_where_headers_matter() {
        let bad = r#"{"tools":[{"name":"a","inputSchema":{"properties":{"p":{"type":"number","x-mcp-header":"P"}}}},{"name":"b"}]}"#;
        let mut list = fetched(ListKind::Tools, bad);
        assert_eq!(
            Listing::build(ListKind::Tools, 0, &shape("s"), list.clone())
                .entries
                .len(),
            1
        );
        list.strict_params = false;
        let listing = Listing::build(ListKind::Tools, 0, &shape("s"), list);
        assert_eq!(listing.entries.len(), 2);
        assert!(!listing.body.windows(12).any(|w| w == b"x-mcp-header"));
    }
}
