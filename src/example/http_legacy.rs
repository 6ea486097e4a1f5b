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
use super::world::World;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

fn new_session() -> Option<Arc<Session>> {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).ok()?;
    let level = rank(legacy::DEFAULT_LEVEL).unwrap_or_default();
    Some(Session::new(URL_SAFE_NO_PAD.encode(bytes), level))
}

fn bad_request(id: &Value, message: &str) -> Response {
    refuse(StatusCode::BAD_REQUEST, id, &Fault::rpc(INVALID_REQUEST, message))
}

fn busy() -> Response {
    StatusCode::SERVICE_UNAVAILABLE.into_response()
}

/// The session that the headers name, or the answer to a request that names none of ours.
fn find(world: &World, headers: &HeaderMap, id: &Value) -> Result<Arc<Session>, Response> {
    let Some(name) = headers.get(SESSION) else {
        return Err(bad_request(id, "Mcp-Session-Id is missing"));
    };
    let session = name.to_str().ok().and_then(|name| world.session(name));
    let session = session.ok_or_else(|| {
        let fault = Fault::rpc(INVALID_REQUEST, "No such session");
        refuse(StatusCode::NOT_FOUND, id, &fault)
    })?;
    let settled = session.client().map(|client| client.revision.as_str());
    match (headers::text(headers, headers::VERSION), settled) {
        (Some(header), Some(settled)) if header != settled => {
            let reason = format!("This session speaks {settled}, MCP-Protocol-Version says {header}");
            Err(bad_request(id, &reason))
        }
        _ => Ok(session),
    }
}

/// A POST to the endpoint.
pub async fn post(world: Arc<World>, headers: &HeaderMap, message: Value) -> Response {
    if message["method"] == "initialize" && !headers.contains_key(SESSION) {
        return initialize(&world, message).await;
    }
    let session = match find(&world, headers, &message["id"]) {
        Ok(session) => session,
        Err(response) => return response,
    };
    let (messages, batch) = match message {
        Value::Array(messages) => (messages, true),
        message => (vec![message], false),
    };
    let revision = session.client().map(|client| client.revision);
    if batch && (revision != Some(Revision::V2025_03_26) || messages.is_empty()) {
        return bad_request(&Value::Null, "No batch is allowed here");
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
    let Some(session) = new_session() else { return busy() };
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
    let session = match find(world, headers, &Value::Null) {
        Ok(session) => session,
        Err(response) => return response,
    };
    let (out, received) = mpsc::unbounded_channel();
    session.attach(out);
    // A comment makes the headers leave at once.
    sse::stream(vec![Bytes::from_static(b": open\n\n")], received, ())
}

/// A DELETE: the end of the session.
pub fn end(world: &World, headers: &HeaderMap) -> Response {
    match find(world, headers, &Value::Null) {
        Ok(session) => {
            world.dismiss(session.id());
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => response,
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
    let Some(session) = new_session() else { return busy() };
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
    let id = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find_map(|(name, value)| (name == "sessionId").then_some(value));
    let Some(id) = id else {
        return bad_request(&message["id"], "sessionId is missing");
    };
    let stream = world.session(&id).and_then(|session| {
        let out = session.stream()?;
        Some((session, out))
    });
    let Some((session, out)) = stream else {
        let fault = Fault::rpc(INVALID_REQUEST, "No such session");
        return refuse(StatusCode::NOT_FOUND, &message["id"], &fault);
    };
    if let Some(work) = legacy::receive(world, &session, message, &out) {
        tokio::spawn(work);
    }
    (StatusCode::ACCEPTED, "Accepted").into_response()
}
