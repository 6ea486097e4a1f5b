//! Where a server's messages arrive: whose are they?
//!
//! Answers "Whose request is it?" and "Notifications" of the way back. A message
//! that came on a call's own stream, or carries its token, is that call's. One
//! that carries no owner belongs to the session that the link was opened for; on
//! links that no single session holds it is declined or dropped.

use super::{
    ask::Ask,
    core::Router,
    slot::{Face, Open, Slot},
    standing::{ClientSession, level_rank},
};
use crate::{
    backend::{Fault, Receiver},
    mcp::{
        Edit, Kind, ListKind, Message, Method, RpcError, code,
        code::call_message,
        edit::on_one_line,
        message::{own_number, quote},
        union,
    },
    session::{Outbox, Sort},
};
use bytes::Bytes;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, Weak},
};
use tokio::sync::SetOnce;

/// For whom a link was opened.
#[derive(Clone)]
pub enum Home {
    Session(Weak<ClientSession>),
    /// Callers of the modern era, one request at a time.
    Pool,
    /// The gateway itself, to know the lists.
    Watch,
}

/// Which log messages a call's client wants.
#[derive(Clone, Copy, Debug)]
pub enum Wants {
    /// What its session set.
    Session,
    /// At least this rank.
    From(usize),
    Nothing,
}

/// A call that runs on the link.
pub struct Flight {
    pub outbox: Arc<Outbox>,
    /// The client's id, raw.
    pub id: Bytes,
    /// The client's progress token, raw.
    pub token: Option<Bytes>,
    pub wants: Wants,
}

pub struct Inlet {
    pub face: Face,
    home: Home,
    pub(super) router: Weak<Router>,
    pub(super) slot: Weak<Slot>,
    flights: Mutex<HashMap<u64, Flight>>,
    /// Progress tokens of calls that became tasks: they stay good while the task runs (2025-11-25, tasks).
    tasks: Mutex<VecDeque<(u64, Bytes)>>,
    open: SetOnce<Weak<Open>>,
}

/// Tasks of one link whose progress is followed at most; the oldest goes first.
const MAX_TASKS: usize = 256;
const LOCK: &str = "no holder of this lock panics";

/// Takes the flight out when the call is over, however it ends.
pub struct InFlight<'a> {
    inlet: &'a Inlet,
    id: u64,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.inlet.lock().remove(&self.id);
    }
}

impl Inlet {
    pub fn new(router: Weak<Router>, slot: &Arc<Slot>) -> Self {
        Self {
            face: slot.face.clone(),
            home: slot.home.clone(),
            router,
            slot: Arc::downgrade(slot),
            flights: Mutex::default(),
            tasks: Mutex::default(),
            open: SetOnce::new(),
        }
    }

    pub fn attach(&self, open: &Arc<Open>) {
        let _ = self.open.set(Arc::downgrade(open));
    }

