//! What scripted HTTP servers often do.

use super::hb::{Hb, Reply, Script, Seen};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc::UnboundedSender;

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
        .on("tools/list", |seen| {
            Reply::json(seen.result(listing(&["echo"])))
        })
        .on("tools/call", |seen| {
            Reply::json(seen.result(text(arguments(seen).to_string())))
        })
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

/// The standing streams of a scripted server, to speak on.
#[derive(Clone, Default)]
pub struct Standing {
    open: Arc<Mutex<Vec<(String, UnboundedSender<Bytes>)>>>,
}

impl Standing {
    /// Gives a script GET streams.
    pub fn on(script: Script) -> (Script, Self) {
        let standing = Self::default();
        let opened = standing.clone();
        let script = script.on("GET", move |seen| {
            let (sender, reply) = Reply::live();
            let session = seen.header("mcp-session-id").unwrap_or_default().to_owned();
            opened.open.lock().unwrap().push((session, sender));
            reply
        });
        (script, standing)
    }

    /// Says it on the streams of one backend session.
    pub fn say(&self, session: &str, message: &Value) {
        let event = Bytes::from(format!("data: {message}\n\n"));
        for (_, stream) in self
            .open
            .lock()
            .unwrap()
            .iter()
            .filter(|(s, _)| s == session)
        {
            let _ = stream.send(event.clone());
        }
    }

    /// Says it on every stream.
    pub fn say_to_all(&self, message: &Value) {
        let event = Bytes::from(format!("data: {message}\n\n"));
        for (_, stream) in self.open.lock().unwrap().iter() {
            let _ = stream.send(event.clone());
        }
    }

    /// Ends every stream that is open now.
    pub fn end(&self) {
        self.open.lock().unwrap().clear();
    }

    /// How many were opened and not ended by the test.
    pub fn count(&self, session: &str) -> usize {
        self.open
            .lock()
            .unwrap()
            .iter()
            .filter(|(s, _)| s == session)
            .count()
    }
}
