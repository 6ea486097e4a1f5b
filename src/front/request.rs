//! The whole path of a request, in order.
//!
//! Host and origin, then who is calling, then whose session it is, and only then
//! limits, headers, body and routing: an unknown session is told so whatever else is
//! wrong with the request.

use super::{
    app::Front,
    door::Barred,
    modern, post,
    refusal::Refusal,
    stream::{EventBody, Opening},
};
use crate::{
    auth::{Denied, Principal},
    mcp::{Era, Revision, header as names},
    router::ClientSession,
};
use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode, header, request::Parts};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts a request while it is answered, so that a drain can wait for it.
pub(super) struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers one request to the endpoint with this number.
pub async fn answer(front: &Arc<Front>, endpoint: usize, request: Request<Body>) -> Response {
    let _running = Running::new(&front.running);
    match admitted(front, endpoint, request).await {
        Ok(response) => response,
        Err((refusal, id)) => {
            let status = refusal.status();
            front
                .metrics
                .refused
                .with_label_values(&[status.as_str()])
                .inc();
            tracing::debug!(status = status.as_u16(), "a request was refused");
            refusal.response(id.as_deref())
        }
    }
}

/// A refusal, and the request's id where it is known.
pub(super) type Refused = (Refusal, Option<Vec<u8>>);

pub(super) fn refuse<T>(refusal: Refusal) -> Result<T, Refused> {
    Err((refusal, None))
}

async fn admitted(
    front: &Arc<Front>,
    endpoint: usize,
    request: Request<Body>,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    if head_size(&parts) > front.settings.head {
        return refuse(Refusal::HeadTooLarge(front.settings.head));
    }
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    if let Err(barred) = front.door.check(authority, &parts.headers) {
        return refuse(barred_refusal(barred, &parts.headers));
    }
    let principal = authenticate(front, endpoint, &parts.headers)?;
    let version = version(&parts.headers);
    if let Some(Ok(revision)) = version
        && revision.era() == Era::Modern
    {
        return match parts.method {
            Method::POST => modern::answer(front, endpoint, principal, revision, parts, body).await,
            _ => refuse(Refusal::PostOnly),
        };
    }
    let session = match parts.headers.get(names::SESSION_ID) {
        None => None,
        Some(id) => {
            let id = id.to_str().unwrap_or_default();
            let found = front.router.sessions.find(id, &principal.name, endpoint);
            Some(found.ok_or((Refusal::UnknownSession, None))?)
        }
    };
    if let Some(Err(asked)) = version {
        let id = match parts.method {
            Method::POST => post::id_of(front, &parts, body).await,
            _ => None,
        };
        return Err((Refusal::BadVersion(asked), id));
    }
    if let Some(session) = &session {
        session.touch();
    }
    match (&parts.method, session) {
        (&Method::POST, session) => {
            post::answer(front, endpoint, principal, session, parts, body).await
        }
        (&Method::GET, Some(session)) => get(front, &session, &parts),
        (&Method::DELETE, Some(session)) => {
            front.router.end(&session.id);
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        (&Method::GET, None) => refuse(Refusal::PostOnly),
        (&Method::DELETE, None) => refuse(Refusal::NoSession),
        _ => refuse(Refusal::Method),
    }
}

/// Bytes of the head, nearly: names, values, and the target.
fn head_size(parts: &Parts) -> usize {
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.len() + 4
    };
    let target = parts.uri.path_and_query().map_or(0, |p| p.as_str().len());
    parts.headers.iter().map(field).sum::<usize>() + target
}

fn barred_refusal(barred: Barred, headers: &HeaderMap) -> Refusal {
    let shown = |name| {
        headers
            .get(name)
            .and_then(|v: &http::HeaderValue| v.to_str().ok())
    };
    match barred {
        Barred::Host => {
            tracing::warn!(
                host = shown(header::HOST),
                "a request with a Host that is not allowed; add it to `hosts` if it is yours"
            );
            Refusal::Host
        }
        Barred::Origin => {
            tracing::warn!(
                origin = shown(header::ORIGIN),
                "a request with an Origin that is not allowed; add it to `origins` if it is yours"
            );
            Refusal::Origin
        }
    }
}

