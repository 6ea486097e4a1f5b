//! POST of a legacy client: one message, or a batch where the revision has them.

use super::{
    app::Front,
    body,
    refusal::Refusal,
    request::{Refused, accepts, refuse},
    stream::{self, EventBody, Opening},
};
use crate::{
    auth::Principal,
    mcp::{
        Era, Kind, Malformed, Message, Method, Pieces, Revision, RpcError, code, edit::on_one_line,
        header as names, message::string,
    },
    router::{Answer, Client, ClientSession},
    session::{Outbox, Sort},
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

/// What a client can read.
#[derive(Clone, Copy)]
pub(super) struct Readable {
    pub json: bool,
    pub events: bool,
}

impl Readable {
    pub fn of(headers: &HeaderMap) -> Result<Self, Refused> {
        let readable = Self {
            json: accepts(headers, "application/json"),
            events: accepts(headers, "text/event-stream"),
        };
        if !readable.json && !readable.events {
            return refuse(Refusal::NotAcceptable);
        }
        Ok(readable)
    }
}

/// The body as JSON text of a request with the right content type.
pub(super) async fn text(front: &Front, parts: &Parts, body: Body) -> Result<Bytes, Refused> {
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|v| v.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return refuse(Refusal::ContentType);
    }
    let read = body::read(&front.settings, &parts.headers, body).await;
    read.map_err(|refusal| (refusal, None))
}

/// The id of a request that is refused for another reason, if it can be read.
pub(super) async fn id_of(front: &Front, parts: &Parts, body: Body) -> Option<Vec<u8>> {
    let text = text(front, parts, body).await.ok()?;
    let message = Message::parse(text, front.settings.json_depth).ok()?;
    message.id().map(<[u8]>::to_vec)
}

pub(super) fn malformed(error: Malformed) -> Refusal {
    match error {
        Malformed::Json(error) => Refusal::NotJson(error.to_string()),
        Malformed::Shape(text) => Refusal::NotMessage(text.to_owned()),
    }
}

/// A request of the protocol that came as a notification: it would run and nobody would hear of it.
pub(super) fn idless() -> Refusal {
    Refusal::NotMessage("this method is a request and needs an `id`".into())
}

pub async fn answer(
    front: &Arc<Front>,
    endpoint: usize,
    principal: Principal,
    session: Option<Arc<ClientSession>>,
    parts: Parts,
    body: Body,
) -> Result<Response, Refused> {
    // Revisions before 2025-11-25 want the id of an unreadable request as null, later ones want none.
    let old = session
        .as_ref()
        .is_some_and(|s| s.caller.revision < Revision::V2025_11_25);
    let nameless = |refusal| (refusal, old.then(|| b"null".to_vec()));
    let readable = Readable::of(&parts.headers)?;
    let text = text(front, &parts, body).await?;
    if Message::is_batch(&text) {
        return match session {
            Some(session) if session.caller.revision.has_batches() => {
                batch(front, session, readable, &text)
                    .await
                    .map_err(|(r, _)| nameless(r))
            }
            _ => Err(nameless(Refusal::Batch)),
        };
    }
    let message = Message::parse(text, front.settings.json_depth);
    let message = message.map_err(|error| nameless(malformed(error)))?;
    let id = message.id().map(<[u8]>::to_vec);
    match (message.kind(), session) {
        (Kind::Request, None) if message.method() == Method::Initialize => {
            initialize(front, endpoint, &principal, readable, &message).await
        }
        (_, None) => Err((without_session(&message), id)),
        (Kind::Request, Some(session)) => request(front, session, readable, message).await,
        (Kind::Notification, Some(_)) if message.lacks_id() => Err(nameless(idless())),
        (Kind::Notification, Some(session)) => {
            front.router.notification(&session, &message).await;
            Ok(StatusCode::ACCEPTED.into_response())
        }
        (Kind::Result | Kind::Error, Some(session)) => {
            front.router.response(&session, &message);
            Ok(StatusCode::ACCEPTED.into_response())
        }
    }
}

/// Without a session there is only `initialize`; a body of the modern era lacks its header.
fn without_session(message: &Message) -> Refusal {
    let inner = message.inner();
    let version = inner.meta_version.and_then(|s| string(message.raw(s)));
    let modern =
        version.is_some_and(|v| Revision::parse(&v).is_none_or(|r| r.era() == Era::Modern));
    if modern {
        let error = RpcError::new(
            code::HEADER_MISMATCH,
            "Header mismatch: MCP-Protocol-Version is missing, but the body carries a version",
        );
        return Refusal::Rpc(StatusCode::BAD_REQUEST, Box::new(error));
    }
    Refusal::NoSession
}

/// Opens a session. Also reached by clients that send `initialize` under a modern header.
pub(super) async fn initialize(
    front: &Arc<Front>,
    endpoint: usize,
    principal: &Principal,
    readable: Readable,
    message: &Message,
) -> Result<Response, Refused> {
    let id = message.id().map(<[u8]>::to_vec);
    if front.draining.load(Ordering::Relaxed) {
        return Err((Refusal::Draining, id));
    }
    let greeted = front.router.initialize(principal, endpoint, message).await;
    let greeted = greeted.map_err(|error| {
        let status = match error.code {
            code::OVER_LIMIT => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::OK,
        };
        (Refusal::Rpc(status, Box::new(error)), id)
    })?;
    let mut response = whole(readable, greeted.answer.into());
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::try_from(&*greeted.session.id) {
        headers.insert(names::SESSION_ID, id);
    }
    Ok(response)
}

