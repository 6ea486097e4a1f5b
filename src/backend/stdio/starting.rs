//! A process on its way into service, which outlives the wait of who asked for it.
//!
//! A server that needs longer than the limit (a package runner that fetches it the
//! first time) is not killed half-way, to begin again at the next call: the wait is
//! over, the start goes on, and the next opening of the same kind takes it over.

use super::{greet::Introduction, process::Process};
use crate::backend::Fault;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

pub(super) struct Starting {
    pub(super) principal: Option<Arc<str>>,
    pub(super) introduction: Introduction,
    phase: watch::Sender<Phase>,
    /// The process that is being spoken to.
    process: Mutex<Option<Arc<Process>>>,
    /// Set when nobody wants what would come of it.
    pub(super) unwanted: CancellationToken,
}

#[derive(Clone)]
pub(super) enum Phase {
    /// For its turn, or for a place.
    Waiting,
    Spawned,
    Up(Arc<Process>),
    Failed(Fault),
}

impl Starting {
    pub(super) fn new(principal: Option<Arc<str>>, introduction: Introduction) -> Arc<Self> {
        Arc::new(Self {
            principal,
            introduction,
            phase: watch::Sender::new(Phase::Waiting),
            process: Mutex::new(None),
            unwanted: CancellationToken::new(),
        })
    }

    /// Waits until the process is in service; `limit` counts from its spawn, or from now if that was before.
    pub(super) async fn wait(&self, limit: Duration) -> Result<Arc<Process>, Fault> {
        let mut phases = self.phase.subscribe();
        let mut deadline = None;
        loop {
            match phases.borrow_and_update().clone() {
                Phase::Up(process) => return Ok(process),
                Phase::Failed(fault) => return Err(fault),
                Phase::Spawned => {
                    deadline.get_or_insert_with(|| Instant::now() + limit);
                }
                Phase::Waiting => {}
            }
            let late = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = phases.changed() => {
                    changed.map_err(|_| Fault::unreachable("its start was given up"))?;
                }
                () = late => return Err(Fault::TimedOut(limit)),
            }
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Notes which process is being spoken to, in place of the one before.
    pub(super) fn hold(&self, process: Option<&Arc<Process>>) {
        *self.process.lock().expect("no holder of this lock panics") = process.cloned();
    }

    /// The process that is being spoken to, taken out.
    pub(super) fn release(&self) -> Option<Arc<Process>> {
        self.process
            .lock()
            .expect("no holder of this lock panics")
            .take()
    }

    /// Whether something may still come of it, or has.
    pub(super) fn is_good(&self) -> bool {
        match &*self.phase.borrow() {
            Phase::Waiting | Phase::Spawned => !self.unwanted.is_cancelled(),
            Phase::Up(process) => !process.is_over(),
            Phase::Failed(_) => false,
        }
    }

    /// Whether the process suits another opening as well as the one it was started for.
    pub(super) fn suits(&self, principal: Option<&Arc<str>>, other: &Introduction) -> bool {
        let own = &self.introduction;
        self.principal.as_ref() == principal
            && own.capabilities == other.capabilities
            && (own.era, own.legacy, own.modern) == (other.era, other.legacy, other.modern)
    }

    /// Gives up what nobody will use.
    pub(super) fn give_up(&self) {
        self.unwanted.cancel();
        if let Phase::Up(process) = self.phase() {
            process.stop(Fault::Stopped("nobody waits for it any more"));
        }
    }
}
