//! What came back for one request: its answer, or why there is none.
//!
//! Takes both forms that a server may choose, JSON and event stream, in any legal
//! shape; tells answers from what else is on the stream.

use super::{
    events::{End, Events},
    patience::Patience,
    site::Site,
};
use crate::{
    backend::Fault,
    mcp::{Kind, Message, Method, edit, message, scan, sse},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use std::time::Duration;

/// Entries that one batch of a 2025-03-26 server may have.
const BATCH: usize = 1000;

/// The answer to a request.
pub(super) struct Answer {
    pub status: StatusCode,
    /// Its id is the request's, whatever the server made of it.
    pub message: Message,
    /// Whether the server gave the request's own id, not none or another.
    pub own_id: bool,
}

pub(super) enum Reply {
    Answer(Answer),
    /// HTTP ended and no message answered the request; with the body, or the start of it.
    Nothing {
        status: StatusCode,
        text: Bytes,
    },
    /// An event stream ended before the answer.
    Broken(Trail),
}

/// What is left of a stream that ended before the answer.
#[derive(Debug)]
pub(super) struct Trail {
    pub last_id: Option<HeaderValue>,
    pub retry: Option<Duration>,
    pub reason: String,
}

/// What a response's status alone decides.
pub(super) fn refusal(status: StatusCode, headers: &HeaderMap) -> Option<Fault> {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some(Fault::Refused {
            status: status.as_u16(),
        }),
        StatusCode::TOO_MANY_REQUESTS => {
            let seconds = headers.get(header::RETRY_AFTER);
            let seconds = seconds.and_then(|v| v.to_str().ok()?.trim().parse().ok());
            Some(Fault::Throttled {
                retry_after: seconds,
            })
        }
        _ => None,
    }
}

/// Reads a response up to the answer to request `id`; all other messages go to `other`.
pub(super) async fn read<F: FnMut(Message)>(
    site: &Site,
    response: Response<Incoming>,
    id: u64,
    patience: &mut Patience<'_>,
    other: &mut F,
) -> Result<Reply, Fault> {
    let status = response.status();
    if let Some(fault) = refusal(status, response.headers()) {
        return Err(fault);
    }
    let limit = site.settings.frame;
    if is_events(response.headers()) {
        let events = Events::new(response, limit);
        return match follow(site, events, id, patience, other).await? {
            Ok((message, own_id)) => Ok(Reply::Answer(Answer {
                status,
                message,
                own_id,
            })),
            Err(trail) => Ok(Reply::Broken(trail)),
        };
    }
    let text = patience
        .hold(collect(response.into_body(), limit))
        .await??;
    let any_error = status.as_u16() >= 400;
    match pick(&text, id, any_error, other) {
        Ok(Some((message, own_id))) => Ok(Reply::Answer(Answer {
            status,
            message,
            own_id,
        })),
        Ok(None) | Err(_) => Ok(Reply::Nothing { status, text }),
    }
}

pub(super) fn is_events(headers: &HeaderMap) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|v| v.as_bytes().get(..EVENTS.len()));
    kind.is_some_and(|k| k.eq_ignore_ascii_case(EVENTS))
}