/// An answer in one piece, in the form that the client reads.
pub(super) fn whole(readable: Readable, answer: Pieces) -> Response {
    if !readable.json {
        return stream::single(answer.into_bytes());
    }
    let mut response = Response::new(body::whole(answer));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A call that goes on when its client's connection breaks: that is no cancellation, and the client may come back for the rest.
struct Lasting {
    work: Option<Work>,
    front: Arc<Front>,
    /// Where the answer goes then; `None` where nobody could fetch it.
    outbox: Option<Arc<Outbox>>,
}

impl Lasting {
    fn spawn(&mut self) {
        if let Some(work) = self.work.take() {
            let outbox = self.outbox.clone();
            self.front.router.spawn(async move {
                let answer = work.await;
                if let Some(outbox) = outbox {
                    outbox.push(Sort::Answer, on_one_line(answer.bytes.into_bytes()));
                }
            });
        }
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.spawn();
    }
}

async fn request(
    front: &Arc<Front>,
    session: Arc<ClientSession>,
    readable: Readable,
    message: Message,
) -> Result<Response, Refused> {
    if front.draining.load(Ordering::Relaxed) {
        return Err((Refusal::Draining, message.id().map(<[u8]>::to_vec)));
    }
    // A client that reads no events gets what belongs to the call on its standing stream.
    let outbox = match readable.events {
        true => session.streams.open(),
        false => session.streams.standing.clone(),
    };
    let work = work(front, &session, message, outbox.clone());
    Ok(first_of(front, &session, readable, work, outbox).await)
}

/// Whatever comes first: the answer as a whole, or a message before it, or a silence, which turn the response into a stream.
async fn first_of(
    front: &Arc<Front>,
    session: &Arc<ClientSession>,
    readable: Readable,
    work: Work,
    outbox: Arc<Outbox>,
) -> Response {
    let mut lasting = Lasting {
        work: Some(work),
        front: front.clone(),
        outbox: readable.events.then(|| outbox.clone()),
    };
    let Some(work) = &mut lasting.work else {
        unreachable!("it was put there above");
    };
    if !readable.events {
        let answer = work.await;
        lasting.work = None;
        return whole(readable, answer.bytes);
    }
    tokio::select! {
        biased;
        answer = work => {
            lasting.work = None;
            if !outbox.has_untaken() {
                return whole(readable, answer.bytes);
            }
            outbox.push(Sort::Answer, on_one_line(answer.bytes.into_bytes()));
        }
        () = outbox.filled() => {}
        () = tokio::time::sleep(front.settings.silence) => {}
    }
    session.streams.keep(&outbox);
    lasting.spawn();
    let reader = outbox.attach();
    EventBody::of_session(front, session, outbox, reader, Opening::Prime).response()
}

/// The call itself, which holds the session open and ends with it.
fn work(
    front: &Arc<Front>,
    session: &Arc<ClientSession>,
    message: Message,
    outbox: Arc<Outbox>,
) -> Work {
    let router = front.router.clone();
    let hold = session.hold();
    let client = Client::Legacy(session.clone());
    let ended = session.ended.clone();
    Box::pin(async move {
        let _hold = hold;
        tokio::select! {
            biased;
            answer = router.request(&client, &message, &outbox) => answer,
            () = ended.cancelled() => {
                let error = RpcError::new(code::INTERNAL, "the session ended while the call was running");
                Answer::error(&error, message.id().unwrap_or(b"null"))
            }
        }
    })
}

/// A batch of 2025-03-26: answers to its requests come as an array, or one by one on a stream.
async fn batch(
    front: &Arc<Front>,
    session: Arc<ClientSession>,
    readable: Readable,
    text: &Bytes,
) -> Result<Response, Refused> {
    let settings = &front.settings;
    let entries = Message::parse_batch(text, settings.json_depth, settings.batch);
    let entries = entries.map_err(|error| (malformed(error), None))?;
    let outbox = match readable.events {
        true => session.streams.open(),
        false => session.streams.standing.clone(),
    };
    let mut calls: Vec<Work> = Vec::new();
    for entry in entries {
        match entry {
            Err(error) => {
                let (code, text) = match error {
                    Malformed::Json(error) => (code::PARSE, error.to_string()),
                    Malformed::Shape(text) => (code::INVALID_REQUEST, text.to_owned()),
                };
                let answer = Answer::error(&RpcError::new(code, text), b"null");
                calls.push(Box::pin(std::future::ready(answer)));
            }
            Ok(message) if message.kind() == Kind::Notification && message.lacks_id() => {
                let (_, error) = idless().parts();
                calls.push(Box::pin(std::future::ready(Answer::error(&error, b"null"))));
            }
            Ok(message) => match message.kind() {
                Kind::Request => calls.push(work(front, &session, message, outbox.clone())),
                Kind::Notification => front.router.notification(&session, &message).await,
                Kind::Result | Kind::Error => front.router.response(&session, &message),
            },
        }
    }
    if calls.is_empty() {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let all: Work = Box::pin(async move {
        let answers = futures_util::future::join_all(calls).await;
        let pieces: Vec<Bytes> = answers.into_iter().map(|a| a.bytes.into_bytes()).collect();
        let joined = crate::catalog::join(pieces.iter());
        let mut out = Vec::with_capacity(joined.len() + 2);
        out.push(b'[');
        out.extend_from_slice(&joined);
        out.push(b']');
        Answer::from(Bytes::from(out))
    });
    Ok(first_of(front, &session, readable, all, outbox).await)
}
