//! Why a request has no result: the JSON-RPC errors that the example servers answer with, and the one
//! ending that is not an error, a question to the client that must be answered first (2026-07-28).

use serde_json::{Value, json};

use super::revision::Revision;

/// Not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// Not a JSON-RPC message, or one that may not come now.
pub const INVALID_REQUEST: i64 = -32600;
/// Unknown method, or one behind a capability that the server has not declared.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Unknown tool, prompt or cursor, or a field that is missing.
pub const INVALID_PARAMS: i64 = -32602;
/// Unknown resource before 2026-07-28.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A header that is missing or says something else than the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a client capability that was not declared (2026-07-28).
pub const MISSING_CAPABILITY: i64 = -32021;
/// A revision that the server does not speak (2026-07-28).
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A JSON-RPC error.
    Rpc {
        /// The error's code.
        code: i64,
        /// One sentence.
        message: String,
        /// Details, or null for none.
        data: Value,
    },
    /// The client has to answer this first; becomes an `input_required` result.
    Input {
        /// The key of the question within this request.
        key: &'static str,
        /// `{method, params}` of the question.
        request: Value,
    },
    /// The tool could not do it; becomes a result with `isError`, so that a model can read why.
    Tool(String),
    /// The request was cancelled: there is no answer at all.
    Cancelled,
}

impl Fault {
    /// A JSON-RPC error without data.
    pub fn rpc(code: i64, message: impl Into<String>) -> Self {
        Self::with_data(code, message, Value::Null)
    }

    /// A JSON-RPC error with data.
    pub fn with_data(code: i64, message: impl Into<String>, data: Value) -> Self {
        Self::Rpc {
            code,
            message: message.into(),
            data,
        }
    }

    /// The tool failed for this reason.
    pub fn tool(reason: impl Into<String>) -> Self {
        Self::Tool(reason.into())
    }

    /// -32602 with this message.
    pub fn params(message: impl Into<String>) -> Self {
        Self::rpc(INVALID_PARAMS, message)
    }

    /// The method is not there.
    pub fn method(method: &str) -> Self {
        Self::rpc(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    /// No resource has that URI; the code depends on the revision.
    pub fn resource(revision: Revision, uri: &str) -> Self {
        let code = if revision.is_modern() {
            INVALID_PARAMS
        } else {
            RESOURCE_NOT_FOUND
        };
        Self::with_data(code, "Resource not found", json!({ "uri": uri }))
    }

    /// The JSON-RPC error object; other endings have none and read as an internal error.
    pub fn to_error(&self) -> Value {
        match self {
            Self::Rpc {
                code,
                message,
                data: Value::Null,
            } => json!({ "code": code, "message": message }),
            Self::Rpc {
                code,
                message,
                data,
            } => json!({ "code": code, "message": message, "data": data }),
            Self::Input { .. } | Self::Tool(_) | Self::Cancelled => {
                json!({ "code": -32603, "message": "Internal error" })
            }
        }
    }
}

/// The response message that carries `result` for the request `id`.
pub fn result_message(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The response message that carries `fault` for the request `id`; null where the id could not be read.
pub fn error_message(id: &Value, fault: &Fault) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "error": fault.to_error() });
    if !id.is_null() {
        message["id"] = id.clone();
    }
    message
}

/// The notification `method`; parameters that are null are left out.
pub fn notification(method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if !params.is_null() {
        message["params"] = params;
    }
    message
}
