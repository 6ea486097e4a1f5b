//! `docs/configuration.md` lists every setting that there is, as the schema has it.

use super::blocks::{read, root};
use serde_json::Value;
use std::fmt::Write;

const PAGE: &str = "docs/configuration.md";
/// What stands below it is made from the schema.
const MARK: &str =
    "<!-- What follows is made from the schema: UPDATE_DOCS=1 cargo test --test docs -->\n";

/// The sections, in the order of a file.
const SECTIONS: &[(&str, &str)] = &[
    ("The file", ""),
    ("tls", "Tls"),
    ("servers.NAME", "Server"),
    ("servers.NAME.start", "Start"),
    ("servers.NAME.limits", "ServerLimits"),
    ("servers.NAME.timeouts", "Timeouts"),
    ("servers.NAME.tools", "Tools"),
    ("servers.NAME.prompts, servers.NAME.resources", "Shown"),
    ("endpoints.PATH", "Endpoint"),
    ("endpoints.PATH.tools", "Selection"),
    ("names", "Names"),
    ("auth", "Keys"),
    ("auth.api_keys[]", "ApiKey"),
    ("limits", "Limits"),
    ("streams", "Streams"),
    ("streams.replay", "Replay"),
    ("discovery", "Discovery"),
    ("drain", "Drain"),
    ("telemetry.log", "Log"),
    ("admin", "Admin"),
];

#[test]
fn every_setting_is_listed_with_its_default() {
    let page = read(PAGE);
    let (head, below) = page.split_once(MARK).expect("the mark stands in the page");
    let listed = reference(&drawbridge::config::schema());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root().join(PAGE), format!("{head}{MARK}{listed}")).unwrap();
        return;
    }
    assert!(
        below == listed,
        "{PAGE} is old; run this test again with UPDATE_DOCS=1"
    );
}

/// A part of the schema that has settings is a section, or is said in one line where it stands.
#[test]
fn no_part_of_the_schema_is_left_out() {
    let schema = drawbridge::config::schema();
    for (name, part) in schema["$defs"].as_object().expect("the schema has parts") {
        let sections = part["properties"]
            .as_object()
            .is_some_and(|settings| settings.len() > 1);
        let listed = SECTIONS.iter().any(|(_, part)| part == name);
        assert!(listed || !sections, "{name} has no section");
    }
}

fn reference(schema: &Value) -> String {
    let mut out = String::new();
    for (title, part) in SECTIONS {
        let part = match *part {
            "" => schema,
            name => &schema["$defs"][name],
        };
        let heading = match title.contains(' ') && !title.contains('.') {
            true => (*title).to_owned(),
            false => format!("`{}`", title.replace(", ", "`, `")),
        };
        let about = part["description"].as_str().unwrap_or_default();
        let _ = write!(out, "\n## {heading}\n\n{}\n\n", one_line(about));
        out.push_str("| key | what | takes | default |\n|---|---|---|---|\n");
        let settings = part["properties"]
            .as_object()
            .expect("a section has settings");
        for (key, setting) in settings.iter().filter(|(key, _)| *key != "$schema") {
            let about = one_line(setting["description"].as_str().unwrap_or_default());
            let takes = takes(schema, setting);
            let needed = part["required"]
                .as_array()
                .is_some_and(|all| all.iter().any(|k| k == key));
            let default = match needed {
                true => "needed".to_owned(),
                false => default(schema, setting),
            };
            let _ = writeln!(out, "| `{key}` | {about} | {takes} | {default} |");
        }
    }
    out
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

/// The part that a setting refers to.
fn target<'a>(schema: &'a Value, setting: &'a Value) -> &'a Value {
    match setting["$ref"]
        .as_str()
        .and_then(|r| r.strip_prefix("#/$defs/"))
    {
        Some(name) => &schema["$defs"][name],
        None => setting,
    }
}

/// The choices of a setting, without the one that leaves it out.
fn choices<'a>(schema: &'a Value, setting: &'a Value) -> Vec<&'a Value> {
    let setting = target(schema, setting);
    if setting["x-kind"].is_string() {
        return vec![setting];
    }
    let some = setting["anyOf"].as_array().or(setting["oneOf"].as_array());
    let Some(some) = some else {
        return vec![setting];
    };
    let given = some.iter().filter(|choice| choice["type"] != "null");
    given.flat_map(|choice| choices(schema, choice)).collect()
}

fn takes(schema: &Value, setting: &Value) -> String {
    let mut words: Vec<String> = Vec::new();
    for choice in choices(schema, setting) {
        let word = kind(schema, choice);
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(", ")
}

fn kind(schema: &Value, choice: &Value) -> String {
    if let Some(word) = choice["const"].as_str() {
        return format!("`{word}`");
    }
    if let Some(words) = choice["enum"].as_array() {
        let words = words
            .iter()
            .filter_map(Value::as_str)
            .map(|w| format!("`{w}`"));
        return words.collect::<Vec<_>>().join(", ");
    }
    let range = |low: &str, high: &str| match (&choice[low], &choice[high]) {
        (Value::Null, _) | (_, Value::Null) => String::new(),
        (low, high) => format!(", {} to {}", plain(low), plain(high)),
    };
    let types: Vec<&str> = match &choice["type"] {
        Value::Array(all) => all
            .iter()
            .filter_map(Value::as_str)
            .filter(|t| *t != "null")
            .collect(),
        one => one.as_str().into_iter().collect(),
    };
    match (choice["x-kind"].as_str(), types.first().copied()) {
        (Some("duration"), _) => format!("duration{}", range("x-min", "x-max")),
        (Some("size"), _) => format!("size{}", range("x-min", "x-max")),
        (Some("backoff"), _) => "two durations: `1s..30s`".into(),
        (Some("address"), _) => "`HOST:PORT`".into(),
        (Some("address-or-off"), _) => "`HOST:PORT`, `off`".into(),
        (Some("plain"), _) => "text".into(),
        (Some(kind), _) => kind.replace('-', " "),
        (None, Some("integer")) => format!("number{}", range("minimum", "maximum")),
        (None, Some("boolean")) => "`true`, `false`".into(),
        (None, Some("string")) => "text".into(),
        (None, Some("array")) => match takes(schema, &choice["items"]).as_str() {
            "" => "list".into(),
            one if choice["items"]["$ref"].is_string() && one == "section" => {
                "list of sections".into()
            }
            one => format!("list of {one}"),
        },
        (None, Some("object")) if choice["properties"].is_object() => "section".into(),
        (None, Some("object")) => match &choice["additionalProperties"] {
            Value::Bool(_) | Value::Null => "map".into(),
            value => match takes(schema, value).as_str() {
                "" => "map".into(),
                "section" => "map of sections".into(),
                one => format!("map of {one}"),
            },
        },
        _ => String::new(),
    }
}

fn default(schema: &Value, setting: &Value) -> String {
    let value = match &setting["default"] {
        Value::Null => &target(schema, setting)["default"],
        value => value,
    };
    match value {
        Value::Null => String::new(),
        Value::Array(all) if all.is_empty() => String::new(),
        Value::Object(all) if all.is_empty() => String::new(),
        value => format!("`{}`", plain(value)),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
