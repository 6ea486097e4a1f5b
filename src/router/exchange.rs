//! Sending one request to one server and bringing its answer back under the client's id.

use super::{
    client::Client,
    core::Router,
    inlet::{Flight, Wants},
    params,
    slot::{Open, Slot},
    target::Route,
};
use crate::{
    backend::{Call, Fault},
    bridge::{self, Hop, ResultHints},
    mcp::{Edit, Era, Kind, ListKind, Message, Method, Pieces, RpcError, code},
    session::Outbox,
    telemetry::Outcome,
};
use bytes::Bytes;
use std::{sync::Arc, time::Instant};

/// What lists of legacy servers may be kept for, where they announce changes; without announcements nothing may.
const LEGACY_TTL_MS: u64 = 60_000;

/// What one exchange needs to know.
pub(super) struct Errand<'a> {
    pub client: &'a Client,
    pub message: &'a Message,
    pub route: &'a Route,
    pub outbox: &'a Arc<Outbox>,
}

/// An answer on its way to a client.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The whole message.
    pub bytes: Pieces,
    /// The code, if it is an error; 0 for one whose code is no integer.
    pub code: Option<i64>,
}

impl Answer {
    pub fn result(id: &[u8], result: &[u8]) -> Self {
        Self {
            bytes: code::result_message(id, result).into(),
            code: None,
        }
    }

    pub fn error(error: &RpcError, id: &[u8]) -> Self {
        Self {
            bytes: error.message(Some(id)).into(),
            code: Some(error.code),
        }
    }
}

impl From<Bytes> for Answer {
    /// A result that is written already.
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes: bytes.into(),
            code: None,
        }
    }
}

impl Router {
    /// The whole answer for the client.
    pub(super) async fn exchange(self: &Arc<Self>, errand: Errand<'_>) -> Answer {
        let slot = self.slot(errand.client, errand.route.place);
        let id = errand.message.id().unwrap_or(b"null");
        let started = Instant::now();
        let metrics = &slot.server.metrics;
        let answered = self.send(&slot, &errand).await;
        let (answer, outcome) = match answered {
            Ok((answer, open)) => {
                let (code, outcome) = match answer.kind() {
                    Kind::Error => (answer.error_code().or(Some(0)), Outcome::ServerError),
                    _ => (None, Outcome::Ok),
                };
                match self.bring_back(&slot, &open, &errand, &answer, id) {
                    Ok(bytes) => (Answer { bytes, code }, outcome),
                    Err(error) => (Answer::error(&error, id), Outcome::Fault),
                }
            }
            Err(fault) => {
                let outcome = match fault {
                    Fault::Cancelled => Outcome::Cancelled,
                    _ => Outcome::Fault,
                };
                if outcome == Outcome::Fault {
                    tracing::warn!(server = %slot.server.id, %fault, "a call failed");
                }
                let error = fault.answer(slot.server.id.as_str());
                (Answer::error(&error, id), outcome)
            }
        };
        metrics.call(outcome, started.elapsed());
        answer
    }

    /// Sends the request; a link that turns out to be lost is opened anew once, if the call provably did not run.
    async fn send(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        errand: &Errand<'_>,
    ) -> Result<(Message, Arc<Open>), Fault> {
        let mut again = true;
        loop {
            let open = self.open_for(slot, errand).await?;
            let call = prepare(&open, slot, errand);
            let id = call.id;
            let flight = flight(errand);
            if let Wants::From(rank) = flight.wants {
                slot.lower_level(&open, rank).await;
            }
            let answered = {
                let _in_flight = open.inlet.fly(call.id, flight);
                open.link.call(call).await
            };
            slot.done(&open).await;
            match answered {
                Ok(answer) => {
                    if answer.inner().task.is_some() {
                        let token = errand.message.inner().progress_token;
                        let token = token.map(|s| errand.message.slice(s));
                        open.inlet.became_task(id, token);
                    }
                    return Ok((answer, open));
                }
                Err(fault) => {
                    let lost = fault == Fault::SessionLost || !open.link.is_alive();
                    if lost {
                        slot.forget(&open);
                    }
                    if !lost || !again || fault.may_have_run() {
                        return Err(fault);
                    }
                    again = false;
                }
            }
        }
    }

    /// The link for one call. A legacy client can cancel while it is being opened.
    async fn open_for(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        errand: &Errand<'_>,
    ) -> Result<Arc<Open>, Fault> {
        if !slot.is_per_request()
            && let Some(open) = slot.ready()
        {
            return Ok(open);
        }
        let Client::Legacy(session) = errand.client else {
            return slot.take().await;
        };
        let id = canonical_id(errand.message.id().unwrap_or_default());
        let waiting = session.state.wait(id);
        tokio::select! {
            opened = slot.take() => opened,
            () = waiting.given_up() => Err(Fault::Cancelled),
        }
    }