    /// Notes that a call runs, until the guard goes.
    pub fn fly(&self, id: u64, flight: Flight) -> InFlight<'_> {
        self.lock().insert(id, flight);
        InFlight { inlet: self, id }
    }

    /// Notes that a call became a task, whose progress goes on after the answer.
    pub fn became_task(&self, id: u64, token: Option<Bytes>) {
        let Some(token) = token else { return };
        let mut tasks = self.tasks.lock().expect(LOCK);
        if tasks.len() >= MAX_TASKS {
            tasks.pop_front();
        }
        tasks.push_back((id, token));
    }

    fn task_token(&self, id: u64) -> Option<Bytes> {
        let tasks = self.tasks.lock().expect(LOCK);
        let found = tasks.iter().find(|(own, _)| *own == id);
        found.map(|(_, token)| token.clone())
    }

    /// Our ids of the running calls that the client knows as `id`, newest last.
    pub fn running(&self, id: &[u8]) -> Vec<u64> {
        let flights = self.lock();
        let mut ids: Vec<u64> = flights
            .iter()
            .filter(|(_, f)| f.id == id)
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable();
        ids
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Flight>> {
        self.flights.lock().expect(LOCK)
    }

    pub(super) fn session(&self) -> Option<Arc<ClientSession>> {
        match &self.home {
            Home::Session(session) => session.upgrade(),
            Home::Pool | Home::Watch => None,
        }
    }

    /// The stream that a message belongs on: its call's, the only call's, or the session's standing one.
    fn stream(&self, call: Option<u64>) -> Option<Arc<Outbox>> {
        {
            let flights = self.lock();
            let own = call.and_then(|id| flights.get(&id));
            let only = || flights.values().next().filter(|_| flights.len() == 1);
            let flight = match call {
                Some(_) => own,
                None => only(),
            };
            if let Some(flight) = flight {
                return Some(flight.outbox.clone());
            }
        }
        self.session().map(|s| s.streams.standing.clone())
    }

    /// Sends an answer of ours to the server.
    pub fn respond(self: &Arc<Self>, message: Bytes) {
        let (inlet, message) = (self.clone(), on_one_line(message));
        let Some(router) = self.router.upgrade() else {
            return;
        };
        router.spawn(async move {
            let open = inlet.open.wait().await.upgrade();
            if let Some(open) = open
                && let Err(fault) = open.link.respond(message).await
            {
                tracing::debug!(%fault, "an answer could not be sent to the server");
            }
        });
    }

    /// Sends a client's notification to the server.
    pub fn notify(self: &Arc<Self>, message: Bytes) {
        self.respond(message);
    }

    fn drop_message(&self) {
        if let Some(slot) = self.slot.upgrade() {
            slot.server.metrics.dropped.inc();
        }
    }

    fn notice(&self, router: &Arc<Router>, message: Message, call: Option<u64>) {
        let Some(slot) = self.slot.upgrade() else {
            return;
        };
        match message.method() {
            Method::Progress => self.progress(&message),
            Method::ListChanged(kind) => {
                if let Some(flight) = self.subscription(&message) {
                    self.pass_subscribed(&message, &flight);
                }
                router.list_changed(&slot, kind);
            }
            Method::Log => self.log(message, call),
            Method::ResourceUpdated => self.updated(router, &slot, message),
            Method::Cancelled => self.withdrawn(&message, call),
            Method::SubscriptionAcknowledged => match self.subscription(&message) {
                Some(flight) => self.pass_subscribed(&message, &flight),
                None => self.drop_message(),
            },
            Method::TaskStatus => match router.expose_task_status(&slot, &message) {
                Some(shown) => self.push(call, Sort::Notice, shown),
                None => self.drop_message(),
            },
            Method::ElicitationComplete => {
                self.push(call, Sort::Notice, message.into_bytes());
            }
            _ if router.endpoints[slot.endpoint].only().is_some() => {
                self.push(call, Sort::Notice, message.into_bytes());
            }
            _ => self.drop_message(),
        }
    }

    fn push(&self, call: Option<u64>, sort: Sort, message: Bytes) {
        match self.stream(call) {
            Some(outbox) => {
                outbox.push(sort, on_one_line(message));
            }
            None => self.drop_message(),
        }
    }

    /// Progress goes to the call whose token it carries, under the client's own token, and nowhere else.
    fn progress(&self, message: &Message) {
        let Some(span) = message.inner().progress_token else {
            return self.drop_message();
        };
        let id = own_number(message.raw(span));
        let call = id.and_then(|id| {
            let flights = self.lock();
            let flight = flights.get(&id)?;
            Some((flight.outbox.clone(), flight.token.clone()?))
        });
        let task = || {
            let token = self.task_token(id?)?;
            Some((self.session()?.streams.standing.clone(), token))
        };
        let shown = call.or_else(task);
        match shown {
            Some((outbox, token)) => {
                let mut edit = Edit::new();
                edit.replace(span, token);
                outbox.push(Sort::Notice, on_one_line(edit.apply(message.bytes())));
            }
            None => self.drop_message(),
        }
    }

    fn log(&self, message: Message, call: Option<u64>) {
        let level = message.inner().level.and_then(|s| message.text(s));
        let rank = level.as_deref().and_then(level_rank).unwrap_or(0);
        let wants = {
            let flights = self.lock();
            let flight = match call {
                Some(id) => flights.get(&id),
                None if matches!(self.home, Home::Pool) && flights.len() == 1 => {
                    flights.values().next()
                }
                None => None,
            };
            flight.map(|f| f.wants)
        };
        let least = match (wants, self.session()) {
            (Some(Wants::From(least)), _) => Some(least),
            (Some(Wants::Nothing), _) | (None, None) => None,
            (Some(Wants::Session), None) => Some(0),
            (Some(Wants::Session) | None, Some(session)) => {
                Some(session.state.level().unwrap_or(0))
            }
        };
        match least {
            Some(least) if rank >= least => self.push(call, Sort::Notice, message.into_bytes()),
            Some(_) => {}
            None => self.drop_message(),
        }
    }

    fn updated(&self, router: &Arc<Router>, slot: &Arc<Slot>, message: Message) {
        if let Some(flight) = self.subscription(&message) {
            return self.pass_subscribed(&message, &flight);
        }
        let Some(session) = self.session() else {
            return self.drop_message();
        };
        let inner = message.inner();
        let Some(uri) = inner.uri.and_then(|s| message.text(s)) else {
            return self.drop_message();
        };
        let endpoint = &router.endpoints[slot.endpoint];
        let theirs = session.state.is_subscribed(slot.place, &uri);
        if !theirs
            && (!endpoint.through || slot.server.isolation != crate::config::Isolation::Session)
        {
            return self.drop_message();
        }
        let exposed = endpoint.shared.expose(&slot.server.id, &uri);
        let mut edit = Edit::new();
        if exposed != *uri
            && let Some(span) = inner.uri
        {
            edit.replace(span, quote(&exposed));
        }
        let shown = on_one_line(edit.apply(message.bytes()));
        session.streams.standing.push(Sort::Notice, shown);
    }

    /// The `subscriptions/listen` that a notification names, by our id of it.
    fn subscription(&self, message: &Message) -> Option<(Arc<Outbox>, Bytes)> {
        let span = message.inner().meta_subscription?;
        let id = own_number(message.raw(span))?;
        let flights = self.lock();
        flights.get(&id).map(|f| (f.outbox.clone(), f.id.clone()))
    }

    fn pass_subscribed(&self, message: &Message, (outbox, id): &(Arc<Outbox>, Bytes)) {
        let mut edit = Edit::new();
        if let Some(span) = message.inner().meta_subscription {
            edit.replace(span, id.clone());
        }
        outbox.push(Sort::Notice, on_one_line(edit.apply(message.bytes())));
    }

    /// The server takes a question back.
    fn withdrawn(&self, message: &Message, call: Option<u64>) {
        let Some(session) = self.session() else {
            return;
        };
        let Some(span) = message.inner().request_id else {
            return;
        };
        let Some(id) = session.state.asks.find(self, message.raw(span)) else {
            return;
        };
        session.state.asks.take(id);
        let mut edit = Edit::new();
        edit.replace(span, id.to_string());
        self.push(call, Sort::Ask, edit.apply(message.bytes()));
    }

    /// A server's request: to the one client it belongs to, or declined at once so that the server never waits for nobody.
    fn ask(self: &Arc<Self>, router: &Arc<Router>, message: Message, call: Option<u64>) {
        let Some(id) = message.id().map(Bytes::copy_from_slice) else {
            return;
        };
        let refusal = match self.session() {
            None => Some(RpcError::new(
                code::METHOD_NOT_FOUND,
                "the caller of this gateway cannot be asked",
            )),
            Some(session) => unsupported(&session, &message).or_else(|| {
                let token = message.inner().progress_token.map(|s| message.slice(s));
                let ask = Ask {
                    inlet: self.clone(),
                    original: id.clone(),
                    token,
                };
                let Some(own) = session.state.asks.put(ask) else {
                    return Some(RpcError::new(
                        code::OVER_LIMIT,
                        "too many requests wait for the client",
                    ));
                };
                self.put_question(router, &message, own, call);
                None
            }),
        };
        if let Some(error) = refusal {
            self.respond(error.message(Some(&id)));
        }
    }

    fn put_question(&self, router: &Router, message: &Message, own: u64, call: Option<u64>) {
        let own = Bytes::from(own.to_string());
        let mut edit = Edit::new();
        if let Some(span) = message.id_span() {
            edit.replace(span, own.clone());
        }
        if let Some(span) = message.inner().progress_token {
            edit.replace(span, own);
        }
        let mut shown = edit.apply(message.bytes());
        if let Some(slot) = self.slot.upgrade() {
            shown = router.expose_related_task(&slot, shown);
        }
        self.push(call, Sort::Ask, shown);
    }
}

