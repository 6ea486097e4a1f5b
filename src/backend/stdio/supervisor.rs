//! The supervisor of one stdio server: who gets which process, and what becomes of it.

use super::{
    Isolation, Settings,
    calls::unsent,
    greet::{First, Greeting, Introduction, greet},
    link::StdioLink,
    places::{Place, Processes, Wanted},
    process::{Process, bury},
    restarts::{Gate, Restarts},
    spawn::spawn,
    starting::{Phase, Starting},
};
use crate::{
    backend::{Eras, Fault, Opening, Plan},
    mcp::{Era, ServerId},
    telemetry::ServerMetrics,
};
use bytes::Bytes;
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How many start limits a start may take in all, when nobody waits any more.
const PATIENCE: u32 = 10;
/// Processes that one start may need to find out the era.
const ATTEMPTS: usize = 3;
/// How long killing may take at a shutdown, after its grace.
const LAST: Duration = Duration::from_secs(3);

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

struct Inner {
    server: ServerId,
    settings: Arc<Settings>,
    parts: Parts,
    /// Ends the waiting between the steps of an ending.
    kill: CancellationToken,
    state: Mutex<State>,
    /// Something in the state is different now.
    changed: Notify,
}

struct State {
    restarts: Restarts,
    /// Unexpected ends that no new process has made good yet.
    lost: u64,
    /// Whether the last thing known is a failure.
    down: bool,
    starting: usize,
    /// Processes of which anything is left.
    all: Vec<Arc<Process>>,
    /// For everyone (`None`), or for one principal.
    pool: HashMap<Option<Arc<str>>, Arc<Starting>>,
    /// A start that nobody waits for any more, kept for the next one of its kind.
    spare: Option<Arc<Starting>>,
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

    /// Carries a start through, whoever still waits for it.
    async fn run(self: Arc<Self>, starting: Arc<Starting>) {
        let outcome = tokio::select! {
            biased;
            () = self.parts.stop.cancelled() => Err(Fault::unreachable("the gateway is shutting down")),
            () = starting.unwanted.cancelled() => Err(Fault::unreachable("nobody waits for it any more")),
            outcome = self.start(&starting) => outcome,
        };
        let process = starting.release();
        self.lock().starting -= 1;
        match outcome {
            Ok(process) => starting.enter(Phase::Up(process)),
            Err(fault) => {
                if let Some(process) = process {
                    process.stop(fault.clone());
                }
                starting.enter(Phase::Failed(fault));
            }
        }
        if starting.unwanted.is_cancelled() {
            starting.give_up();
        }
        self.changed.notify_waiters();
    }

    async fn start(self: &Arc<Self>, starting: &Starting) -> Result<Arc<Process>, Fault> {
        let mut trial = self.gate().await?;
        let place = self.place(starting).await?;
        starting.enter(Phase::Spawned);
        let limit = self.settings.start.timeout.saturating_mul(PATIENCE);
        let begun = Instant::now();
        let up = tokio::time::timeout(limit, self.bring_up(starting, Arc::new(place))).await;
        let up = up.unwrap_or(Err(Fault::TimedOut(limit)));
        let took = begun.elapsed().as_millis() as u64;
        let server = self.server.as_str();
        match &up {
            Ok(process) => {
                trial.came_up();
                self.parts.metrics.up.set(1);
                let revision = process.profile().map(|p| p.revision.as_str());
                tracing::info!(
                    server,
                    pid = process.pid(),
                    revision,
                    took,
                    "server process is up"
                );
            }
            Err(fault) => {
                trial.failed();
                self.parts.metrics.up.set(0);
                tracing::warn!(server, took, reason = %fault, "server process did not come up");
            }
        }
        up.map_err(|fault| unsent(&fault))
    }

    /// Starts a process and greets it; another one where the first showed that it must be spoken to in the other era.
    async fn bring_up(
        self: &Arc<Self>,
        starting: &Starting,
        place: Arc<Place>,
    ) -> Result<Arc<Process>, Fault> {
        let eras = &self.parts.eras;
        let plan = eras.plan(starting.introduction.era);
        let mut first = First::Plan(plan);
        for _ in 0..ATTEMPTS {
            let process = self.spawn(place.clone())?;
            starting.hold(Some(&process));
            match greet(&process, first, &starting.introduction, eras).await {
                Ok(Greeting::Ready) => return Ok(process),
                Ok(Greeting::Fresh(era)) => {
                    process.stop(Fault::Stopped("a fresh one is spoken to in its era"));
                    first = First::Only(era);
                }
                Err(fault) => {
                    // What was modern once and does not even answer now is asked anew.
                    if plan == Plan::Modern && matches!(fault, Fault::Crashed { .. }) {
                        eras.doubt(Era::Modern);
                    }
                    return Err(fault);
                }
            }
        }
        Err(Fault::Declined("it speaks neither era".into()))
    }

