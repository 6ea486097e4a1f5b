//! What scripted HTTP servers often do.

use super::hb::{Hb, Reply, Script, Seen};
use serde_json::{Value, json};

/// A result of `tools/list`.
pub fn listing(names: &[&str]) -> Value {
    let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
    json!({"tools": names.iter().map(tool).collect::<Vec<_>>()})
}

/// A tool's result with one text.
pub fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

/// What a tool was called with.
pub fn arguments(seen: &Seen) -> Value {
    seen.json()["params"]["arguments"].clone()
}

/// A legacy server with one tool, `echo`, which answers with its arguments.
pub fn echoing() -> Script {
    with_tools(Hb::legacy())
}

/// Gives a script the tool `echo`.
pub fn with_tools(script: Script) -> Script {
    script
        .on("tools/list", |seen| Reply::json(seen.result(listing(&["echo"]))))
        .on("tools/call", |seen| Reply::json(seen.result(text(arguments(seen).to_string()))))
}

/// The same for 2026-07-28.
pub fn modern_echoing() -> Script {
    Hb::modern()
        .on("tools/list", |seen| {
            let mut result = listing(&["echo"]);
            result["resultType"] = "complete".into();
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
            Reply::json(seen.result(result))
        })
        .on("tools/call", |seen| {
            let mut result = text(arguments(seen).to_string());
            result["resultType"] = "complete".into();
            Reply::json(seen.result(result))
        })
}
