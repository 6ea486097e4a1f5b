//! Requests on their way to a server of the other era.

use crate::mcp::{Edit, Message, Revision, message::quote, raw};

const NS: &str = "io.modelcontextprotocol/";

/// What a modern server is told with every request ("Per-request protocol fields").
#[derive(Clone, Debug)]
pub struct Hop<'a> {
    pub revision: Revision,
    /// Raw JSON.
    pub client_info: &'a [u8],
    /// Raw JSON.
    pub capabilities: &'a [u8],
    pub log_level: Option<&'a str>,
}

impl Hop<'_> {
    fn members(&self) -> [(String, Vec<u8>); 3] {
        let key = |name: &str| format!("{NS}{name}");
        [
            (key("clientCapabilities"), self.capabilities.to_vec()),
            (key("clientInfo"), self.client_info.to_vec()),
            (
                key("protocolVersion"),
                quote(self.revision.as_str()).into_bytes(),
            ),
        ]
    }

    /// `_meta` as JSON text, for requests of the gateway's own.
    pub fn meta(&self) -> String {
        let mut out = String::from("{");
        for (name, value) in self.members() {
            out.push_str(&format!("\"{name}\":{},", String::from_utf8_lossy(&value)));
        }
        match self.log_level {
            Some(level) => out.push_str(&format!("\"{NS}logLevel\":{}", quote(level))),
            None => {
                out.pop();
            }
        }
        out.push('}');
        out
    }
}

/// Adds the metadata that a modern server needs to a legacy client's request.
pub fn to_modern(message: &Message, hop: &Hop<'_>, edit: &mut Edit) {
    let inner = message.inner();
    let text = message.bytes();
    if let Some(meta) = inner
        .meta
        .filter(|m| message.raw(*m).first() == Some(&b'{'))
    {
        if let Some(level) = hop.log_level {
            edit.add_member(
                text,
                meta,
                &format!("{NS}logLevel"),
                quote(level).as_bytes(),
            );
        }
        for (name, value) in hop.members() {
            edit.add_member(text, meta, &name, &value);
        }
        return;
    }
    let meta = hop.meta();
    match (message.payload_span(), inner.meta) {
        (_, Some(odd)) => {
            edit.replace(odd, meta);
        }
        (Some(params), None) => {
            edit.add_member(text, params, "_meta", meta.as_bytes());
        }
        (None, None) => {
            // The message has no `params`: they go in front of its last brace.
            let end = text.iter().rposition(|b| *b == b'}').unwrap_or(text.len());
            edit.insert(end, format!(",\"params\":{{\"_meta\":{meta}}}"));
        }
    }
}

/// Takes the metadata of the modern hop out of a request; `token` replaces the progress token, if there is one.
/// What else stands in `_meta` stays.
pub fn to_legacy(message: &Message, token: Option<&[u8]>, edit: &mut Edit) {
    let Some(span) = message.inner().meta else {
        return;
    };
    let Some(mut meta) = raw::object(message.raw(span)) else {
        return;
    };
    for name in [
        "protocolVersion",
        "clientInfo",
        "clientCapabilities",
        "logLevel",
    ] {
        meta.shift_remove(&format!("{NS}{name}"));
    }
    if let Some(token) = token.and_then(|t| raw::value(String::from_utf8_lossy(t))) {
        meta.insert("progressToken".into(), token);
    }
    edit.replace(span, raw::write(&meta));
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::{Value, json};

    fn parse(text: &str) -> Message {
        Message::parse(Bytes::copy_from_slice(text.as_bytes()), 64).unwrap()
    }

    fn modern(text: &str) -> Value {
        let hop = Hop {
            revision: Revision::V2026_07_28,
            client_info: br#"{"name":"c"}"#,
            capabilities: b"{}",
            log_level: Some("debug"),
        };
        let message = parse(text);
        let mut edit = Edit::new();
        to_modern(&message, &hop, &mut edit);
        serde_json::from_slice(&edit.apply(message.bytes())).unwrap()
    }

    #[test]
    fn a_legacy_request_gets_what_a_modern_server_needs() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"x":2},"a":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":null}}"#,
        ] {
            let meta = &modern(text)["params"]["_meta"];
            assert_eq!(meta[format!("{NS}protocolVersion")], "2026-07-28", "{text}");
            assert_eq!(meta[format!("{NS}clientInfo")], json!({"name": "c"}));
            assert_eq!(meta[format!("{NS}clientCapabilities")], json!({}));
            assert_eq!(meta[format!("{NS}logLevel")], "debug");
        }
    }

    #[test]
    fn a_modern_request_loses_its_hop_and_nothing_else() {
        let message = parse(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","_meta":{{"{NS}protocolVersion":"2026-07-28","{NS}clientCapabilities":{{}},"progressToken":"t","com.example/k":1}}}}}}"#
        ));
        let mut edit = Edit::new();
        to_legacy(&message, Some(b"7"), &mut edit);
        let out: Value = serde_json::from_slice(&edit.apply(message.bytes())).unwrap();
        assert_eq!(
            out["params"]["_meta"],
            json!({"progressToken": 7, "com.example/k": 1})
        );
    }
}