    fn spawn(self: &Arc<Self>, place: Arc<Place>) -> Result<Arc<Process>, Fault> {
        let spawned = spawn(&self.settings)
            .map_err(|error| Fault::unreachable(format!("it cannot be started: {error}")))?;
        let (process, mut readers, mut control, keeper) = Process::new(
            self.server.clone(),
            self.settings.clone(),
            self.parts.metrics.clone(),
            spawned,
        );
        place.hold(&process);
        self.note_start(&process);
        let (inner, own) = (self.clone(), process.clone());
        self.parts.tracker.spawn(async move {
            let end = tokio::select! {
                end = own.live(&mut control, &mut readers) => end,
                () = inner.parts.stop.cancelled() => Ok(()),
            };
            own.stop(Fault::Stopped("the gateway is shutting down"));
            inner.note_end(&own, end.err());
            bury(&own, control, keeper, readers, &inner.kill).await;
            inner.note_gone(&own);
            drop(place);
        });
        Ok(process)
    }

    async fn place(&self, starting: &Starting) -> Result<Place, Fault> {
        let limits = &self.settings.limits;
        let ending = &self.settings.ending;
        let wanted = Wanted {
            server: self.server.clone(),
            principal: starting.principal.clone(),
            of_server: limits.processes,
            per_principal: match starting.principal {
                Some(_) => limits.per_principal,
                None => usize::MAX,
            },
        };
        let ending = ending.quiet + ending.grace + LAST;
        self.parts
            .processes
            .admit(wanted, limits.queue, ending)
            .await
    }

    /// Waits until a start is allowed, as long as one may wait for a place.
    async fn gate(self: &Arc<Self>) -> Result<Trial<'_>, Fault> {
        let limit = Instant::now() + self.settings.limits.queue;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.ask() {
                Gate::Open => {
                    return Ok(Trial {
                        inner: self,
                        decided: false,
                    });
                }
                Gate::Refused(wait) => {
                    let reason = format!("crash loop, next try in {} ms", wait.as_millis());
                    return Err(Fault::unreachable(reason));
                }
                Gate::Until(at) if at > limit => {
                    return Err(Fault::unreachable("it failed; it is not started again yet"));
                }
                Gate::Until(at) => tokio::time::sleep_until(at).await,
                Gate::Trial => {
                    let decided = tokio::time::timeout_at(limit, changed).await;
                    decided
                        .map_err(|_| Fault::unreachable("it failed and is being tried again"))?;
                }
            }
        }
    }

    fn ask(&self) -> Gate {
        let mut state = self.lock();
        if state.restarts.failures() > 0 && state.all.iter().any(|p| p.was_useful()) {
            state.restarts.proved();
        }
        state.restarts.ask(Instant::now())
    }

    fn note_start(&self, process: &Arc<Process>) {
        let mut state = self.lock();
        state.all.push(process.clone());
        if state.lost > 0 {
            state.lost -= 1;
            self.parts.metrics.restarts.inc();
        }
        self.parts.metrics.processes.inc();
    }

    /// A process is over; with a fault if nobody asked for that.
    fn note_end(&self, process: &Process, fault: Option<Fault>) {
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

    fn note_gone(&self, process: &Arc<Process>) {
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
            let gone = {
                let state = self.lock();
                state.all.is_empty() && state.starting == 0
            };
            if gone {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

/// A start that was let through the gate; undecided if dropped.
struct Trial<'a> {
    inner: &'a Inner,
    decided: bool,
}

impl Trial<'_> {
    fn came_up(&mut self) {
        self.decide(|state| {
            state.restarts.came_up();
            state.down = false;
        });
    }

    fn failed(&mut self) {
        self.decide(|state| {
            state.restarts.failed(Instant::now(), chance());
            state.down = true;
        });
    }

    fn decide(&mut self, how: impl FnOnce(&mut State)) {
        self.decided = true;
        how(&mut self.inner.lock());
        self.inner.changed.notify_waiters();
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if !self.decided {
            self.decide(|state| state.restarts.undecided());
        }
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

/// A random number in 0..=1, for waits that must not all end at once.
fn chance() -> f64 {
    let random = RandomState::new().hash_one(0u8);
    random as f64 / u64::MAX as f64
}
