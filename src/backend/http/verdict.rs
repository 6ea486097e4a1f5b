//! What an HTTP status and an error say about the link as a whole.
//!
//! Servers differ in how they refuse a session that they do not know: 404 as the
//! specification has it, 400 with a text, with a JSON-RPC error or without. Pure.

use crate::{
    backend::is_modern_error,
    mcp::{Era, Message, Revision, code},
};
use http::StatusCode;
use serde_json::Value;

/// Codes that SDKs give for a request refused before its method was looked at.
const BEFORE_METHODS: [i64; 3] = [-32000, -32001, code::INVALID_REQUEST];

/// What a refusal means for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is about the one request.
    Request,
    /// The server does not know the link's session.
    SessionLost,
    /// The server does not speak the link's era any more.
    WrongEra,
}

/// A refusal as it came: `error` if there was one, and whether it named the request's own id.
pub(super) struct Refusal<'a> {
    pub status: StatusCode,
    pub error: Option<&'a Message>,
    pub own_id: bool,
    pub text: &'a [u8],
}

impl<'a> Refusal<'a> {
    pub fn without_error(status: StatusCode, text: &'a [u8]) -> Self {
        Self {
            status,
            error: None,
            own_id: false,
            text,
        }
    }

    /// Judges a refusal on a link of `era`; `session` tells whether the server gave it an id.
    pub fn judge(&self, era: Era, session: bool) -> Verdict {
        match era {
            Era::Legacy => self.legacy(session),
            Era::Modern => self.modern(),
        }
    }

    fn legacy(&self, session: bool) -> Verdict {
        let code = self.error.and_then(Message::error_code);
        match self.status {
            StatusCode::BAD_REQUEST if is_modern_error(code) => Verdict::WrongEra,
            StatusCode::NOT_FOUND if session && !self.is_of_a_method(code) => Verdict::SessionLost,
            StatusCode::BAD_REQUEST if session && self.came_early(code) && self.says("session") => {
                Verdict::SessionLost
            }
            StatusCode::BAD_REQUEST if self.came_early(code) && self.says("not initialized") => {
                Verdict::SessionLost
            }
            _ => Verdict::Request,
        }
    }

    /// A 404 may also be an unknown method, or what a tool said.
    fn is_of_a_method(&self, code: Option<i64>) -> bool {
        self.own_id && !(self.came_early(code) && self.says("session"))
    }

    fn modern(&self) -> Verdict {
        let code = self.error.and_then(Message::error_code);
        let shape = matches!(self.status.as_u16(), 400 | 404 | 405 | 406 | 415);
        let asks = self.came_early(code) && (self.says("session") || self.says("initialize"));
        if shape && (self.error.is_none() || asks) {
            return Verdict::WrongEra;
        }
        Verdict::Request
    }

    fn came_early(&self, code: Option<i64>) -> bool {
        self.error.is_none() || code.is_some_and(|c| BEFORE_METHODS.contains(&c))
    }

    fn says(&self, word: &str) -> bool {
        let text = String::from_utf8_lossy(&self.text[..self.text.len().min(4096)]);
        text.to_ascii_lowercase().contains(word)
    }
}

/// Revisions that a refusal offers: `data.supported` of its error, else those that its text names besides `asked`.
pub(super) fn offered(error: Option<&Message>, text: &[u8], asked: Revision) -> Vec<Revision> {
    let payload = error.and_then(|e| serde_json::from_slice::<Value>(e.payload()?).ok());
    let listed = payload
        .as_ref()
        .and_then(|p| p.get("data")?.get("supported")?.as_array());
    if let Some(listed) = listed {
        let texts = listed.iter().filter_map(Value::as_str);
        return texts.filter_map(Revision::parse).collect();
    }
    let text = String::from_utf8_lossy(&text[..text.len().min(4096)]);
    Revision::ALL
        .into_iter()
        .filter(|r| *r != asked && text.contains(r.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn judge(status: u16, body: &'static str, own_id: bool, era: Era, session: bool) -> Verdict {
        let error = Message::parse(Bytes::from_static(body.as_bytes()), 64).ok();
        let refusal = Refusal {
            status: StatusCode::from_u16(status).unwrap(),
            error: error.as_ref(),
            own_id,
            text: body.as_bytes(),
        };
        refusal.judge(era, session)
    }

    #[test]
    fn a_lost_session_is_known_in_every_servers_words() {
        let lost = |status, body, own| judge(status, body, own, Era::Legacy, true);
        for (status, body, own) in [
            (404, "", false),
            (404, "Not Found: Session not found", false),
            (
                404,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
                false,
            ),
            (
                404,
                r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#,
                false,
            ),
            (
                404,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}"#,
                true,
            ),
            (
                400,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
                true,
            ),
            (
                400,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}"#,
                false,
            ),
            (400, "Invalid Session", false),
        ] {
            assert_eq!(
                lost(status, body, own),
                Verdict::SessionLost,
                "{status} {body}"
            );
        }
    }

    #[test]
    fn what_a_method_says_of_itself_loses_no_session() {
        for (status, body) in [
            (
                404,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#,
            ),
            (
                400,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such browser session"}}"#,
            ),
            (
                500,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"session"}}"#,
            ),
        ] {
            assert_eq!(
                judge(status, body, true, Era::Legacy, true),
                Verdict::Request
            );
        }
        assert_eq!(judge(404, "", false, Era::Legacy, false), Verdict::Request);
    }

    #[test]
    fn only_what_no_modern_server_says_counts_against_it() {
        let modern = |status, body| judge(status, body, true, Era::Modern, false);
        assert_eq!(modern(404, "nothing here"), Verdict::WrongEra);
        let asks = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Bad Request: Mcp-Session-Id header is required"}}"#;
        assert_eq!(modern(400, asks), Verdict::WrongEra);
        let unknown = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}"#;
        assert_eq!(modern(404, unknown), Verdict::Request);
        assert_eq!(modern(503, ""), Verdict::Request);
    }

    #[test]
    fn a_server_that_became_modern_loses_its_legacy_links() {
        let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"x","data":{"supported":["2026-07-28"]}}}"#;
        assert_eq!(judge(400, body, true, Era::Legacy, true), Verdict::WrongEra);
    }

    #[test]
    fn offered_revisions_are_read_from_data_or_text() {
        let asked = Revision::V2025_11_25;
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unsupported","data":{"supported":["2024-11-05","x"],"requested":"2025-11-25"}}}"#;
        let error = Message::parse(Bytes::from_static(error.as_bytes()), 64).unwrap();
        assert_eq!(offered(Some(&error), b"", asked), [Revision::V2024_11_05]);
        let text = b"Unsupported 2025-11-25 (supported versions: 2025-06-18, 2025-03-26)";
        assert_eq!(
            offered(None, text, asked),
            [Revision::V2025_06_18, Revision::V2025_03_26]
        );
    }
}
