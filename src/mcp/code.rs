//! Error codes, and the error messages that the gateway makes itself.
//!
//! Codes of the protocol stand where the specification put them; codes of our
//! own stand outside -32768…-32000, as revision 2026-07-28 asks ("Error Codes").

use bytes::Bytes;
use serde_json::Value;

pub const PARSE: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL: i64 = -32603;
/// Resource not found, 2025-11-25 and earlier.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
pub const HEADER_MISMATCH: i64 = -32020;
pub const MISSING_CAPABILITY: i64 = -32021;
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// URL elicitation required, 2025-11-25 only.
pub const URL_ELICITATION: i64 = -32042;
/// A server cannot be reached, or crashed.
pub const UNREACHABLE: i64 = -31001;
/// A server did not answer in time.
pub const TIMED_OUT: i64 = -31002;
/// Over a limit of the gateway.
pub const OVER_LIMIT: i64 = -31003;
/// A server refused the credentials it was sent.
pub const REFUSED: i64 = -31004;
/// The call needs something that this pair of revisions cannot carry here.
pub const NOT_CARRIED: i64 = -31006;

/// An error object of ours on its way to a peer.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The whole message; `id` is the raw token of the request, left out where it could not be read.
    pub fn message(&self, id: Option<&[u8]>) -> Bytes {
        let mut out = Vec::with_capacity(96 + self.message.len());
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
        if let Some(id) = id {
            out.extend_from_slice(b"\"id\":");
            out.extend_from_slice(id);
            out.push(b',');
        }
        out.extend_from_slice(b"\"error\":");
        let mut error = serde_json::Map::new();
        error.insert("code".into(), self.code.into());
        error.insert("message".into(), self.message.as_str().into());
        if let Some(data) = &self.data {
            error.insert("data".into(), data.clone());
        }
        out.extend_from_slice(Value::Object(error).to_string().as_bytes());
        out.push(b'}');
        out.into()
    }
}

/// A response that carries `result`, which must be JSON text.
pub fn result_message(id: &[u8], result: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(32 + id.len() + result.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result);
    out.push(b'}');
    out.into()
}

/// A notification or request of ours; `params` must be JSON text.
pub fn call_message(id: Option<&str>, method: &str, params: Option<&[u8]>) -> Bytes {
    let mut out = Vec::with_capacity(64 + params.map_or(0, <[u8]>::len));
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
    if let Some(id) = id {
        out.extend_from_slice(b"\"id\":");
        out.extend_from_slice(id.as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(b"\"method\":\"");
    out.extend_from_slice(method.as_bytes());
    out.push(b'"');
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out.into()
}
