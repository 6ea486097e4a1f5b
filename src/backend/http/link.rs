//! One backend session, or one stateless standing, with an HTTP server.
//!
//! Answers "Streamable HTTP" of the transports page of revisions 2025-03-26 to
//! 2025-11-25, and the streamable HTTP page of 2026-07-28. Calls run side by side,
//! each in its own request; nothing here waits for another call.

use super::{
    patience::Patience,
    reply::{self, Answer, Reply},
    running::Running,
    site::Site,
    standing,
    verdict::{Refusal, Verdict},
};
use crate::{
    backend::{Call, Eras, Fault, Profile, Ran, Receiver},
    mcp::{Era, Kind, Message, Method, code, header as names},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::Full;
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Handle, time::sleep};
use tokio_util::sync::CancellationToken;

/// For messages that nobody waits for: DELETE, cancellations, answers to pings.
const BEST_EFFORT: Duration = Duration::from_secs(3);
/// How long opening waits for the standing stream, so that the first call's notifications find it open.
const STREAM_HEAD: Duration = Duration::from_millis(300);

const SESSION_ID: HeaderName = HeaderName::from_static(names::SESSION_ID);
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(names::PROTOCOL_VERSION);
const METHOD: HeaderName = HeaderName::from_static(names::METHOD);
const NAME: HeaderName = HeaderName::from_static(names::NAME);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static(names::LAST_EVENT_ID);

const OPEN: u8 = 0;
const LOST: u8 = 1;
const CLOSED: u8 = 2;

/// A link of one holder. Dropping it closes it.
pub struct HttpLink {
    core: Arc<Core>,
}

pub(super) struct Core {
    pub site: Arc<Site>,
    pub stop: CancellationToken,
    profile: Arc<Profile>,
    eras: Arc<Eras>,
    receiver: Arc<dyn Receiver>,
    /// Headers of every POST.
    headers: HeaderMap,
    /// Whether the server gave a session id.
    session: bool,
    next: AtomicU64,
    running: Running,
    state: AtomicU8,
    runtime: Handle,
}

/// What a link is made of, once the server has introduced itself.
pub(super) struct Introduced {
    pub profile: Arc<Profile>,
    pub session: Option<HeaderValue>,
    /// The first id that is free for calls.
    pub next: u64,
}

impl HttpLink {
    pub(super) fn new(
        site: Arc<Site>,
        eras: Arc<Eras>,
        introduced: Introduced,
        receiver: Arc<dyn Receiver>,
    ) -> Self {
        let Introduced {
            profile,
            session,
            next,
        } = introduced;
        let mut headers = site.headers.clone();
        let revision = HeaderValue::from_static(profile.revision.as_str());
        headers.insert(PROTOCOL_VERSION, revision);
        if profile.era() == Era::Legacy {
            site.metrics.sessions.inc();
        }
        let has_session = session.is_some();
        if let Some(id) = session {
            headers.insert(SESSION_ID, id);
        }
        let core = Core {
            stop: site.stop.child_token(),
            site,
            profile,
            eras,
            receiver,
            headers,
            session: has_session,
            next: AtomicU64::new(next),
            running: Running::default(),
            state: AtomicU8::new(OPEN),
            runtime: Handle::current(),
        };
        Self {
            core: Arc::new(core),
        }
    }

    /// Completes a legacy handshake: says `initialized` and opens the standing stream.
    pub(super) async fn begin(&self, early: Vec<Message>) -> Result<(), Fault> {
        let initialized = code::call_message(None, "notifications/initialized", None);
        match self.post(initialized).await {
            // Refused for its form: the server has not understood it, which harms nobody.
            Ok(()) | Err(Fault::NotMcp(_)) => {}
            Err(fault) => return Err(fault),
        }
        for message in early {
            self.core.take(message, None);
        }
        let head = standing::spawn(self.core.clone());
        let _ = tokio::time::timeout(STREAM_HEAD, head).await;
        Ok(())
    }

    /// A number that no other call of this link has.
    pub fn next_id(&self) -> u64 {
        self.core.next.fetch_add(1, Ordering::Relaxed)
    }

    pub fn profile(&self) -> &Arc<Profile> {
        &self.core.profile
    }

    pub fn is_alive(&self) -> bool {
        self.core.state.load(Ordering::Relaxed) == OPEN
    }

