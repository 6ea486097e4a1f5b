//! What a server said of itself when it was first spoken to.

use crate::mcp::{Era, Revision, message, scan::Scanner, union};
use bytes::Bytes;
use serde_json::{Map, Value};

/// The answer to `initialize` or `server/discover`, kept as it came.
#[derive(Clone, Debug)]
pub struct Profile {
    pub revision: Revision,
    /// `serverInfo`, raw JSON.
    pub server_info: Option<Bytes>,
    /// `capabilities`, raw JSON and parsed.
    pub capabilities_json: Bytes,
    pub capabilities: Map<String, Value>,
    pub instructions: Option<String>,
    /// `supportedVersions` of a modern server.
    pub supported: Vec<Revision>,
    /// The whole result, raw JSON, for endpoints that pass it on.
    pub result: Bytes,
}

impl Profile {
    /// Reads a result of `initialize` (`revision` from it) or of `server/discover` (`revision` as spoken).
    pub fn read(result: &Bytes, spoken: Option<Revision>) -> Result<Self, &'static str> {
        let value: Value = serde_json::from_slice(result).map_err(|_| "the result is not JSON")?;
        let Value::Object(value) = value else {
            return Err("the result is not an object");
        };
        let asked = value.get("protocolVersion").and_then(Value::as_str);
        let revision = match (spoken, asked) {
            (Some(revision), _) => revision,
            (None, Some(text)) => Revision::parse(text).ok_or("an unknown protocolVersion")?,
            (None, None) => return Err("the result has no protocolVersion"),
        };
        let capabilities = match value.get("capabilities") {
            Some(Value::Object(map)) => map.clone(),
            _ => Map::new(),
        };
        let meta_info = value
            .get("_meta")
            .and_then(|m| m.get("io.modelcontextprotocol/serverInfo"));
        let server_info = value.get("serverInfo").or(meta_info);
        let supported = match value.get("supportedVersions") {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        Ok(Self {
            revision,
            server_info: server_info.map(|v| v.to_string().into()),
            capabilities_json: raw_member(result, "capabilities")
                .unwrap_or_else(|| Bytes::from_static(b"{}")),
            capabilities,
            instructions: value
                .get("instructions")
                .and_then(Value::as_str)
                .map(str::to_owned),
            supported: supported.into_iter().filter_map(Revision::parse).collect(),
            result: result.clone(),
        })
    }

    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// Whether the server declared the capability at a dotted path such as `resources.subscribe`.
    pub fn has(&self, path: &str) -> bool {
        union::has(&self.capabilities, path)
    }

    /// Whether the server may have the capability: it declares it, or its revision has no word for it.
    pub fn may_have(&self, path: &str) -> bool {
        let unsaid = path == "completions" && self.revision < Revision::V2025_03_26;
        unsaid || self.has(path)
    }
}

fn raw_member(json: &Bytes, name: &str) -> Option<Bytes> {
    let mut found = None;
    let mut scanner = Scanner::new(json, crate::mcp::scan::MAX_DEPTH);
    let walk = scanner.object(|s, key| {
        let span = s.value()?;
        if key.is(name) {
            found = Some(json.slice(span.range()));
        }
        Ok(())
    });
    walk.ok().and(found)
}

/// The error's message in a response, for a log line or a fault.
pub fn error_text(message: &message::Message) -> String {
    let payload: Value = message
        .payload()
        .and_then(|p| serde_json::from_slice(p).ok())
        .unwrap_or_default();
    let text = payload
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or("no message");
    let code = payload.get("code").cloned().unwrap_or_default();
    format!("{code} {text}").chars().take(200).collect()
}
