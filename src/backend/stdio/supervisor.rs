//! The supervisor of one stdio server: who gets which process, and what becomes of it.

use super::{
    Isolation, Settings,
    greet::Introduction,
    launch::chance,
    link::StdioLink,
    places::Processes,
    process::Process,
    restarts::Restarts,
    starting::{Phase, Starting},
};
use crate::{
    backend::{Eras, Fault, Opening},
    mcp::ServerId,
    telemetry::ServerMetrics,
};
use bytes::Bytes;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long killing may take at a shutdown, after its grace.
pub(super) const LAST: Duration = Duration::from_secs(3);

/// Runs the processes of one server. Cheap to clone.
#[derive(Clone)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

/// What a supervisor works with, all of it shared with others.
pub struct Parts {
    pub processes: Arc<Processes>,
    pub metrics: ServerMetrics,
    pub eras: Arc<Eras>,
    /// Owns every task of the supervisor.
    pub tracker: TaskTracker,
    /// Ends everything when cancelled.
    pub stop: CancellationToken,
}

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// No process runs, and none was asked for or the last one was ended by the gateway.
    Resting,
    Starting,
    /// In service, with so many processes.
    Up(usize),
    /// It ended or did not come up; the next opening starts it again.
    Down,
    /// It failed too often in a row; the next start may be tried after this.
    Failing(Duration),
}

pub(super) struct Inner {
    pub(super) server: ServerId,
    pub(super) settings: Arc<Settings>,
    pub(super) parts: Parts,
    /// Ends the waiting between the steps of an ending.
    pub(super) kill: CancellationToken,
    pub(super) state: Mutex<State>,
    /// Something in the state is different now.
    pub(super) changed: Notify,
}

pub(super) struct State {
    pub(super) restarts: Restarts,
    /// Unexpected ends that no new process has made good yet.
    pub(super) lost: u64,
    /// Whether the last thing known is a failure.
    pub(super) down: bool,
    pub(super) starting: usize,
    /// Processes of which anything is left.
    pub(super) all: Vec<Arc<Process>>,
    /// For everyone (`None`), or for one principal.
    pub(super) pool: HashMap<Option<Arc<str>>, Arc<Starting>>,
    /// A start that nobody waits for any more, kept for the next one of its kind.
    pub(super) spare: Option<Arc<Starting>>,
}

impl State {
    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.starting == 0
    }
}