/// The error for a request that the client did not say it can answer.
fn unsupported(session: &ClientSession, message: &Message) -> Option<RpcError> {
    let capabilities = &session.caller.capabilities;
    let has = |path: &str| union::has(capabilities, path);
    let (fits, what) = match message.method() {
        Method::CreateMessage => (has("sampling"), "sampling"),
        Method::ListRoots => (has("roots"), "roots"),
        Method::Elicit => {
            let mode = message.inner().mode.and_then(|s| message.text(s));
            match mode.as_deref() {
                Some("url") => (has("elicitation.url"), "elicitation by link"),
                // An empty object means forms (2025-06-18 had nothing else).
                _ => (
                    has("elicitation.form") || (has("elicitation") && !has("elicitation.url")),
                    "elicitation",
                ),
            }
        }
        _ => (true, ""),
    };
    (!fits).then(|| {
        RpcError::new(
            code::METHOD_NOT_FOUND,
            format!("the client did not declare {what}"),
        )
    })
}

impl Receiver for Shared {
    fn receive(&self, message: Message, call: Option<u64>) {
        let Some(router) = self.0.router.upgrade() else {
            return;
        };
        match message.kind() {
            Kind::Notification => self.0.notice(&router, message, call),
            Kind::Request => self.0.ask(&router, message, call),
            Kind::Result | Kind::Error => self.0.drop_message(),
        }
    }

    fn ended(&self, fault: &Fault) {
        self.0.over(fault);
    }
}

/// The handle that a link holds on its inlet.
pub struct Shared(pub Arc<Inlet>);

/// The notification that says a list changed.
pub fn changed_note(kind: ListKind) -> Bytes {
    call_message(None, kind.changed(), None)
}
