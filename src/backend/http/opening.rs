//! The first words to a server: `server/discover` and `initialize`, and what the answers mean.
//!
//! Answers "Lifecycle" of the legacy revisions, and "Backward Compatibility" of the
//! versioning and streamable HTTP pages of 2026-07-28. What says nothing of the era
//! (401, 403, 429, 5xx, silence, a refused connection) is a fault and no verdict.

use super::{
    link::Introduced,
    patience::Patience,
    reply::{self, Answer, Reply},
    request::{self, Outgoing},
    site::Site,
    verdict::offered,
};
use crate::{
    backend::{Call, Fault, Opening, Profile, Ran, error_text, is_modern_error, newest_legacy},
    mcp::{Era, Kind, Message, Revision, code, header as names},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, Uri};
use serde_json::Value;
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// Ids of the handshake; calls count on from there.
const DISCOVER: u64 = 1;
const INITIALIZE: u64 = 2;
pub(super) const FIRST_CALL: u64 = 4;

/// What a modern server that does not say what it can do is taken to offer.
const UNSAID: &[u8] = br#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}}}"#;

/// Messages that a server may send before its first answer.
const EARLY: usize = 100;

/// What `server/discover` showed.
pub(super) enum Discovered {
    Modern(Arc<Profile>),
    /// To be asked with `initialize`, for this revision if the server named any.
    Legacy(Option<Revision>),
}

/// What `initialize` led to.
pub(super) enum Initialized {
    /// Introduced, and what the server said before its answer.
    Open(Introduced, Vec<Message>),
    /// Refused with a JSON-RPC error; `modern` if only a modern server gives it.
    Refused { fault: Fault, modern: bool },
}

/// How long a profile is kept that comes without `ttlMs`, and the longest it is kept at all.
const KEEP: Duration = Duration::from_secs(60);
const KEEP_LONGEST: Duration = Duration::from_secs(300);

/// Asks whether the server is modern, and what it offers.
pub(super) async fn discover(site: &Site, opening: &Opening) -> Result<Discovered, Fault> {
    let call = Call {
        id: DISCOVER,
        message: discover_message(opening).into(),
        method: "server/discover",
        other_method: None,
        name: None,
        params: Vec::new(),
    };
    let make = |uri| {
        let mut headers = site.headers();
        let revision = HeaderValue::from_static(Revision::NEWEST.as_str());
        headers.insert(request::PROTOCOL_VERSION, revision);
        request::call(&headers, uri, &call, Era::Modern)
    };
    let (reply, _) = ask(site, DISCOVER, &mut Vec::new(), make).await?;
    match reply {
        Reply::Answer(answer) if answer.status.is_server_error() => {
            Err(silent(site, answer.status))
        }
        Reply::Nothing { status, .. } if status.is_server_error() => Err(silent(site, status)),
        Reply::Answer(answer) => judge_discovery(&answer),
        Reply::Nothing { .. } => Ok(Discovered::Legacy(None)),
        Reply::Broken(trail) => Err(site.down(trail.reason, Ran::No)),
    }
}

fn judge_discovery(answer: &Answer) -> Result<Discovered, Fault> {
    let message = &answer.message;
    if message.kind() == Kind::Result {
        return read_discovery(message);
    }
    let error = message.error_code();
    match error {
        Some(code::UNSUPPORTED_VERSION) => {
            let listed = offered(Some(message), b"", Revision::NEWEST);
            match newest_legacy(&listed) {
                Some(revision) => Ok(Discovered::Legacy(Some(revision))),
                None => Err(Fault::Declined(error_text(message))),
            }
        }
        // Our headers are made from the body, so this is past mending here.
        Some(code::HEADER_MISMATCH) => Err(Fault::Declined(error_text(message))),
        Some(code::MISSING_CAPABILITY) => unsaid(),
        Some(code::METHOD_NOT_FOUND) if answer.status == StatusCode::NOT_FOUND => unsaid(),
        _ => Ok(Discovered::Legacy(None)),
    }
}

fn unsaid() -> Result<Discovered, Fault> {
    modern(&Bytes::from_static(UNSAID))
}

