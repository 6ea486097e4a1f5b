//! How messages leave over HTTP: one JSON body where the answer is all there is, else an event stream that
//! begins with what came first. Streams carry comments while nothing happens.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

/// Below the time after which proxies drop a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A message as an event.
pub fn event(message: &Value) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

/// An event stream: `opening` first, then each message until nobody can send any more. `held` is dropped with
/// the stream, also when the client closes it.
pub fn stream(
    opening: Vec<Bytes>,
    messages: UnboundedReceiver<Value>,
    held: impl Send + 'static,
) -> Response {
    let state = (VecDeque::from(opening), messages, held);
    let events = stream::unfold(state, |(mut opening, mut messages, held)| async move {
        let bytes = match opening.pop_front() {
            Some(bytes) => bytes,
            None => match tokio::time::timeout(KEEP_ALIVE, messages.recv()).await {
                Ok(Some(message)) => event(&message),
                Ok(None) => return None,
                Err(_) => Bytes::from_static(b": still here\n\n"),
            },
        };
        Some((Ok::<_, Infallible>(bytes), (opening, messages, held)))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        (BUFFERING, "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

/// A JSON body.
pub fn json(status: StatusCode, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (status, headers, body.to_string()).into_response()
}

/// What a POST asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// How many requests are in the body.
    pub answers: usize,
    /// Whether the body is a batch, whose answers are a batch too.
    pub batch: bool,
}

/// The response to a POST with requests: JSON if the answers are the first to arrive, else a stream. A single
/// answer's status is `status` of its error code, or 200.
pub async fn respond(
    wanted: Wanted,
    mut messages: UnboundedReceiver<Value>,
    held: impl Send + 'static,
    status: fn(Option<i64>) -> StatusCode,
) -> Response {
    let mut answers = Vec::new();
    while let Some(message) = messages.recv().await {
        let is_answer = message["method"].is_null();
        answers.push(message);
        if !is_answer {
            return stream(answers.iter().map(event).collect(), messages, held);
        }
        if answers.len() == wanted.answers {
            break;
        }
    }
    match answers.as_slice() {
        // All was cancelled: there is no answer, and JSON can't say so.
        [] => stream(Vec::new(), messages, held),
        [answer] if !wanted.batch => json(status(answer["error"]["code"].as_i64()), answer),
        _ => json(StatusCode::OK, &Value::Array(answers)),
    }
}
