//! Carrying a start through: its turn, its place, the process, the first words.

use super::{
    calls::unsent,
    ending::bury,
    greet::{First, Greeting, greet},
    places::{Place, Wanted},
    process::Process,
    restarts::Gate,
    spawn::spawn,
    starting::{Phase, Starting},
    supervisor::{Inner, LAST, State},
};
use crate::{
    backend::{Fault, Plan},
    mcp::Era,
};
use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};
use tokio::time::Instant;

/// How many start limits a start may take in all, when nobody waits any more.
const PATIENCE: u32 = 10;
/// Processes that one start may need to find out the era.
const ATTEMPTS: usize = 3;

impl Inner {
    /// Carries a start through, whoever still waits for it.
    pub(super) async fn run(self: Arc<Self>, starting: Arc<Starting>) {
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

/// A random number in 0..=1, for waits that must not all end at once.
pub(super) fn chance() -> f64 {
    let random = RandomState::new().hash_one(0u8);
    random as f64 / u64::MAX as f64
}
