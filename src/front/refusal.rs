//! The one place that chooses status codes.

use crate::mcp::{Revision, RpcError, code};
use axum::{body::Body, response::Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

/// Why a request is answered without a server's part in it.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    NoEndpoint,
    Host,
    Origin,
    /// `invalid`: a credential was shown, but not a good one.
    Unauthenticated {
        invalid: bool,
    },
    /// The scopes that the endpoint needs.
    Forbidden(String),
    Method,
    /// A modern client may only POST.
    PostOnly,
    UnknownSession,
    NoSession,
    BadVersion(String),
    ContentType,
    NotAcceptable,
    TooLarge(usize),
    /// The head is over this many bytes.
    HeadTooLarge(usize),
    Slow,
    Interrupted,
    NotJson(String),
    NotMessage(String),
    Batch,
    UnknownEvent,
    Draining,
    /// An error with the request's id, at this status.
    Rpc(StatusCode, Box<RpcError>),
}

impl Refusal {
    /// The response; `id` is the request's, where it could be read.
    pub fn response(self, id: Option<&[u8]>) -> Response {
        let (status, error) = self.parts();
        let body = error.message(id);
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        match self {
            Self::Unauthenticated { invalid } => {
                let challenge = match invalid {
                    true => r#"Bearer realm="drawbridge", error="invalid_token""#,
                    false => r#"Bearer realm="drawbridge""#,
                };
                headers.insert(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static(challenge),
                );
            }
            Self::Forbidden(scopes) => {
                let text = format!(
                    r#"Bearer realm="drawbridge", error="insufficient_scope", scope="{scopes}""#
                );
                if let Ok(value) = HeaderValue::try_from(text) {
                    headers.insert(header::WWW_AUTHENTICATE, value);
                }
            }
            Self::Method => {
                headers.insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
            }
            Self::PostOnly => {
                headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
            }
            Self::Draining | Self::Rpc(StatusCode::TOO_MANY_REQUESTS, _) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }

    /// The status, and the error for the body.
    pub(super) fn parts(&self) -> (StatusCode, RpcError) {
        let plain = |status, text: &str| (status, RpcError::new(code::INVALID_REQUEST, text));
        match self {
            Self::NoEndpoint => plain(StatusCode::NOT_FOUND, "no endpoint at this path"),
            Self::Host => plain(StatusCode::FORBIDDEN, "this Host is not allowed"),
            Self::Origin => plain(StatusCode::FORBIDDEN, "this Origin is not allowed"),
            Self::Unauthenticated { invalid: true } => {
                plain(StatusCode::UNAUTHORIZED, "the key is not valid")
            }
            Self::Unauthenticated { invalid: false } => plain(
                StatusCode::UNAUTHORIZED,
                "a key is needed: Authorization: Bearer KEY",
            ),
            Self::Forbidden(scopes) => plain(
                StatusCode::FORBIDDEN,
                &format!("scopes are missing; needed: {scopes}"),
            ),
            Self::Method => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET, POST and DELETE"),
            Self::PostOnly => plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "without a session, only POST",
            ),
            Self::UnknownSession => plain(
                StatusCode::NOT_FOUND,
                "unknown or ended session; initialize again",
            ),
            Self::NoSession => plain(
                StatusCode::BAD_REQUEST,
                "Mcp-Session-Id is missing: send initialize first, then the id that it returned",
            ),
            Self::BadVersion(asked) => {
                let supported = Revision::ALL.map(Revision::as_str);
                let error =
                    RpcError::new(code::UNSUPPORTED_VERSION, "Unsupported protocol version")
                        .with(json!({"supported": supported, "requested": asked}));
                (StatusCode::BAD_REQUEST, error)
            }
            Self::ContentType => plain(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            ),
            Self::NotAcceptable => plain(
                StatusCode::NOT_ACCEPTABLE,
                "Accept must admit application/json or text/event-stream",
            ),
            Self::TooLarge(limit) => plain(
                StatusCode::PAYLOAD_TOO_LARGE,
                &format!("the body is larger than {limit} bytes"),
            ),
            Self::HeadTooLarge(limit) => plain(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                &format!("the headers are larger than {limit} bytes"),
            ),
            Self::Slow => plain(
                StatusCode::REQUEST_TIMEOUT,
                "the request took too long to arrive",
            ),
            Self::Interrupted => plain(StatusCode::BAD_REQUEST, "the body ended early"),
            Self::NotJson(text) => (
                StatusCode::BAD_REQUEST,
                RpcError::new(code::PARSE, text.clone()),
            ),
            Self::NotMessage(text) => plain(StatusCode::BAD_REQUEST, text),
            Self::Batch => plain(
                StatusCode::BAD_REQUEST,
                "batches exist in revision 2025-03-26 only",
            ),
            Self::UnknownEvent => plain(
                StatusCode::BAD_REQUEST,
                "Last-Event-ID is unknown or no longer kept; nothing can be resumed from there",
            ),
            Self::Draining => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "the gateway is shutting down",
            ),
            Self::Rpc(status, error) => (*status, RpcError::clone(error)),
        }
    }

    /// As the label of a metric.
    pub fn status(&self) -> StatusCode {
        self.parts().0
    }
}

/// The status of a modern answer: revision 2026-07-28 gives some errors one of their own.
pub fn modern_status(code: Option<i64>) -> StatusCode {
    match code {
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}
