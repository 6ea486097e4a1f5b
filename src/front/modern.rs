//! POST of a modern client: stateless, checked header by header.
//!
//! Answers "Server Validation" and "Per-request protocol fields" of revision
//! 2026-07-28. The body is the truth; the headers have to agree with it.

use super::{
    app::Front,
    post::{Readable, idless, initialize, malformed, text, whole},
    refusal::{Refusal, modern_status},
    request::{Refused, refuse},
    stream::EventBody,
};
use crate::{
    auth::Principal,
    mcp::{Kind, Message, Method, Revision, RpcError, code, header as names, message::string},
    router::{Answer, Client, ModernCaller, level_rank},
    session::{Outbox, Sort},
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, request::Parts};
use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

pub async fn answer(
    front: &Arc<Front>,
    endpoint: usize,
    principal: Principal,
    revision: Revision,
    parts: Parts,
    body: Body,
) -> Result<Response, Refused> {
    let readable = Readable::of(&parts.headers)?;
    let text = text(front, &parts, body).await?;
    if Message::is_batch(&text) {
        return refuse(Refusal::Batch);
    }
    let message = Message::parse(text, front.settings.json_depth);
    let message = message.map_err(|error| (malformed(error), None))?;
    match message.kind() {
        Kind::Result | Kind::Error => {
            return refuse(Refusal::NotMessage(
                "this revision has no responses from clients".into(),
            ));
        }
        // Closing the stream is the only cancellation; what else comes is taken and means nothing.
        Kind::Notification if message.lacks_id() => return refuse(idless()),
        Kind::Notification => return Ok(StatusCode::ACCEPTED.into_response()),
        // A real client sends `initialize` under this header; with the metadata of the era it is just an unknown method.
        Kind::Request
            if message.method() == Method::Initialize && message.inner().meta_version.is_none() =>
        {
            return initialize(front, endpoint, &principal, readable, &message).await;
        }
        Kind::Request => {}
    }
    let id = message.id().map(<[u8]>::to_vec);
    let checked = check(&message, revision, &parts.headers);
    let refused = |error: RpcError| {
        (
            Refusal::Rpc(StatusCode::BAD_REQUEST, Box::new(error)),
            id.clone(),
        )
    };
    checked.map_err(refused)?;
    if front.draining.load(Ordering::Relaxed) {
        return Err((Refusal::Draining, id));
    }
    let caller = caller(&message, principal, endpoint, revision, &parts.headers);
    call(front, readable, message, caller).await
}

/// What must be there, and what must agree.
fn check(message: &Message, revision: Revision, headers: &HeaderMap) -> Result<(), RpcError> {
    let inner = message.inner();
    let missing = |name: &str| {
        let text = format!("`_meta` must carry io.modelcontextprotocol/{name}");
        RpcError::new(code::INVALID_PARAMS, text)
    };
    let version = inner.meta_version.and_then(|s| string(message.raw(s)));
    let version = version.ok_or_else(|| missing("protocolVersion"))?;
    if version != revision.as_str() {
        return Err(mismatch(
            "MCP-Protocol-Version",
            revision.as_str(),
            &version,
        ));
    }
    let object = |s: crate::mcp::Span| message.raw(s).first() == Some(&b'{');
    if !inner.meta_capabilities.is_some_and(object) {
        return Err(missing("clientCapabilities"));
    }
    let method = message.method_name();
    agrees("Mcp-Method", headers.get_all(names::METHOD), &method, false)?;
    let name = match message.method() {
        Method::CallTool | Method::GetPrompt => inner.name,
        Method::ReadResource => inner.uri,
        _ => None,
    };
    if let Some(name) = name.and_then(|s| string(message.raw(s))) {
        agrees("Mcp-Name", headers.get_all(names::NAME), &name, true)?;
    }
    Ok(())
}

/// Of several headers each has to agree: somebody on the way may have read any of them.
fn agrees(
    name: &str,
    headers: http::header::GetAll<'_, http::HeaderValue>,
    body: &str,
    encoded: bool,
) -> Result<(), RpcError> {
    let mut there = false;
    for header in headers {
        there = true;
        let said = std::str::from_utf8(header.as_bytes()).unwrap_or("\u{fffd}");
        let decoded = match encoded {
            true => names::decode(said),
            false => Some(said.into()),
        };
        if decoded.is_none_or(|decoded| decoded != body) {
            return Err(mismatch(name, said, body));
        }
    }
    match there {
        true => Ok(()),
        false => {
            let text = format!("Header mismatch: {name} is missing");
            Err(RpcError::new(code::HEADER_MISMATCH, text))
        }
    }
}

fn mismatch(name: &str, header: &str, body: &str) -> RpcError {
    let text = format!("Header mismatch: {name} is '{header}', the body says '{body}'");
    RpcError::new(code::HEADER_MISMATCH, text)
}

fn caller(
    message: &Message,
    principal: Principal,
    endpoint: usize,
    revision: Revision,
    headers: &HeaderMap,
) -> ModernCaller {
    let inner = message.inner();
    let object = |span: Option<crate::mcp::Span>| match span.map(|s| message.slice(s)) {
        Some(raw) if raw.first() == Some(&b'{') => raw,
        _ => Bytes::from_static(b"{}"),
    };
    let level = inner.meta_log_level.and_then(|s| string(message.raw(s)));
    let params = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with(names::PARAM_PREFIX));
    ModernCaller {
        principal,
        endpoint,
        revision,
        client_info: object(inner.meta_client_info),
        capabilities: object(inner.meta_capabilities),
        log_level: level.as_deref().and_then(level_rank),
        params: params.map(|(n, v)| (n.clone(), v.clone())).collect(),
    }
}

type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The call lives as long as its response: a client that closes the connection has cancelled it.
async fn call(
    front: &Arc<Front>,
    readable: Readable,
    message: Message,
    caller: ModernCaller,
) -> Result<Response, Refused> {
    let outbox = Arc::new(Outbox::new(0, false, front.router.settings.bounds));
    let router = front.router.clone();
    let (client, related) = (Client::Modern(Arc::new(caller)), outbox.clone());
    let closing = front.closing.clone();
    let mut work: Work = Box::pin(async move {
        tokio::select! {
            biased;
            answer = router.request(&client, &message, &related) => answer,
            () = closing.cancelled() => {
                let error = RpcError::new(code::INTERNAL, "the gateway is shutting down");
                Answer::error(&error, message.id().unwrap_or(b"null"))
            }
        }
    });
    if !readable.events {
        return Ok(finished(readable, work.await));
    }
    tokio::select! {
        biased;
        answer = &mut work => {
            if !outbox.has_untaken() {
                return Ok(finished(readable, answer));
            }
            let answer = crate::mcp::edit::on_one_line(answer.bytes.into_bytes());
            outbox.push(Sort::Answer, answer);
            work = Box::pin(std::future::pending());
        }
        () = outbox.filled() => {}
        () = tokio::time::sleep(front.settings.silence) => {}
    }
    Ok(EventBody::of_call(front, outbox, work).response())
}

fn finished(readable: Readable, answer: Answer) -> Response {
    let status = modern_status(answer.code);
    // An error with a status of its own is JSON whatever the client prefers: its status says it all.
    let readable = Readable {
        json: readable.json || status != StatusCode::OK,
        ..readable
    };
    let mut response = whole(readable, answer.bytes);
    *response.status_mut() = status;
    response
}