impl Supervisor {
    /// A supervisor that has started nothing yet.
    pub fn new(server: ServerId, settings: Settings, mut parts: Parts) -> Self {
        parts.stop = parts.stop.child_token();
        let start = &settings.start;
        let state = State {
            restarts: Restarts::new(start.restarts, start.backoff),
            lost: 0,
            down: false,
            starting: 0,
            all: Vec::new(),
            pool: HashMap::new(),
            spare: None,
        };
        let inner = Inner {
            server,
            settings: Arc::new(settings),
            parts,
            kill: CancellationToken::new(),
            state: Mutex::new(state),
            changed: Notify::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Opens a link, over a new process or one that may be shared. Dropping the future, or a time-out, does not end a start that is under way.
    pub async fn open(&self, opening: Opening) -> Result<StdioLink, Fault> {
        let limit = self.inner.settings.start.timeout;
        for _ in 0..2 {
            let starting = self.inner.starting(&opening)?;
            let mut claim = Claim {
                inner: &self.inner,
                starting: &starting,
                settled: self.inner.is_pooled(),
            };
            let process = starting.wait(limit).await?;
            if let Some(link) = StdioLink::attach(&process, opening.receiver.clone()) {
                claim.settled = true;
                return Ok(link);
            }
            // It ended in between; a shared one may have been about to when it was chosen.
        }
        Err(Fault::unreachable("it ended as soon as it was up"))
    }

    pub fn health(&self) -> Health {
        let state = self.inner.lock();
        let up = state
            .all
            .iter()
            .filter(|p| p.profile().is_some() && !p.is_over());
        match (up.count(), state.restarts.refused_for(Instant::now())) {
            (0, Some(wait)) => Health::Failing(wait),
            (0, None) if state.starting > 0 => Health::Starting,
            (0, None) if state.down => Health::Down,
            (0, None) => Health::Resting,
            (up, _) => Health::Up(up),
        }
    }

    /// Ends all processes, by force after `grace`; returns when nothing of them is left.
    pub async fn shutdown(&self, grace: Duration) {
        self.inner.parts.stop.cancel();
        if tokio::time::timeout(grace, self.inner.all_gone())
            .await
            .is_err()
        {
            self.inner.kill.cancel();
            let _ = tokio::time::timeout(LAST, self.inner.all_gone()).await;
        }
    }
}

impl Inner {
    fn is_pooled(&self) -> bool {
        matches!(
            self.settings.isolation,
            Isolation::Principal | Isolation::Shared
        )
    }

    /// The start to wait for: one that is under way or done, or a new one.
    fn starting(self: &Arc<Self>, opening: &Opening) -> Result<Arc<Starting>, Fault> {
        if self.parts.stop.is_cancelled() {
            return Err(Fault::unreachable("the gateway is shutting down"));
        }
        let shared = self.settings.isolation == Isolation::Shared;
        let principal = (!shared).then(|| opening.holder.principal.clone());
        // Nobody in particular stands behind a shared process, so nobody's capabilities do.
        let capabilities = match shared {
            true => Bytes::from_static(b"{}"),
            false => opening.capabilities.clone(),
        };
        let exactly = match self.settings.protocol {
            super::Protocol::Exactly(revision) => Some(revision),
            _ => None,
        };
        let introduction = Introduction::of(opening, exactly, capabilities);
        let mut state = self.lock();
        if self.is_pooled() {
            if let Some(known) = state.pool.get(&principal).filter(|s| s.is_good()) {
                return Ok(known.clone());
            }
            state.pool.retain(|_, starting| starting.is_good());
        } else if let Some(spare) = state
            .spare
            .take_if(|s| !s.is_good() || s.suits(principal.as_ref(), &introduction))
            && spare.is_good()
        {
            return Ok(spare);
        }
        let starting = Starting::new(principal.clone(), introduction);
        if self.is_pooled() {
            state.pool.insert(principal, starting.clone());
        }
        state.starting += 1;
        drop(state);
        let task = self.clone().run(starting.clone());
        self.parts.tracker.spawn(task);
        Ok(starting)
    }

    pub(super) fn note_start(&self, process: &Arc<Process>) {
        let mut state = self.lock();
        state.all.push(process.clone());
        if state.lost > 0 {
            state.lost -= 1;
            self.parts.metrics.restarts.inc();
        }
        self.parts.metrics.processes.inc();
    }

    /// A process is over; with a fault if nobody asked for that.
    pub(super) fn note_end(&self, process: &Process, fault: Option<Fault>) {
        let Some(fault) = fault else { return };
        let (server, pid) = (self.server.as_str(), process.pid());
        tracing::warn!(server, pid, reason = %fault, "server process ended unexpectedly");
        let mut state = self.lock();
        state.lost += 1;
        // One that never came up is told by its start.
        if process.profile().is_some() {
            state.down = true;
            match process.was_useful() {
                true => state.restarts.proved(),
                false => state.restarts.failed(Instant::now(), chance()),
            }
            if !state
                .all
                .iter()
                .any(|p| p.profile().is_some() && !p.is_over())
            {
                self.parts.metrics.up.set(0);
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn note_gone(&self, process: &Arc<Process>) {
        self.lock().all.retain(|other| !Arc::ptr_eq(other, process));
        self.parts.metrics.processes.dec();
        let (server, pid) = (self.server.as_str(), process.pid());
        tracing::debug!(server, pid, "server process is gone");
        self.changed.notify_waiters();
    }

    async fn all_gone(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

/// A private start that somebody waits for. Dropped unsettled, the start is kept for another or given up.
struct Claim<'a> {
    inner: &'a Inner,
    starting: &'a Arc<Starting>,
    settled: bool,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.settled || !self.starting.is_good() {
            return;
        }
        let mut state = self.inner.lock();
        let spawned = !matches!(self.starting.phase(), Phase::Waiting);
        if spawned && !state.spare.as_ref().is_some_and(|spare| spare.is_good()) {
            state.spare = Some(self.starting.clone());
            return;
        }
        drop(state);
        self.starting.give_up();
    }
}
