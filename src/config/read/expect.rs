//! What a schema asks for: questions to it, and its answer in words.

use serde_json::Value;

use super::Reader;
use crate::config::{
    tree::{Data, Node},
    value,
};

/// The type that a schema asks for. `null` beside it says only that the key may be left out; `number` and `boolean`
/// beside `string` are read as texts.
pub(super) fn type_of(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(one) => Some(one),
        Value::Array(several) => several
            .iter()
            .filter_map(Value::as_str)
            .find(|one| *one != "null"),
        _ => None,
    }
}

/// The words of a schema that admits only some, each with its description.
pub(super) fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(word) = schema["const"].as_str() {
        return Some(vec![word]);
    }
    if let Some(words) = schema["enum"].as_array() {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    let options = schema["oneOf"].as_array()?;
    let words = options.iter().map(words).collect::<Option<Vec<_>>>()?;
    Some(words.into_iter().flatten().collect())
}

/// The shapes of a schema that admits several, without `null`.
pub(super) fn options(schema: &Value) -> Option<Vec<&Value>> {
    let options = schema["anyOf"].as_array()?;
    Some(
        options
            .iter()
            .filter(|option| option["type"] != "null")
            .collect(),
    )
}

/// Whether a value has the shape that a schema asks for, whatever is inside. Of several words the right one.
pub(super) fn admits(reader: &Reader<'_>, schema: &Value, node: &Node) -> bool {
    let schema = reader.resolve(schema);
    if let Some(options) = options(schema) {
        return options.iter().any(|option| admits(reader, option, node));
    }
    // A single word beside other shapes: only that word.
    if let Some(word) = schema["const"].as_str() {
        return node.as_text() == Some(word);
    }
    match &node.data {
        Data::Map(_) => type_of(schema) == Some("object"),
        Data::List(_) => type_of(schema) == Some("array"),
        _ if words(schema).is_some() => true,
        Data::Text(_) => !matches!(type_of(schema), Some("object" | "array")),
        _ => !matches!(type_of(schema), Some("object" | "array" | "string")),
    }
}

/// What a schema asks for, in words that follow "write".
pub(super) fn expectation(reader: &Reader<'_>, schema: &Value) -> String {
    let schema = reader.resolve(schema);
    if schema["x-kind"] == "secret" {
        return "a text, `{ env: NAME }` or `{ file: PATH }`".into();
    }
    if let Some(kind) = schema["x-kind"].as_str().and_then(value::kind) {
        return format!("{} such as `{}`", kind.noun, kind.example);
    }
    if let Some(words) = words(schema) {
        return any_of(&words);
    }
    if let Some(options) = options(schema) {
        let all: Vec<_> = options
            .iter()
            .map(|option| expectation(reader, option))
            .collect();
        return all.join(", or ");
    }
    match type_of(schema) {
        Some("object") => object(reader, schema),
        Some("array") => {
            let item = reader.resolve(&schema["items"]);
            match item["x-kind"].as_str().and_then(value::kind) {
                Some(kind) => format!("a list such as `[{}]`", kind.example),
                None => "a list such as `[a, b]`".into(),
            }
        }
        Some("integer") => format!("a whole number {}", range(schema)),
        Some("boolean") => "`true` or `false`".into(),
        Some("string") => "a text".into(),
        _ => "a value".into(),
    }
}

fn object(reader: &Reader<'_>, schema: &Value) -> String {
    let keys = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str());
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let mut named: Vec<&str> = required.chain(keys).collect();
    named.dedup();
    match named[..] {
        [] => match reader.resolve(&schema["additionalProperties"])["properties"].is_object() {
            true => "names with a map for each, such as `{ NAME: { … } }`".into(),
            false => "names and values, such as `{ NAME: value }`".into(),
        },
        [one] => format!("a map such as `{{ {one}: … }}`"),
        [first, second, ..] => format!("a map such as `{{ {first}: …, {second}: … }}`"),
    }
}

/// The limits of an integer.
pub(super) fn range(schema: &Value) -> String {
    match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(least), Some(most)) => format!("from {least} to {most}"),
        (Some(least), None) => format!("of at least {least}"),
        _ => "such as 10".into(),
    }
}

/// `a`, `b` or `c`.
pub(super) fn any_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match &quoted[..] {
        [] => "nothing".into(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
