//! What the calls, the standing stream and the holder of one link share.

use super::{
    link::Introduced,
    patience::Patience,
    reply::{self, Answer, Reply},
    request,
    resume::resume,
    running::Running,
    site::Site,
    verdict::{Refusal, Verdict},
};
use crate::{
    backend::{Call, Eras, Fault, Profile, Ran, Receiver},
    mcp::{Era, Kind, Message, Method, code},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use hyper::body::Incoming;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Handle, time::timeout};
use tokio_util::sync::CancellationToken;

/// For messages that nobody waits for: DELETE, cancellations, answers to pings.
const BEST_EFFORT: Duration = Duration::from_secs(3);
/// As much as is read of a body that should be empty, or say why a message was refused.
const REMARK: usize = 64 << 10;

const OPEN: u8 = 0;
const LOST: u8 = 1;
const CLOSED: u8 = 2;

pub(super) struct Core {
    pub site: Arc<Site>,
    pub profile: Arc<Profile>,
    pub running: Running,
    /// Ends the standing stream.
    pub stop: CancellationToken,
    eras: Arc<Eras>,
    receiver: Arc<dyn Receiver>,
    /// Headers of every POST.
    headers: HeaderMap,
    /// Whether the server gave a session id.
    session: bool,
    next: AtomicU64,
    state: AtomicU8,
    /// Links may be dropped outside of it.
    runtime: Handle,
}

impl Core {
    pub fn new(
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
        let mut headers = site.headers();
        let revision = HeaderValue::from_static(profile.revision.as_str());
        headers.insert(request::PROTOCOL_VERSION, revision);
        let has_session = session.is_some();
        if let Some(id) = session {
            headers.insert(request::SESSION_ID, id);
        }
        if profile.era() == Era::Legacy {
            site.metrics.sessions.inc();
        }
        Self {
            stop: site.stop.child_token(),
            site,
            profile,
            running: Running::default(),
            eras,
            receiver,
            headers,
            session: has_session,
            next: AtomicU64::new(next),
            state: AtomicU8::new(OPEN),
            runtime: Handle::current(),
        }
    }