    /// Sends a request and waits for its answer. Dropping the future abandons the call and tells the server.
    pub async fn call(&self, call: Call) -> Result<Message, Fault> {
        let core = &self.core;
        if !self.is_alive() {
            return Err(Fault::SessionLost);
        }
        let given_up = core.running.begin(call.id);
        let mut guard = Guard {
            core,
            id: call.id,
            reason: None,
        };
        let settings = &core.site.settings;
        // A subscription stands for as long as somebody wants it.
        let (step, limit) = match call.method == "subscriptions/listen" {
            true => (FOR_EVER, FOR_EVER),
            false => (settings.call, settings.call_max.max(settings.call)),
        };
        let sleep = pin!(sleep(step));
        let mut patience = Patience::new(sleep, step, limit, given_up);
        let answer = core.exchange(&call, &mut patience).await;
        match &answer {
            Err(Fault::TimedOut(_)) => guard.reason = Some(br#""no answer in time""#),
            _ => {
                core.running.end(call.id);
            }
        }
        answer
    }

    /// Sends a notification, or an answer to a request of the server.
    pub async fn post(&self, message: Bytes) -> Result<(), Fault> {
        self.core.post(message).await
    }

    /// Abandons a call: [`HttpLink::call`] returns [`Fault::Cancelled`] and the server is told, with the raw JSON of a reason.
    pub fn cancel(&self, id: u64, reason: Option<&[u8]>) {
        if self.core.running.give_up(id) {
            self.core.tell_cancelled(id, reason);
        }
    }

    /// Ends the standing stream and the backend session (DELETE, best effort).
    pub async fn close(&self) {
        if self.core.end() {
            self.core.delete().await;
        }
    }
}

const FOR_EVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

impl Drop for HttpLink {
    fn drop(&mut self) {
        if self.core.end() {
            let core = self.core.clone();
            self.core.spawn(async move { core.delete().await });
        }
    }
}

/// Tells the server when a call is dropped or out of time.
struct Guard<'a> {
    core: &'a Arc<Core>,
    id: u64,
    reason: Option<&'static [u8]>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.core.running.end(self.id) {
            self.core.tell_cancelled(self.id, self.reason);
        }
    }
}

impl Core {
    fn era(&self) -> Era {
        self.profile.era()
    }

    async fn exchange(
        self: &Arc<Self>,
        call: &Call,
        patience: &mut Patience<'_>,
    ) -> Result<Message, Fault> {
        let sent = self.site.send(|uri| self.call_request(uri, call));
        let response = patience.hold(sent).await??;
        let mut other = |message| self.take(message, Some(call.id));
        let reply = reply::read(&self.site, response, call.id, patience, &mut other).await?;
        match reply {
            Reply::Answer(answer) if answer.status.is_success() => Ok(answer.message),
            Reply::Answer(answer) => self.refused(answer),
            Reply::Nothing { status, text } => Err(self.no_answer(status, &text)),
            Reply::Broken(trail) if self.era() == Era::Legacy => {
                super::resume::resume(self, call.id, trail, patience).await
            }
            Reply::Broken(trail) => Err(Fault::Crashed {
                reason: trail.reason,
            }),
        }
    }

    fn refused(self: &Arc<Self>, answer: Answer) -> Result<Message, Fault> {
        let refusal = Refusal {
            status: answer.status,
            error: Some(&answer.message),
            own_id: answer.own_id,
            text: answer.message.payload().unwrap_or_default(),
        };
        match self.act_on(&refusal) {
            Some(fault) => Err(fault),
            None => Ok(answer.message),
        }
    }

    fn no_answer(self: &Arc<Self>, status: StatusCode, text: &[u8]) -> Fault {
        let number = status.as_u16();
        if status.is_success() {
            return match text.trim_ascii().is_empty() {
                true => Fault::NotMcp(format!("answered {number} without a message")),
                false => Fault::NotMcp(format!("answered {number} with no answer to the request")),
            };
        }
        let refusal = Refusal {
            status,
            error: None,
            own_id: false,
            text,
        };
        self.act_on(&refusal).unwrap_or(Fault::Unreachable {
            reason: format!("answered {number}"),
            ran: Ran::Maybe,
        })
    }

    /// Ends the link if a refusal means that, and gives the fault for it.
    fn act_on(self: &Arc<Self>, refusal: &Refusal<'_>) -> Option<Fault> {
        match refusal.judge(self.era(), self.session) {
            Verdict::Request => None,
            Verdict::SessionLost => Some(self.lose(Fault::SessionLost)),
            Verdict::WrongEra => {
                // Asked anew at the next opening; the request was refused unrun.
                self.eras.doubt(Era::Legacy);
                self.eras.doubt(Era::Modern);
                Some(self.lose(Fault::SessionLost))
            }
        }
    }

    /// Ends the link because the server knows it no more.
    pub fn lose(&self, fault: Fault) -> Fault {
        if self.leave(LOST) {
            tracing::info!(server = %self.site.id, "backend session is lost");
            self.receiver.ended(&fault);
        }
        fault
    }

    /// Ends the link on its holder's wish; whether the server is to be told.
    fn end(&self) -> bool {
        self.leave(CLOSED) && self.session
    }