/// A legacy server may answer anything with some result; only a `DiscoverResult` counts.
fn read_discovery(message: &Message) -> Result<Discovered, Fault> {
    let Some(span) = message.payload_span() else {
        return Ok(Discovered::Legacy(None));
    };
    let result = message.slice(span);
    let value: Value = serde_json::from_slice(&result).unwrap_or_default();
    let Some(listed) = value.get("supportedVersions").and_then(Value::as_array) else {
        return Ok(Discovered::Legacy(None));
    };
    let listed = listed.iter().filter_map(Value::as_str);
    let listed: Vec<Revision> = listed.filter_map(Revision::parse).collect();
    if listed.contains(&Revision::NEWEST) {
        return modern(&result);
    }
    match newest_legacy(&listed) {
        Some(revision) => Ok(Discovered::Legacy(Some(revision))),
        None => Err(Fault::Declined("it speaks no revision that we do".into())),
    }
}

fn modern(result: &Bytes) -> Result<Discovered, Fault> {
    let profile = Profile::read(result, Some(Revision::NEWEST));
    let profile = profile.map_err(|why| Fault::NotMcp(why.to_owned()))?;
    Ok(Discovered::Modern(Arc::new(profile)))
}

/// How long the server lets what it said of itself be kept.
pub(super) fn keep(profile: &Profile) -> Duration {
    let value: Value = serde_json::from_slice(&profile.result).unwrap_or_default();
    let ttl = value.get("ttlMs").and_then(Value::as_u64);
    ttl.map_or(KEEP, Duration::from_millis).min(KEEP_LONGEST)
}

/// Opens a session of `revision`, or of the one that the server names when it refuses that.
pub(super) async fn initialize(
    site: &Site,
    opening: &Opening,
    revision: Revision,
) -> Result<Initialized, Fault> {
    let first = attempt(site, opening, revision, INITIALIZE).await?;
    let Attempted::Other(other) = first else {
        return first.finish();
    };
    tracing::debug!(server = %site.id, asked = %revision, %other, "trying the revision that the server names");
    attempt(site, opening, other, INITIALIZE + 1)
        .await?
        .finish()
}

enum Attempted {
    Done(Initialized),
    /// Refused, naming another legacy revision.
    Other(Revision),
}

impl Attempted {
    fn finish(self) -> Result<Initialized, Fault> {
        match self {
            Self::Done(done) => Ok(done),
            Self::Other(revision) => Err(Fault::Declined(format!(
                "it names {revision} and refuses it"
            ))),
        }
    }
}

async fn attempt(
    site: &Site,
    opening: &Opening,
    revision: Revision,
    id: u64,
) -> Result<Attempted, Fault> {
    let message = initialize_message(opening, revision, id);
    let mut early = Vec::new();
    let make = |uri| request::post(&site.headers(), uri, message.clone().into());
    let (reply, session) = ask(site, id, &mut early, make).await?;
    match reply {
        Reply::Answer(answer) if answer.message.kind() == Kind::Result => {
            let introduced = introduce(&answer.message, session)?;
            Ok(Attempted::Done(Initialized::Open(introduced, early)))
        }
        Reply::Answer(answer) if answer.status.is_server_error() => {
            Err(site.down(error_text(&answer.message), Ran::No))
        }
        Reply::Answer(answer) => Ok(refused(&answer, revision)),
        Reply::Nothing { status, text } => nothing(site, status, &text, revision),
        Reply::Broken(trail) => Err(site.down(trail.reason, Ran::No)),
    }
}

fn introduce(message: &Message, session: Option<HeaderValue>) -> Result<Introduced, Fault> {
    let span = message.payload_span();
    let result = message.slice(span.ok_or_else(|| Fault::NotMcp("an empty result".into()))?);
    let profile = Profile::read(&result, None);
    let profile = profile.map_err(|why| Fault::NotMcp(format!("initialize: {why}")))?;
    if profile.era() == Era::Modern {
        let text = "it settled on a revision that has no initialize";
        return Err(Fault::Declined(text.into()));
    }
    Ok(Introduced {
        profile: Arc::new(profile),
        session,
        next: FIRST_CALL,
    })
}

