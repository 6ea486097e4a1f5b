//! A client's place at one server: the link in use, opened when first needed and again when it is lost.

use super::{
    core::Router,
    inlet::{Home, Inlet, Shared},
    standing::LEVELS,
};
use crate::{
    backend::{Call, Fault, Holder, Link, Opening, Server},
    bridge::Hop,
    catalog::Layer,
    config::Isolation,
    mcp::{Era, ListKind, Message, Revision, code::call_message, message::quote},
};
use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Waits before a lost link is tried again: the first and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Names that are in no list make it load again at most this often.
const BETWEEN_MISSES: Duration = Duration::from_millis(250);

/// What servers are told of the client.
#[derive(Clone, Debug)]
pub struct Face {
    /// The era that fits the client.
    pub era: Era,
    pub revision: Revision,
    /// Raw JSON.
    pub client_info: Bytes,
    /// Raw JSON; only what can be answered.
    pub capabilities: Bytes,
    pub holder: Holder,
}

/// A link and where its messages go.
pub struct Open {
    pub link: Link,
    pub inlet: Arc<Inlet>,
}

pub struct Slot {
    pub endpoint: usize,
    pub place: usize,
    pub server: Arc<Server>,
    pub face: Face,
    pub home: Home,
    router: Weak<Router>,
    current: ArcSwapOption<Open>,
    /// Whether there was a link before.
    opened: AtomicBool,
    opening: tokio::sync::Mutex<()>,
    layer: ArcSwap<Layer>,
    own_layer: AtomicBool,
    /// Rank of the level that a pooled backend was set to.
    level: AtomicUsize,
    /// Lists that were waited for in vain and are still being fetched.
    overdue: [AtomicBool; 4],
    /// When each list was last loaded for a name that was not in it.
    missed: Mutex<[Option<Instant>; 4]>,
    /// Links of single requests, where each request has its own.
    passing: Mutex<Vec<Weak<Open>>>,
}