/// Who is calling, and whether the endpoint is open to them.
fn authenticate(front: &Front, endpoint: usize, headers: &HeaderMap) -> Result<Principal, Refused> {
    let admitted = front.gate.admit(credential(headers));
    let principal = admitted.map_err(|denied| {
        let invalid = denied == Denied::Invalid;
        (Refusal::Unauthenticated { invalid }, None)
    })?;
    let needed = &front.router.endpoints[endpoint].scopes;
    if !principal.lacks(needed).is_empty() {
        return refuse(Refusal::Forbidden(needed.join(" ")));
    }
    Ok(principal)
}

/// `Authorization: Bearer KEY`, or `X-API-Key: KEY`.
fn credential(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    let bearer = |value: &'_ str| -> Option<usize> {
        let (scheme, _) = value.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| scheme.len() + 1)
    };
    match text("authorization") {
        Some(value) => Some(match bearer(value) {
            Some(start) => value[start..].trim(),
            None => "",
        }),
        None => text("x-api-key").map(str::trim),
    }
}

/// `MCP-Protocol-Version`: absent, a revision, or text that is none. Several that differ are none.
fn version(headers: &HeaderMap) -> Option<Result<Revision, String>> {
    let mut values = headers.get_all(names::PROTOCOL_VERSION).iter();
    let value = values.next()?;
    let text = value.to_str().unwrap_or_default().trim();
    match values.find(|other| *other != value) {
        None => Some(Revision::parse(text).ok_or_else(|| text.to_owned())),
        Some(other) => Some(Err(format!(
            "{text}, {}",
            other.to_str().unwrap_or_default()
        ))),
    }
}

/// The standing stream, or one that broke.
fn get(
    front: &Arc<Front>,
    session: &Arc<ClientSession>,
    parts: &Parts,
) -> Result<Response, Refused> {
    if !accepts(&parts.headers, "text/event-stream") {
        return refuse(Refusal::NotAcceptable);
    }
    let last = parts.headers.get(names::LAST_EVENT_ID);
    // Text that no event of ours has is an unknown one, not none.
    let last = last
        .map(|v| v.to_str().unwrap_or("?"))
        .filter(|v| !v.is_empty());
    let (outbox, reader, opening) = match last {
        None => {
            let standing = session.streams.standing.clone();
            let reader = standing.attach();
            (standing, reader, Opening::Prime)
        }
        Some(id) => {
            let resumed = session.streams.resume_text(id);
            let (outbox, reader) = resumed.map_err(|_| (Refusal::UnknownEvent, None))?;
            (outbox, reader, Opening::Comment)
        }
    };
    Ok(EventBody::of_session(front, session, outbox, reader, opening).response())
}

/// Whether `Accept` admits a type; without the header everything is admitted.
pub(super) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let (family, _) = kind.split_once('/').unwrap_or((kind, ""));
    values
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused = parts.any(|p| {
                let zero = p.strip_prefix("q=").or_else(|| p.strip_prefix("Q="));
                zero.is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
            });
            let wide = name == "*/*"
                || name
                    .strip_suffix("/*")
                    .is_some_and(|f| f.eq_ignore_ascii_case(family));
            !refused && (wide || name.eq_ignore_ascii_case(kind))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn accept_is_read_as_http_has_it() {
        let accept = |text: &'static str, kind: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(text));
            accepts(&headers, kind)
        };
        let (json, events) = ("application/json", "text/event-stream");
        assert!(accept("text/event-stream, application/json;q=0.9", json));
        assert!(accept("*/*", events) && accept("text/*", events) && !accept("text/*", json));
        assert!(!accept("application/json;q=0, text/html", json));
        assert!(accept("Application/JSON", json));
        assert!(accepts(&HeaderMap::new(), json));
    }

    #[test]
    fn a_key_is_read_from_either_header() {
        let with = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            credential(&headers).map(str::to_owned)
        };
        assert_eq!(with("authorization", "bearer  k").as_deref(), Some("k"));
        assert_eq!(with("authorization", "Basic k").as_deref(), Some(""));
        assert_eq!(with("x-api-key", "k").as_deref(), Some("k"));
        assert_eq!(credential(&HeaderMap::new()), None);
    }
}
