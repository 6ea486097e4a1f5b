//! From the positioned tree to the settings: the tree is walked beside the schema.
//!
//! The walk reports everything that the schema does not admit, with its place, and gives back a value without the
//! parts that are wrong. So the settings can always be made of it, and what they mean can be checked in the same
//! run: an operator sees all faults at once. Since it is the same schema that editors are given, both agree.

mod expect;
mod scalar;
mod secret;
mod suggest;

use serde_json::{Map, Value};

use super::{
    expand::Lookup,
    fault::{Path, Quoted, Report},
    tree::{Data, Entry, Node, Origin},
    value,
};
use expect::expectation;
pub(crate) use suggest::did_you_mean;

/// Walks a tree beside the schema.
pub(crate) struct Reader<'a> {
    /// The whole schema, for its references.
    pub schema: &'a Value,
    /// The environment, for secrets.
    pub lookup: Lookup<'a>,
    /// The folder that paths in the file are relative to.
    pub folder: &'a std::path::Path,
    /// Whether unknown keys are warnings only: the file is a desktop client's.
    pub lenient: bool,
    pub report: &'a mut Report,
    /// What the server at hand lacks.
    lacking: Vec<String>,
    in_server: bool,
}

impl<'a> Reader<'a> {
    pub fn new(
        schema: &'a Value,
        lookup: Lookup<'a>,
        folder: &'a std::path::Path,
        lenient: bool,
        report: &'a mut Report,
    ) -> Self {
        Reader {
            schema,
            lookup,
            folder,
            lenient,
            report,
            lacking: Vec::new(),
            in_server: false,
        }
    }

    /// The file as a value that fits the schema, without the parts that do not.
    pub fn file(&mut self, top: &Node) -> Value {
        let schema = self.schema;
        self.read(top, schema, &Path::default())
            .unwrap_or_else(|| Value::Object(Map::new()))
    }

    /// One value, or nothing if it is wrong and has been reported.
    fn read(&mut self, node: &Node, schema: &Value, path: &Path) -> Option<Value> {
        let schema = self.resolve(schema);
        if schema["x-kind"] == "secret" {
            return self.secret(node, path);
        }
        if let Data::Text(text) = &node.data
            && let Origin::Missing(reason) = &text.origin
        {
            return self.lack(reason, path);
        }
        if let Some(words) = expect::words(schema) {
            return self.word(node, &words, path);
        }
        if let Some(options) = expect::options(schema) {
            return self.one_of(node, &options, path);
        }
        match (expect::type_of(schema), &node.data) {
            (Some("object"), Data::Map(entries)) => self.map(node, entries, schema, path),
            (Some("array"), Data::List(items)) => self.list(node, items, schema, path),
            (Some("string"), _) => self.text(node, schema, path),
            (Some("integer"), _) => self.integer(node, schema, path),
            (Some("boolean"), _) => self.boolean(node, path),
            (Some(_), _) => self.mismatch(node, schema, path),
            (None, _) => self.anything(node, path),
        }
    }