impl Slot {
    pub fn new(
        router: Weak<Router>,
        (endpoint, place): (usize, usize),
        server: Arc<Server>,
        face: Face,
        home: Home,
        layer: Arc<Layer>,
    ) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            place,
            server,
            face,
            home,
            router,
            current: ArcSwapOption::empty(),
            opened: AtomicBool::new(false),
            opening: tokio::sync::Mutex::new(()),
            layer: ArcSwap::new(layer),
            own_layer: AtomicBool::new(false),
            level: AtomicUsize::new(LEVELS.len()),
            overdue: Default::default(),
            missed: Mutex::default(),
            passing: Mutex::default(),
        })
    }

    /// The link in use, if it still lives.
    pub fn ready(&self) -> Option<Arc<Open>> {
        self.current.load_full().filter(|open| open.link.is_alive())
    }

    /// Whether each request gets a process of its own, which ends with it.
    pub fn is_per_request(&self) -> bool {
        self.server.isolation == Isolation::Request && self.server.is_stdio()
    }

    /// A link for one request: the one in use, or its own, which [`Slot::done`] ends.
    pub async fn take(self: &Arc<Self>) -> Result<Arc<Open>, Fault> {
        if !self.is_per_request() {
            return self.open().await;
        }
        let open = self.fresh().await?;
        let mut passing = self.passing();
        passing.retain(|one| one.strong_count() > 0);
        passing.push(Arc::downgrade(&open));
        Ok(open)
    }

    /// A request is over: a link that was only for it ends.
    pub async fn done(&self, open: &Arc<Open>) {
        if self.is_per_request() {
            open.link.close().await;
        }
    }

    /// Every link that a request may run on now.
    pub fn links(&self) -> Vec<Arc<Open>> {
        let mut all: Vec<Arc<Open>> = self.ready().into_iter().collect();
        all.extend(self.passing().iter().filter_map(Weak::upgrade));
        all
    }

    fn passing(&self) -> MutexGuard<'_, Vec<Weak<Open>>> {
        self.passing.lock().expect("no holder of this lock panics")
    }

    /// The link in use, opened first if there is none. One opening at a time.
    pub async fn open(self: &Arc<Self>) -> Result<Arc<Open>, Fault> {
        if let Some(open) = self.ready() {
            return Ok(open);
        }
        let _turn = self.opening.lock().await;
        if let Some(open) = self.ready() {
            return Ok(open);
        }
        let open = self.fresh().await?;
        if self.opened.swap(true, Ordering::Relaxed) {
            self.layer().all_changed();
        }
        self.current.store(Some(open.clone()));
        Ok(open)
    }

    /// Opens a link that was lost, again and again until there is one.
    pub async fn reopen(self: &Arc<Self>) {
        let mut wait = FIRST_WAIT;
        while let Err(fault) = self.open().await {
            tracing::debug!(server = %self.server.id, %fault, "a lost link cannot be opened again yet");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// A new link that is not kept. It knows all that an older one was told before anyone gets it.
    pub async fn fresh(self: &Arc<Self>) -> Result<Arc<Open>, Fault> {
        let inlet = Arc::new(Inlet::new(self.router.clone(), self));
        let opening = Opening {
            era: self.face.era,
            revision: self.face.revision,
            client_info: self.face.client_info.clone(),
            capabilities: self.face.capabilities.clone(),
            holder: self.face.holder.clone(),
            receiver: Arc::new(Shared(inlet.clone())),
        };
        let link = self.server.open(opening).await?;
        let open = Arc::new(Open { link, inlet });
        open.inlet.attach(&open);
        self.tell_again(&open).await;
        Ok(open)
    }

    /// Level and subscriptions, which a backend that starts again has lost.
    async fn tell_again(&self, open: &Arc<Open>) {
        let Home::Session(session) = &self.home else {
            self.level.store(LEVELS.len(), Ordering::Relaxed);
            return;
        };
        let Some(session) = session.upgrade() else {
            return;
        };
        if open.link.profile().era() == Era::Modern {
            return;
        }
        if let Some(level) = session.state.level_name() {
            self.set_level(open, level).await;
        }
        for uri in session.state.subscriptions(self.place) {
            let params = format!("{{\"uri\":{}}}", quote(&uri));
            let told = open.ask("resources/subscribe", &params).await;
            if let Err(fault) = told {
                tracing::debug!(server = %self.server.id, %fault, "a subscription could not be renewed");
            }
        }
    }

    /// Sets the level of a backend that has levels; others are left alone.
    pub async fn set_level(&self, open: &Arc<Open>, level: &str) {
        let profile = open.link.profile();
        if profile.era() == Era::Modern || !profile.has("logging") {
            return;
        }
        let params = format!("{{\"level\":{}}}", quote(level));
        if let Err(fault) = open.ask("logging/setLevel", &params).await {
            tracing::debug!(server = %self.server.id, %fault, "a level could not be set");
        }
    }

    /// Whether waiting for a list is vain now: its last fetch is overdue, or the link that an overdue one waits for is not open yet.
    pub fn is_behind(&self, kind: ListKind) -> bool {
        let overdue = |at: usize| self.overdue[at].load(Ordering::Acquire);
        overdue(kind.index()) || (self.ready().is_none() && (0..self.overdue.len()).any(overdue))
    }

    /// Whether a list is to be loaded again because a name is not in it; not too often, whatever names are tried.
    pub fn missed(&self, kind: ListKind) -> bool {
        let mut missed = self.missed.lock().expect("no holder of this lock panics");
        let last = &mut missed[kind.index()];
        let again = last.is_none_or(|last| last.elapsed() > BETWEEN_MISSES);
        if again {
            *last = Some(Instant::now());
        }
        again
    }

    pub fn set_overdue(&self, kind: ListKind, overdue: bool) {
        self.overdue[kind.index()].store(overdue, Ordering::Release);
    }

    /// Makes a pooled backend at least as talkative as `rank`.
    pub async fn lower_level(&self, open: &Arc<Open>, rank: usize) {
        if self.level.fetch_min(rank, Ordering::Relaxed) > rank {
            self.set_level(open, LEVELS[rank]).await;
        }
    }

    /// Lets go of a link that turned out to be lost.
    pub fn forget(&self, open: &Arc<Open>) {
        let current = self.current.load();
        if current.as_ref().is_some_and(|c| Arc::ptr_eq(c, open)) {
            self.current.compare_and_swap(&current, None);
        }
    }

    /// Ends the link in use.
    pub async fn close(&self) {
        if let Some(open) = self.current.swap(None) {
            open.link.close().await;
        }
    }

    pub fn layer(&self) -> Arc<Layer> {
        self.layer.load_full()
    }

    /// The server told this client alone that a list changed: from now on it may differ from what others see.
    pub fn take_own_layer(&self) -> Arc<Layer> {
        if !self.own_layer.swap(true, Ordering::AcqRel) {
            let copy = self.layer.load().copy();
            self.layer.store(Arc::new(copy));
        }
        self.layer()
    }
}

impl Open {
    /// A request of the gateway's own; `params` is the JSON text of an object.
    pub async fn ask(
        self: &Arc<Self>,
        method: &'static str,
        params: &str,
    ) -> Result<Message, Fault> {
        let id = self.link.next_id();
        let params = match self.link.profile().era() {
            Era::Legacy => params.to_owned(),
            Era::Modern => self.with_meta(params),
        };
        let message = call_message(Some(&id.to_string()), method, Some(params.as_bytes()));
        let call = Call {
            id,
            message: message.into(),
            method,
            other_method: None,
            name: None,
            params: Vec::new(),
        };
        self.link.call(call).await
    }

    fn with_meta(&self, params: &str) -> String {
        let face = &self.inlet.face;
        let hop = Hop {
            revision: self.link.profile().revision,
            client_info: &face.client_info,
            capabilities: b"{}",
            log_level: None,
        };
        let inside = params.strip_prefix('{').and_then(|p| p.strip_suffix('}'));
        let inside = inside.unwrap_or_default();
        let comma = if inside.is_empty() { "" } else { "," };
        format!("{{\"_meta\":{}{comma}{inside}}}", hop.meta())
    }
}
