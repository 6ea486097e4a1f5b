//! Requests as they leave: the link's headers, and what a modern request repeats of its body.

use crate::{
    backend::Call,
    mcp::{Era, Pieces, header as names},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static(names::SESSION_ID);
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(names::PROTOCOL_VERSION);
const METHOD: HeaderName = HeaderName::from_static(names::METHOD);
const NAME: HeaderName = HeaderName::from_static(names::NAME);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static(names::LAST_EVENT_ID);

/// What is sent to a server.
pub(super) type Outgoing = Request<Full<Pieces>>;

/// A message on its way, without what is special to a call.
pub(super) fn post(headers: &HeaderMap, uri: Uri, message: Pieces) -> Outgoing {
    request(headers, Method::POST, uri, Full::new(message))
}

/// A call on its way to a server of `era`.
pub(super) fn call(headers: &HeaderMap, uri: Uri, call: &Call, era: Era) -> Outgoing {
    let mut request = post(headers, uri, call.message.clone());
    if era == Era::Modern {
        repeat(request.headers_mut(), call);
    }
    request
}

/// Asks for events, after the event `last` if there was one.
pub(super) fn get(headers: &HeaderMap, uri: Uri, last: Option<&HeaderValue>) -> Outgoing {
    let mut request = without_body(headers, Method::GET, uri);
    let accept = HeaderValue::from_static("text/event-stream");
    request.headers_mut().insert(header::ACCEPT, accept);
    if let Some(last) = last {
        request.headers_mut().insert(LAST_EVENT_ID, last.clone());
    }
    request
}

pub(super) fn delete(headers: &HeaderMap, uri: Uri) -> Outgoing {
    without_body(headers, Method::DELETE, uri)
}

fn without_body(headers: &HeaderMap, method: Method, uri: Uri) -> Outgoing {
    let mut request = request(headers, method, uri, Full::default());
    request.headers_mut().remove(header::CONTENT_TYPE);
    request
}

fn request(headers: &HeaderMap, method: Method, uri: Uri, body: Full<Pieces>) -> Outgoing {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers.clone();
    request
}

/// Writes what a modern request repeats of its body into headers.
fn repeat(headers: &mut HeaderMap, call: &Call) {
    let method = match &call.other_method {
        None => Ok(HeaderValue::from_static(call.method)),
        Some(method) => HeaderValue::from_str(method),
    };
    if let Ok(method) = method {
        headers.insert(METHOD, method);
    }
    if let Some(name) = &call.name {
        let value = HeaderValue::from_str(&names::encode(name));
        headers.insert(NAME, value.expect("an encoded name is a header value"));
    }
    for (name, value) in &call.params {
        headers.insert(name, value.clone());
    }
}