fn refused(answer: &Answer, asked: Revision) -> Attempted {
    let message = &answer.message;
    let error = message.error_code();
    let text = message.payload().unwrap_or_default();
    let other = newest_legacy(&offered(Some(message), text, asked));
    if let Some(other) = other.filter(|other| *other != asked) {
        return Attempted::Other(other);
    }
    let unknown = answer.status == StatusCode::NOT_FOUND && error == Some(code::METHOD_NOT_FOUND);
    Attempted::Done(Initialized::Refused {
        fault: Fault::Declined(error_text(message)),
        modern: is_modern_error(error) || unknown,
    })
}

/// `initialize` came back without any JSON-RPC answer.
fn nothing(
    site: &Site,
    status: StatusCode,
    text: &[u8],
    asked: Revision,
) -> Result<Attempted, Fault> {
    let number = status.as_u16();
    if status.is_server_error() {
        return Err(silent(site, status));
    }
    if status.is_success() {
        let text = format!("answered {number} to initialize without an answer in it");
        return Err(Fault::NotMcp(text));
    }
    if let Some(other) = newest_legacy(&offered(None, text, asked)) {
        return Ok(Attempted::Other(other));
    }
    if matches!(number, 400 | 404 | 405) {
        return Err(Fault::Declined(format!(
            "answered {number} to initialize: not an MCP endpoint, or it speaks only the HTTP+SSE transport of 2024-11-05?"
        )));
    }
    Err(Fault::Declined(format!("answered {number} to initialize")))
}

fn silent(site: &Site, status: StatusCode) -> Fault {
    site.down(format!("answered {}", status.as_u16()), Ran::No)
}

/// Sends a request of the handshake; gives the reply and the session id that came with it.
async fn ask<F>(
    site: &Site,
    id: u64,
    early: &mut Vec<Message>,
    make: F,
) -> Result<(Reply, Option<HeaderValue>), Fault>
where
    F: Fn(Uri) -> Outgoing,
{
    let limit = site.settings.start;
    let sleep = pin!(tokio::time::sleep(limit));
    let (_wanted, given_up) = oneshot::channel();
    let mut patience = Patience::new(sleep, limit, limit, given_up);
    let mut response = patience.hold(site.send(&make)).await??;
    if response.status() == StatusCode::NOT_ACCEPTABLE && site.turn_accept() {
        response = patience.hold(site.send(&make)).await??;
    }
    let session = response.headers().get(names::SESSION_ID);
    let session = session.filter(|id| !id.is_empty()).cloned();
    let session = session.map(|mut id| {
        id.set_sensitive(true);
        id
    });
    let mut other = |message| match early.len() {
        EARLY => site.metrics.dropped.inc(),
        _ => early.push(message),
    };
    let reply = reply::read(site, response, id, &mut patience, &mut other).await?;
    Ok((reply, session))
}

fn discover_message(opening: &Opening) -> Bytes {
    let ns = "io.modelcontextprotocol";
    let revision = Revision::NEWEST;
    let mut params =
        format!("{{\"_meta\":{{\"{ns}/protocolVersion\":\"{revision}\",\"{ns}/clientInfo\":")
            .into_bytes();
    params.extend_from_slice(&opening.client_info);
    params.extend_from_slice(format!(",\"{ns}/clientCapabilities\":").as_bytes());
    params.extend_from_slice(&opening.capabilities);
    params.extend_from_slice(b"}}");
    code::call_message(
        Some(&DISCOVER.to_string()),
        "server/discover",
        Some(&params),
    )
}

fn initialize_message(opening: &Opening, revision: Revision, id: u64) -> Bytes {
    let mut params = format!("{{\"protocolVersion\":\"{revision}\",\"capabilities\":").into_bytes();
    params.extend_from_slice(&opening.capabilities);
    params.extend_from_slice(b",\"clientInfo\":");
    params.extend_from_slice(&opening.client_info);
    params.push(b'}');
    code::call_message(Some(&id.to_string()), "initialize", Some(&params))
}
