//! The files in `config/`, the checked-in schema, and that schema and reader agree.

use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config")
}

/// What the files in `config/` ask for.
fn example_env(name: &str) -> Option<String> {
    matches!(
        name,
        "DRAWBRIDGE_ADMIN_KEY" | "INPUT_TICKETS_TOKEN" | "TICKETS_TOKEN" | "BRAVE_API_KEY" | "HOME"
    )
    .then(|| "example".to_owned())
}

#[test]
fn every_example_loads_without_a_warning() {
    let mut names = Vec::new();
    for file in std::fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        if path.ends_with("schema.json") {
            continue;
        }
        let loaded = Config::load(&path, &example_env).unwrap_or_else(|faults| panic!("{faults}"));
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        assert!(!loaded.config.servers.is_empty());
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(
        names,
        [
            "desktop.json",
            "drawbridge.yaml",
            "hardened.yaml",
            "minimal.toml",
            "vscode.json"
        ]
    );
}

#[test]
fn the_usual_example_starts_without_any_variable() {
    let loaded = Config::load(folder().join("drawbridge.yaml"), &|_| None).unwrap();
    assert!(matches!(
        loaded.config.servers["tickets"].target,
        Target::Unavailable(_)
    ));
    assert!(matches!(
        loaded.config.servers["files"].target,
        Target::Process(_)
    ));
}

#[test]
fn the_checked_in_schema_is_the_schema() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    let path = folder().join("schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == text,
        "config/schema.json is old; run this test again with UPDATE_SCHEMA=1 to write it anew"
    );
}

#[test]
fn every_setting_is_described() {
    fn walk(schema: &Value, path: &str, without: &mut Vec<String>) {
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            if !value["description"].is_string() {
                without.push(format!("{path}.{key}"));
            }
        }
    }
    let (schema, mut without) = (schema(), Vec::new());
    walk(&schema, "", &mut without);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        walk(definition, name, &mut without);
    }
    assert!(without.is_empty(), "{without:?}");
}

/// A file with every setting there is.
fn everything() -> Value {
    json!({
        "listen": ["127.0.0.1:0"], "public_url": "https://x/", "hosts": ["x"], "origins": ["*"],
        "tls": { "cert": "c", "key": "k" },
        "servers": {
            "a": {
                "command": "x", "args": ["y"], "env": { "A": "b", "B": { "env": "TOKEN" } }, "cwd": "/", "inherit_env": ["C"],
                "type": "stdio", "disabled": false, "autoApprove": [], "alwaysAllow": [],
                "protocol": "auto", "isolation": "shared", "start": { "timeout": "1s", "restarts": 0, "backoff": "1s..2s" },
                "limits": { "processes": 1, "per_principal": 1, "idle": "1s", "queue": "0s", "frame": "1KiB", "memory": "1MiB" },
                "timeouts": { "connect": "1s", "call": "1s", "call_max": "1s", "idle_stream": "1s" },
                "tools": { "allow": ["*"], "deny": [], "rename": { "a": "b" }, "describe": { "a": "b" }, "fix": { "a": { "b": [1, { "c": null }] } } },
                "prompts": { "allow": ["*"], "deny": [], "rename": { "a": "b" }, "describe": { "a": "b" } },
                "resources": { "allow": ["*"], "deny": [], "rename": { "a": "b" }, "describe": { "a": "b" } }
            },
            "b": { "url": "http://x/", "headers": { "A": "b", "C": { "env": "TOKEN" } } }
        },
        "endpoints": { "/x": { "servers": ["a"], "tools": { "allow": ["*"], "deny": [] }, "names": "bare", "page_size": 1, "scopes": ["s"] } },
        "single_server": true, "names": { "max": 64 },
        "auth": { "api_keys": [{ "name": "a", "sha256": "0".repeat(64), "scopes": ["s"], "expires": "2099-01-01" }] },
        "limits": { "body": "1KiB", "headers": "4KiB", "request_timeout": "1s", "sessions": 1, "sessions_per_principal": 1, "session_idle": "1s",
                    "json_depth": 8, "batch": 1, "processes": 1, "concurrent_calls_per_session": 1 },
        "streams": { "keep_alive": "1s", "silence": "1s", "retry": "1s", "replay": { "events": 0, "bytes": "0B", "keep": "1s" } },
        "discovery": { "wait": "0s", "list_wait": "0s" }, "drain": { "delay": "0s", "grace": "0s" },
        "telemetry": { "log": { "level": "info", "format": "json" } },
        "admin": { "listen": "off", "key": { "env": "TOKEN" } }
    })
}

#[test]
fn a_file_with_every_setting_fits_schema_and_reader() {
    let file = everything();
    assert_eq!(faults("a.json", &file.to_string()), "");
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(&file)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    for (name, definition) in schema()["$defs"].as_object().unwrap() {
        for (key, _) in definition["properties"].as_object().into_iter().flatten() {
            let known = file.to_string().contains(&format!("\"{key}\":"))
                || matches!(&**key, "envFile" | "file");
            assert!(known, "{name}.{key} is missing from this test");
        }
    }
}

/// Every value of that file replaced by every odd one: never a panic, never something that the reader lets through and
/// the settings do not take, and always a fault or settings.
#[test]
fn whatever_stands_in_a_place_is_read_or_refused() {
    fn pointers(value: &Value, path: String, all: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                pointers(value, format!("{path}/{}", key.replace('/', "~1")), all)
            }),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, value)| pointers(value, format!("{path}/{index}"), all)),
            _ => {}
        }
        all.push(path);
    }
    let odd = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!("é\u{1b}"),
        json!("a\u{0}b"),
        json!("${TOKEN}"),
        json!("${NOPE}"),
        json!("${"),
        json!([]),
        json!(["x", null]),
        json!({}),
        json!({ "x": null }),
        json!({ "env": "NOPE" }),
        json!({ "file": "/dev/null" }),
    ];
    let schema = schema::bare();
    // A section at a time: the whole file each time would take a minute.
    for (section, value) in everything().as_object().unwrap() {
        let (file, mut all) = (json!({ section: value }), vec![String::new()]);
        pointers(value, format!("/{section}"), &mut all);
        for (path, odd) in all
            .iter()
            .flat_map(|path| odd.iter().map(move |odd| (path, odd)))
        {
            let mut file = file.clone();
            *file.pointer_mut(path).unwrap() = odd.clone();
            let read = load::parse("a.json", &file.to_string(), None, &env, &schema);
            let faults = read.map_or_else(|faults| faults.to_string(), |_| String::new());
            assert!(
                !faults.contains("please report this"),
                "{path} {odd} {faults}"
            );
            assert!(!faults.contains(['\u{1b}', '\0']), "{path} {odd} {faults}");
        }
    }
}