    /// The server's answer as the client gets it.
    fn bring_back(
        &self,
        slot: &Slot,
        open: &Open,
        errand: &Errand<'_>,
        answer: &Message,
        id: &[u8],
    ) -> Result<Pieces, RpcError> {
        if let Some(error) = bridge::readable_error(answer) {
            return Ok(error.message(Some(id)).into());
        }
        let mut edit = Edit::new();
        if let Some(span) = answer.id_span() {
            edit.replace(span, Bytes::copy_from_slice(id));
        } else if answer.bytes().first() == Some(&b'{') {
            // An error without a usable id: it is the only thing it can be for.
            let payload = answer.payload().unwrap_or(b"{}");
            let mut whole = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
            whole.extend_from_slice(id);
            whole.extend_from_slice(b",\"error\":");
            whole.extend_from_slice(payload);
            whole.push(b'}');
            return Ok(Bytes::from(whole).into());
        }
        let profile = open.link.profile();
        let method = errand.message.method();
        match (errand.client.era(), profile.era()) {
            (Era::Modern, Era::Legacy) => {
                let listed =
                    |kind: ListKind| profile.has(&format!("{}.listChanged", kind.capability()));
                let ttl_ms = match method {
                    Method::List(kind) if listed(kind) => Some(LEGACY_TTL_MS),
                    Method::List(_) | Method::ReadResource => Some(0),
                    _ => None,
                };
                let hints = ResultHints {
                    ttl_ms,
                    server_info: profile.server_info.as_deref(),
                };
                bridge::from_legacy(answer, hints, &mut edit)?;
            }
            (Era::Legacy, Era::Modern) => bridge::from_modern(answer, method, &mut edit)?,
            _ if method == Method::Listen => {
                if let Some(span) = answer.inner().meta_subscription {
                    edit.replace(span, Bytes::copy_from_slice(id));
                }
            }
            _ => {}
        }
        if !self.exposes(slot, errand) {
            return Ok(edit.pieces(answer.bytes()));
        }
        let bytes = edit.apply(answer.bytes());
        Ok(self.expose_in_result(slot, errand, bytes).into())
    }
}

/// The message as the server gets it.
fn prepare(open: &Arc<Open>, slot: &Slot, errand: &Errand<'_>) -> Call {
    let Errand {
        client,
        message,
        route,
        ..
    } = errand;
    let id = open.link.next_id();
    let own = Bytes::from(id.to_string());
    let inner = message.inner();
    let mut edit = Edit::new();
    if let Some(span) = message.id_span() {
        edit.replace(span, own.clone());
    }
    for (span, with) in &route.changes {
        edit.replace(*span, with.clone());
    }
    let arguments = params::arguments(message, route);
    if let (Some(fixed), Some(within)) = (&arguments.fixed, message.payload_span()) {
        match inner.arguments {
            Some(span) => edit.replace(span, fixed.clone()),
            None => edit.add_member(message.bytes(), within, "arguments", fixed),
        };
    }
    let profile = open.link.profile();
    match (client.era(), profile.era()) {
        (Era::Modern, Era::Legacy) => {
            let token = inner.progress_token.map(|_| &own[..]);
            bridge::to_legacy(message, token, &mut edit);
        }
        (from, to) => {
            if let Some(span) = inner
                .progress_token
                .filter(|_| message.kind() == Kind::Request)
            {
                edit.replace(span, own);
            }
            if let (Era::Legacy, Era::Modern, Client::Legacy(session)) = (from, to, client) {
                let hop = Hop {
                    revision: profile.revision,
                    client_info: &slot.face.client_info,
                    capabilities: b"{}",
                    log_level: session.state.level_name(),
                };
                bridge::to_modern(message, &hop, &mut edit);
            }
        }
    }
    let row = message.row();
    let other = row.method == Method::Other;
    Call {
        id,
        message: edit.pieces(message.bytes()),
        method: row.name,
        other_method: other.then(|| message.method_name().into_owned()),
        name: match profile.era() {
            Era::Modern => route.name.clone().or_else(|| target_name(message)),
            Era::Legacy => None,
        },
        params: match profile.era() {
            Era::Modern => params::headers(client, &arguments, route),
            Era::Legacy => Vec::new(),
        },
    }
}

/// What `Mcp-Name` mirrors, for messages that pass unchanged.
fn target_name(message: &Message) -> Option<String> {
    let inner = message.inner();
    let span = match message.method() {
        Method::CallTool | Method::GetPrompt => inner.name,
        Method::ReadResource => inner.uri,
        _ => inner.task_id,
    };
    span.and_then(|s| message.text(s)).map(|t| t.into_owned())
}

fn flight(errand: &Errand<'_>) -> Flight {
    let message = errand.message;
    let token = message.inner().progress_token.map(|s| message.slice(s));
    Flight {
        outbox: errand.outbox.clone(),
        id: Bytes::from(canonical_id(message.id().unwrap_or_default())),
        token,
        wants: match errand.client {
            Client::Legacy(_) => Wants::Session,
            Client::Modern(caller) => caller.log_level.map_or(Wants::Nothing, Wants::From),
        },
    }
}

/// An id in one spelling, so that a client may cancel it in another.
pub(super) fn canonical_id(token: &[u8]) -> Vec<u8> {
    if memchr::memchr(b'\\', token).is_none() {
        return token.to_vec();
    }
    match crate::mcp::message::string(token) {
        Some(text) => crate::mcp::message::quote(&text).into_bytes(),
        None => token.to_vec(),
    }
}
