//! The eras with sessions over HTTP: streamable HTTP with `Mcp-Session-Id` (2025-03-26 to 2025-11-25), and the
//! HTTP+SSE transport of 2024-11-05, where one stream carries all that the server says. A connection that
//! breaks cancels nothing here; streams can't be resumed.

use std::sync::Arc;

use aws_lc_rs::rand;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use tokio::sync::mpsc;

use super::call::rank;
use super::fault::{Fault, INVALID_REQUEST};
use super::headers;
use super::http::{accepts, refuse};
use super::legacy::{self, Kind};
use super::revision::Revision;
use super::session::Session;
use super::sse::{self, Wanted};
use super::world::{Outlet, World};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

fn new_session() -> Option<Arc<Session>> {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).ok()?;
    let level = rank(legacy::DEFAULT_LEVEL).unwrap_or_default();
    Some(Session::new(URL_SAFE_NO_PAD.encode(bytes), level))
}

/// Why a request is turned away before its session sees it.
type Refusal = (StatusCode, Fault);

fn bad_request(message: impl Into<String>) -> Refusal {
    (
        StatusCode::BAD_REQUEST,
        Fault::rpc(INVALID_REQUEST, message),
    )
}

fn no_session() -> Refusal {
    (
        StatusCode::NOT_FOUND,
        Fault::rpc(INVALID_REQUEST, "No such session"),
    )
}

fn busy() -> Response {
    StatusCode::SERVICE_UNAVAILABLE.into_response()
}

/// The session that the headers name.
fn find(world: &World, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
    let name = headers
        .get(SESSION)
        .ok_or_else(|| bad_request("Mcp-Session-Id is missing"))?;
    let session = name.to_str().ok().and_then(|name| world.session(name));
    let session = session.ok_or_else(no_session)?;
    let settled = session.client().map(|client| client.revision.as_str());
    match (headers::text(headers, headers::VERSION), settled) {
        (Some(header), Some(settled)) if header != settled => Err(bad_request(format!(
            "This session speaks {settled}, MCP-Protocol-Version says {header}"
        ))),
        _ => Ok(session),
    }
}

/// A POST to the endpoint.
pub async fn post(world: Arc<World>, headers: &HeaderMap, message: Value) -> Response {
    if message["method"] == "initialize" && !headers.contains_key(SESSION) {
        return initialize(&world, message).await;
    }
    let session = match find(&world, headers) {
        Ok(session) => session,
        Err((status, fault)) => return refuse(status, &message["id"], &fault),
    };
    let (messages, batch) = match message {
        Value::Array(messages) => (messages, true),
        message => (vec![message], false),
    };
    let revision = session.client().map(|client| client.revision);
    if batch && (revision != Some(Revision::V2025_03_26) || messages.is_empty()) {
        let (status, fault) = bad_request("No batch is allowed here");
        return refuse(status, &Value::Null, &fault);
    }
    let mut answers = 0;
    for message in &messages {
        match legacy::kind(message) {
            Ok(Kind::Request) => answers += 1,
            Ok(Kind::Notification | Kind::Response) => {}
            Err(fault) => return refuse(StatusCode::BAD_REQUEST, &message["id"], &fault),
        }
    }
    let (out, received) = mpsc::unbounded_channel();
    for message in messages {
        if let Some(work) = legacy::receive(&world, &session, message, &out) {
            tokio::spawn(work);
        }
    }
    drop(out);
    if answers == 0 {
        return StatusCode::ACCEPTED.into_response();
    }
    sse::respond(Wanted { answers, batch }, received, (), |_| StatusCode::OK).await
}

async fn initialize(world: &Arc<World>, message: Value) -> Response {
    let Some(session) = new_session() else {
        return busy();
    };
    if let Err(fault) = legacy::kind(&message) {
        return refuse(StatusCode::BAD_REQUEST, &message["id"], &fault);
    }
    let (out, received) = mpsc::unbounded_channel();
    if let Some(work) = legacy::receive(world, &session, message, &out) {
        work.await;
    }
    drop(out);
    let settled = session.client().is_some();
    if settled && !world.admit(Arc::clone(&session)) {
        return busy();
    }
    let wanted = Wanted {
        answers: 1,
        batch: false,
    };
    let mut response = sse::respond(wanted, received, (), |_| StatusCode::OK).await;
    if let (true, Ok(id)) = (settled, HeaderValue::from_str(session.id())) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// A GET: the stream for what belongs to no request.
pub fn open_stream(world: &World, headers: &HeaderMap) -> Response {
    if !accepts(headers, "text/event-stream") {
        return StatusCode::NOT_ACCEPTABLE.into_response();
    }
    let session = match find(world, headers) {
        Ok(session) => session,
        Err((status, fault)) => return refuse(status, &Value::Null, &fault),
    };
    let (out, received) = mpsc::unbounded_channel();
    session.attach(out);
    // A comment makes the headers leave at once.
    sse::stream(vec![Bytes::from_static(b": open\n\n")], received, ())
}

/// A DELETE: the end of the session.
pub fn end(world: &World, headers: &HeaderMap) -> Response {
    match find(world, headers) {
        Ok(session) => {
            world.dismiss(session.id());
            StatusCode::NO_CONTENT.into_response()
        }
        Err((status, fault)) => refuse(status, &Value::Null, &fault),
    }
}

/// Ends a 2024-11-05 session with its stream.
struct Ending {
    world: Arc<World>,
    id: String,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.world.dismiss(&self.id);
    }
}

/// A GET of 2024-11-05: opens a session and says where to send messages.
pub async fn open_sse(State(world): State<Arc<World>>) -> Response {
    let Some(session) = new_session() else {
        return busy();
    };
    let id = session.id().to_owned();
    let (out, received) = mpsc::unbounded_channel();
    session.attach(out);
    if !world.admit(session) {
        return busy();
    }
    let endpoint = format!("event: endpoint\ndata: /messages?sessionId={id}\n\n");
    sse::stream(vec![Bytes::from(endpoint)], received, Ending { world, id })
}

/// A POST of 2024-11-05: the answer goes out on the session's stream.
pub fn post_sse(world: &Arc<World>, query: Option<&str>, message: Value) -> Response {
    match find_sse(world, query) {
        Ok((session, out)) => {
            if let Some(work) = legacy::receive(world, &session, message, &out) {
                tokio::spawn(work);
            }
            (StatusCode::ACCEPTED, "Accepted").into_response()
        }
        Err((status, fault)) => refuse(status, &message["id"], &fault),
    }
}

/// The session that the query names, and its stream.
fn find_sse(world: &World, query: Option<&str>) -> Result<(Arc<Session>, Outlet), Refusal> {
    let id = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find_map(|(name, value)| (name == "sessionId").then_some(value))
        .ok_or_else(|| bad_request("sessionId is missing"))?;
    let session = world.session(&id).ok_or_else(no_session)?;
    let out = session.stream().ok_or_else(no_session)?;
    Ok((session, out))
}