    pub fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OPEN
    }

    fn era(&self) -> Era {
        self.profile.era()
    }

    /// Sends a call and reads up to its answer.
    pub async fn exchange(
        self: &Arc<Self>,
        call: &Call,
        patience: &mut Patience<'_>,
    ) -> Result<Message, Fault> {
        let era = self.era();
        let make = |uri| request::call(&self.headers, uri, call, era);
        let response = patience.hold(self.site.send(make)).await??;
        let mut other = |message| self.take(message, Some(call.id));
        let reply = reply::read(&self.site, response, call.id, patience, &mut other).await?;
        match reply {
            Reply::Answer(answer) if answer.status.is_success() => Ok(answer.message),
            Reply::Answer(answer) => self.refused(answer),
            Reply::Nothing { status, text } => Err(self.no_answer(status, &text)),
            Reply::Broken(trail) if era == Era::Legacy => {
                resume(self, call.id, trail, patience).await
            }
            Reply::Broken(trail) => Err(Fault::Crashed {
                reason: trail.reason,
            }),
        }
    }

    fn refused(&self, answer: Answer) -> Result<Message, Fault> {
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

    fn no_answer(&self, status: StatusCode, text: &[u8]) -> Fault {
        let number = status.as_u16();
        if status.is_success() {
            return Fault::NotMcp(match text.trim_ascii().is_empty() {
                true => format!("answered {number} without a message"),
                false => format!("answered {number} with no answer to the request"),
            });
        }
        let fault = self.act_on(&Refusal::without_error(status, text));
        fault.unwrap_or(Fault::Unreachable {
            reason: format!("answered {number}"),
            ran: Ran::Maybe,
        })
    }

    /// Ends the link if a refusal means that, and gives the fault for it.
    pub fn act_on(&self, refusal: &Refusal<'_>) -> Option<Fault> {
        match refusal.judge(self.era(), self.session) {
            Verdict::Request => return None,
            Verdict::SessionLost => {}
            Verdict::WrongEra => {
                // The next opening asks anew; this request was refused unrun.
                self.eras.doubt(Era::Legacy);
                self.eras.doubt(Era::Modern);
            }
        }
        if self.leave(LOST) {
            tracing::info!(server = %self.site.id, "the server knows a backend session no more");
            self.receiver.ended(&Fault::SessionLost);
        }
        Some(Fault::SessionLost)
    }

    /// Ends the link on its holder's wish; whether the server is to be told.
    pub fn end(&self) -> bool {
        self.leave(CLOSED) && self.session
    }

    fn leave(&self, state: u8) -> bool {
        let swap = self
            .state
            .compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Relaxed);
        if swap.is_err() {
            return false;
        }
        self.stop.cancel();
        if self.era() == Era::Legacy {
            self.site.metrics.sessions.dec();
        }
        true
    }

    pub async fn delete(&self) {
        let make = |uri| request::delete(&self.headers, uri);
        let sent = timeout(BEST_EFFORT, self.site.send(make)).await;
        if !matches!(sent, Ok(Ok(_))) {
            tracing::debug!(server = %self.site.id, "a backend session was not ended in order");
        }
    }

    /// Asks for events, after the event `last` if there was one.
    pub async fn get(&self, last: Option<&HeaderValue>) -> Result<Response<Incoming>, Fault> {
        let make = |uri: Uri| request::get(&self.headers, uri, last);
        self.site.send(make).await
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
            // Modern servers ask within results, and an answer to nothing belongs to nobody.
            Kind::Request | Kind::Result | Kind::Error => self.site.metrics.dropped.inc(),
        }
    }

    /// Says that nobody waits for a call any more. On modern links the closed stream says it.
    pub fn tell_cancelled(self: &Arc<Self>, id: u64, reason: Option<&[u8]>) {
        if self.era() == Era::Modern || !self.is_open() {
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
            let sent = timeout(BEST_EFFORT, core.post(message)).await;
            if !matches!(sent, Ok(Ok(()))) {
                tracing::debug!(server = %core.site.id, "a message without an answer was not taken");
            }
        });
    }

    /// Runs `work` as a task of the server.
    pub fn spawn<F>(&self, work: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.site.tracker.spawn_on(work, &self.runtime);
    }

    /// Sends a message that has no answer.
    pub async fn post(&self, message: Bytes) -> Result<(), Fault> {
        if self.era() == Era::Modern {
            // Over HTTP, revision 2026-07-28 has nothing from us but requests.
            tracing::debug!(server = %self.site.id, "a modern server takes no notifications over HTTP");
            return Ok(());
        }
        if self.state.load(Ordering::Relaxed) == LOST {
            return Err(Fault::SessionLost);
        }
        let work = async {
            let make = |uri| request::post(&self.headers, uri, message.clone().into());
            let response = self.site.send(make).await?;
            self.taken(response).await
        };
        let limit = self.site.settings.call;
        match timeout(limit, work).await {
            Ok(done) => done,
            Err(_) => Err(Fault::TimedOut(limit)),
        }
    }

    /// Whether a message that has no answer was accepted. Any body goes with a good status.
    async fn taken(&self, response: Response<Incoming>) -> Result<(), Fault> {
        let status = response.status();
        if let Some(fault) = reply::refusal(status, response.headers()) {
            return Err(fault);
        }
        let text = remark(response).await;
        if status.is_success() {
            return Ok(());
        }
        let error = Message::parse(text.clone(), 64).ok();
        let error = error.as_ref().filter(|m| m.kind() == Kind::Error);
        let refusal = Refusal {
            error,
            ..Refusal::without_error(status, &text)
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
}

/// The body of a response that answers nothing; not that of an event stream, which may never end.
pub(super) async fn remark(response: Response<Incoming>) -> Bytes {
    if reply::is_events(response.headers()) {
        return Bytes::new();
    }
    let text = reply::collect(response.into_body(), REMARK).await;
    text.unwrap_or_default()
}