    /// Follows a reference into the schema's definitions.
    fn resolve<'s>(&self, schema: &'s Value) -> &'s Value
    where
        'a: 's,
    {
        match schema["$ref"]
            .as_str()
            .and_then(|reference| reference.strip_prefix('#'))
        {
            Some(pointer) => self.schema.pointer(pointer).unwrap_or(schema),
            None => schema,
        }
    }

    /// Something is missing that the file refers to: the server goes without; elsewhere it has been reported.
    fn lack(&mut self, reason: &str, path: &Path) -> Option<Value> {
        self.lacking.push(format!("{path}: {reason}"));
        None
    }

    fn mismatch(&mut self, node: &Node, schema: &Value, path: &Path) -> Option<Value> {
        let text = format!("is {}; write {}", node.noun(), expectation(self, schema));
        self.report.fault(node.at, path, text);
        None
    }

    /// A value of several possible shapes: the one that its own shape admits.
    fn one_of(&mut self, node: &Node, options: &[&Value], path: &Path) -> Option<Value> {
        let fitting = options
            .iter()
            .find(|option| expect::admits(self, option, node));
        match fitting {
            Some(option) => self.read(node, option, path),
            None => {
                let all: Vec<_> = options
                    .iter()
                    .map(|option| expectation(self, option))
                    .collect();
                let is = match &node.data {
                    Data::Text(text) if text.origin == Origin::File => {
                        Quoted(&text.text, '`').to_string()
                    }
                    _ => node.noun().to_owned(),
                };
                self.report.fault(
                    node.at,
                    path,
                    format!("is {is}; write {}", all.join(", or ")),
                );
                None
            }
        }
    }

    fn list(&mut self, node: &Node, items: &[Node], schema: &Value, path: &Path) -> Option<Value> {
        let least = schema["minItems"].as_u64().unwrap_or(0);
        if (items.len() as u64) < least {
            let item = expectation(self, &schema["items"]);
            self.report.fault(
                node.at,
                path,
                format!("is empty; write {item} at least once"),
            );
        }
        let read = items.iter().enumerate();
        let read =
            read.filter_map(|(index, item)| self.read(item, &schema["items"], &path.item(index)));
        let list: Vec<_> = read.collect();
        (list.len() as u64 >= least).then_some(Value::Array(list))
    }

    fn map(
        &mut self,
        node: &Node,
        entries: &[Entry],
        schema: &Value,
        path: &Path,
    ) -> Option<Value> {
        let mut map = Map::new();
        for entry in entries {
            let here = path.key(&entry.written);
            let known = schema["properties"].get(&entry.key);
            let value = match known
                .or_else(|| schema.get("additionalProperties").filter(|s| s.is_object()))
            {
                Some(schema) if known.is_some() => match entry.value.data {
                    // `servers:` without anything is as good as left out.
                    Data::Null => None,
                    _ => self.read(&entry.value, schema, &here),
                },
                Some(item) => self.named(entry, schema, item, &here),
                None => self.unknown(entry, schema, &here),
            };
            map.extend(value.map(|value| (entry.key.clone(), value)));
        }
        match self.complete(node, &map, schema, path) {
            true => Some(Value::Object(map)),
            false => None,
        }
    }

    /// An entry whose key the operator chooses.
    fn named(&mut self, entry: &Entry, map: &Value, item: &Value, path: &Path) -> Option<Value> {
        let kind = map["propertyNames"]["x-kind"].as_str().unwrap_or_default();
        if let Some(Err(wrong)) = value::kind(kind).map(|kind| (kind.check)(&entry.key)) {
            self.report.fault(entry.at, path, wrong.to_string());
            return None;
        }
        let item = self.resolve(item);
        let empty = Node {
            at: entry.value.at,
            data: Data::Map(Vec::new()),
        };
        let value = match entry.value.data {
            Data::Null if expect::type_of(item) == Some("object") => &empty,
            _ => &entry.value,
        };
        if kind != <value::ServerId as value::Written>::KIND {
            return self.read(value, item, path);
        }
        self.in_server = true;
        let server = self.read(value, item, path);
        self.in_server = false;
        let lacking = std::mem::take(&mut self.lacking);
        server.map(|mut server| {
            if !lacking.is_empty() {
                server["unavailable"] = lacking.join("; ").into();
            }
            server
        })
    }

    fn unknown(&mut self, entry: &Entry, schema: &Value, path: &Path) -> Option<Value> {
        let advice = suggest::advice(self, &entry.key, schema);
        match self.lenient {
            true => self
                .report
                .warn(entry.at, path, format!("{advice}; it is ignored")),
            false => self.report.fault(entry.at, path, advice),
        }
        None
    }

    /// Whether nothing is missing. What is there but wrong has been reported already.
    fn complete(
        &mut self,
        node: &Node,
        map: &Map<String, Value>,
        schema: &Value,
        path: &Path,
    ) -> bool {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let mut complete = true;
        for key in required
            .iter()
            .filter_map(Value::as_str)
            .filter(|key| !map.contains_key(*key))
        {
            complete = false;
            if node.get(key).is_none() {
                let expected = expectation(self, &schema["properties"][key]);
                self.report.fault(
                    node.at,
                    path,
                    format!("has no `{key}`; write {expected} there"),
                );
            }
        }
        complete
    }

    /// A value that may be anything: it becomes a parameter of a tool.
    fn anything(&mut self, node: &Node, path: &Path) -> Option<Value> {
        Some(match &node.data {
            Data::Null => Value::Null,
            Data::Bool(boolean) => Value::Bool(*boolean),
            Data::Number(_, Some(integer)) => (*integer).into(),
            Data::Number(written, None) => match written
                .replace('_', "")
                .parse::<f64>()
                .map(serde_json::Number::from_f64)
            {
                Ok(Some(number)) => Value::Number(number),
                _ => {
                    self.report.fault(
                        node.at,
                        path,
                        "is a number that JSON does not have; write a finite one",
                    );
                    return None;
                }
            },
            Data::Text(text) => match &text.origin {
                Origin::Missing(reason) => return self.lack(&reason.clone(), path),
                _ => Value::String(text.text.clone()),
            },
            Data::List(items) => {
                let items = items.iter().enumerate();
                Value::Array(
                    items
                        .filter_map(|(index, item)| self.anything(item, &path.item(index)))
                        .collect(),
                )
            }
            Data::Map(entries) => {
                let read = |entry: &Entry| {
                    Some((
                        entry.key.clone(),
                        self.anything(&entry.value, &path.key(&entry.written))?,
                    ))
                };
                Value::Object(entries.iter().filter_map(read).collect())
            }
        })
    }
}