    fn leave(&self, state: u8) -> bool {
        let before = self
            .state
            .compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Relaxed);
        if before.is_err() {
            return false;
        }
        self.stop.cancel();
        if self.era() == Era::Legacy {
            self.site.metrics.sessions.dec();
        }
        true
    }

    async fn delete(&self) {
        let make = |uri| {
            let mut request = self.bare_request(uri, http::Method::DELETE);
            request.headers_mut().remove(header::CONTENT_TYPE);
            request
        };
        let sent = tokio::time::timeout(BEST_EFFORT, self.site.send(make)).await;
        if !matches!(sent, Ok(Ok(_))) {
            tracing::debug!(server = %self.site.id, "backend session was not ended in order");
        }
    }

    /// A message that is no answer to a call of ours.
    pub fn take(self: &Arc<Self>, message: Message, call: Option<u64>) {
        match message.kind() {
            Kind::Notification => self.receiver.receive(message, call),
            Kind::Request if self.era() == Era::Legacy => {
                if message.method() != Method::Ping {
                    return self.receiver.receive(message, call);
                }
                let answer = code::result_message(message.id().unwrap_or_default(), b"{}");
                self.best_effort(answer);
            }
            // Modern servers ask within results; an answer to nothing belongs to nobody.
            Kind::Request | Kind::Result | Kind::Error => self.site.metrics.dropped.inc(),
        }
    }

    fn tell_cancelled(self: &Arc<Self>, id: u64, reason: Option<&[u8]>) {
        // On modern links the closed stream says it.
        if self.era() == Era::Modern || self.state.load(Ordering::Relaxed) != OPEN {
            return;
        }
        let mut params = format!("{{\"requestId\":{id}").into_bytes();
        if let Some(reason) = reason {
            params.extend_from_slice(b",\"reason\":");
            params.extend_from_slice(reason);
        }
        params.push(b'}');
        let message = code::call_message(None, "notifications/cancelled", Some(&params));
        self.best_effort(message);
    }

    fn best_effort(self: &Arc<Self>, message: Bytes) {
        let core = self.clone();
        self.spawn(async move {
            let sent = tokio::time::timeout(BEST_EFFORT, core.post(message)).await;
            if !matches!(sent, Ok(Ok(()))) {
                tracing::debug!(server = %core.site.id, "a message without an answer was not taken");
            }
        });
    }

    pub fn spawn<F>(&self, work: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.site.tracker.spawn_on(work, &self.runtime);
    }

    async fn post(self: &Arc<Self>, message: Bytes) -> Result<(), Fault> {
        if self.era() == Era::Modern {
            // Revision 2026-07-28 has no message from us but requests.
            tracing::debug!(server = %self.site.id, "a modern server over HTTP takes no notifications");
            return Ok(());
        }
        if self.state.load(Ordering::Relaxed) == LOST {
            return Err(Fault::SessionLost);
        }
        let limit = self.site.settings.call;
        let work = async {
            let make = |uri| self.post_request(uri, &message);
            let response = self.site.send(make).await?;
            self.taken(response).await
        };
        match tokio::time::timeout(limit, work).await {
            Ok(done) => done,
            Err(_) => Err(Fault::TimedOut(limit)),
        }
    }

    /// Whether a message that has no answer was accepted. Any body goes with a good status.
    async fn taken(
        self: &Arc<Self>,
        response: http::Response<hyper::body::Incoming>,
    ) -> Result<(), Fault> {
        let status = response.status();
        if let Some(fault) = reply::refusal(status, response.headers()) {
            return Err(fault);
        }
        // An event stream here is nothing we wait for.
        let text = match reply::is_events(response.headers()) {
            true => Bytes::new(),
            false => reply::collect(response.into_body(), 64 << 10)
                .await
                .unwrap_or_default(),
        };
        if status.is_success() {
            return Ok(());
        }
        let error = Message::parse(text.clone(), 64).ok();
        let refusal = Refusal {
            status,
            error: error.as_ref().filter(|m| m.kind() == Kind::Error),
            own_id: false,
            text: &text,
        };
        if let Some(fault) = self.act_on(&refusal) {
            return Err(fault);
        }
        let reason = format!("answered {} to a notification", status.as_u16());
        Err(match status.is_server_error() {
            true => Fault::Unreachable {
                reason,
                ran: Ran::Maybe,
            },
            false => Fault::NotMcp(reason),
        })
    }

    fn bare_request(&self, uri: Uri, method: http::Method) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        request
    }

    fn post_request(&self, uri: Uri, message: &Bytes) -> Request<Full<Bytes>> {
        let mut request = self.bare_request(uri, http::Method::POST);
        *request.body_mut() = Full::new(message.clone());
        request
    }

    fn call_request(&self, uri: Uri, call: &Call) -> Request<Full<Bytes>> {
        let mut request = self.post_request(uri, &call.message);
        if self.era() == Era::Modern {
            modern_headers(request.headers_mut(), call);
        }
        request
    }

    /// A GET for events, after the event `last` if there was one.
    pub fn get_request(&self, uri: Uri, last: Option<&str>) -> Request<Full<Bytes>> {
        let mut request = self.bare_request(uri, http::Method::GET);
        let headers = request.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        let accept = HeaderValue::from_static("text/event-stream");
        headers.insert(header::ACCEPT, accept);
        if let Some(last) = last.and_then(|l| HeaderValue::from_bytes(l.as_bytes()).ok()) {
            headers.insert(LAST_EVENT_ID, last);
        }
        request
    }
}

/// What a modern request repeats of its body.
pub(super) fn modern_headers(headers: &mut HeaderMap, call: &Call) {
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