/// A body up to `limit` bytes, copied only if it came in several pieces.
pub(super) async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, Fault> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Fault::TooLarge(limit));
    }
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Fault::Crashed {
            reason: format!("its answer broke off: {error}"),
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(announced.max(first.len() + data.len()));
            all.extend_from_slice(&first);
        }
        if all.len() + data.len() > limit {
            return Err(Fault::TooLarge(limit));
        }
        all.extend_from_slice(&data);
    }
    if first.len() > limit {
        return Err(Fault::TooLarge(limit));
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// Follows an event stream up to the answer; `Err` within tells how to go on where it ended.
pub(super) async fn follow<F: FnMut(Message)>(
    site: &Site,
    mut events: Events,
    id: u64,
    patience: &mut Patience<'_>,
    other: &mut F,
) -> Result<Result<(Message, bool), Trail>, Fault> {
    let mut garbled = None;
    let reason = loop {
        let event = match patience.hold(events.next()).await? {
            Ok(event) => event,
            Err(End::TooLarge(limit)) => return Err(Fault::TooLarge(limit)),
            Err(End::Closed) => break "its stream ended before the answer".to_owned(),
            Err(End::Broken(why)) => break format!("its stream broke before the answer: {why}"),
        };
        if !is_message(&event) {
            continue;
        }
        let picked = pick(&event.data, id, false, |message| {
            if message.method() == Method::Progress {
                patience.extend();
            }
            other(message);
        });
        match picked {
            Ok(None) => {}
            Ok(Some(found)) => {
                events.finish(site);
                return Ok(Ok(found));
            }
            Err(why) => {
                tracing::debug!(server = %site.id, why, "an event is no message");
                site.metrics.dropped.inc();
                garbled = Some(why);
            }
        }
    };
    let trail = Trail {
        last_id: events.last_id(),
        retry: events.retry(),
        reason,
    };
    match garbled {
        Some(why) if trail.last_id.is_none() => Err(Fault::NotMcp(why)),
        _ => Ok(Err(trail)),
    }
}

/// Events of other names are none of the protocol's.
pub(super) fn is_message(event: &sse::Event) -> bool {
    event.name.is_empty() || event.name == "message"
}

/// Hands on each message of a text: the one, or the entries of a batch (2025-03-26).
pub(super) fn each<F: FnMut(Message)>(text: &Bytes, take: F) -> Result<(), String> {
    let mut take = take;
    match Message::parse(text.clone(), scan::MAX_DEPTH) {
        Ok(message) => take(message),
        Err(_) if Message::is_batch(text) => {
            let entries = Message::parse_batch(text, scan::MAX_DEPTH, BATCH);
            let entries = entries.map_err(|why| why.to_string())?;
            entries.into_iter().flatten().for_each(take);
        }
        Err(why) => return Err(why.to_string()),
    }
    Ok(())
}

/// The answer among the messages of a text, and whether it bore the request's own id. Messages
/// before it go to `other`; what comes after an answer is not delivered.
fn pick<F: FnMut(Message)>(
    text: &Bytes,
    id: u64,
    any_error: bool,
    mut other: F,
) -> Result<Option<(Message, bool)>, String> {
    let mut found = None;
    each(text, |message| {
        if found.is_some() {
            return;
        }
        match answers(&message, id, any_error) {
            None => other(message),
            Some(_) if message.own_id() == Some(id) => found = Some((message, true)),
            Some(own_id) => found = with_own_id(&message, id).map(|m| (m, own_id)),
        }
    })?;
    Ok(found)
}

/// Whether a message is the answer to request `id`, and bears its id. Some servers turn the id
/// into a string, and an error without an id can only be about the one request of its POST.
fn answers(message: &Message, id: u64, any_error: bool) -> Option<bool> {
    if !matches!(message.kind(), Kind::Result | Kind::Error) {
        return None;
    }
    if message.own_id() == Some(id) {
        return Some(true);
    }
    let text = message.id().and_then(message::string);
    if text.and_then(|text| text.parse().ok()) == Some(id) {
        return Some(true);
    }
    let stray = message.kind() == Kind::Error && (message.id().is_none() || any_error);
    stray.then_some(false)
}

fn with_own_id(message: &Message, id: u64) -> Option<Message> {
    let id = id.to_string();
    let bytes = match message.id() {
        Some(_) => edit::with_id(message, id.as_bytes()),
        None => {
            let error = message.payload()?;
            let mut out = Vec::with_capacity(error.len() + id.len() + 32);
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(b",\"error\":");
            out.extend_from_slice(error);
            out.push(b'}');
            out.into()
        }
    };
    Message::parse(bytes, scan::MAX_DEPTH).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &'static str, any_error: bool) -> Option<(String, bool)> {
        let mut others = 0;
        let text = Bytes::from_static(text.as_bytes());
        let (message, own) = pick(&text, 7, any_error, |_| others += 1).unwrap()?;
        let bytes = message.into_bytes();
        Some((String::from_utf8(bytes.to_vec()).unwrap(), own))
    }

    #[test]
    fn the_answer_bears_our_id_whatever_the_server_made_of_it() {
        let (text, own) = found(r#"{"jsonrpc":"2.0","id":"7","result":{"a":1}}"#, false).unwrap();
        assert_eq!(text, r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#);
        assert!(own);
        let (text, own) = found(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1e30,"message":"x"}}"#,
            false,
        )
        .unwrap();
        assert_eq!(
            text,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1e30,"message":"x"}}"#
        );
        assert!(!own);
    }

    #[test]
    fn another_ids_answer_is_not_ours() {
        let other = r#"{"jsonrpc":"2.0","id":8,"result":{}}"#;
        assert_eq!(found(other, true), None);
        let error = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":1,"message":""}}"#;
        assert_eq!(found(error, false), None);
        assert!(found(error, true).is_some());
    }

    #[test]
    fn a_batch_may_hold_the_answer() {
        let batch = r#" [{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":7,"result":{}}]"#;
        assert!(found(batch, false).is_some());
    }
}
