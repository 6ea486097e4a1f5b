//! The calls that one process is working on, and who waits for them.

use super::super::Fault;
use crate::mcp::Message;
use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::Instant;

pub(super) type Answer = Result<Message, Fault>;

/// Stands for the gateway itself: the first messages to a process belong to no link.
pub(super) const NO_LINK: u64 = 0;

/// Calls by id. Ids are unique within a process.
pub(super) struct Calls {
    next: AtomicU64,
    table: Mutex<Table>,
}

struct Table {
    waiting: HashMap<u64, Waiting>,
    /// How many of them keep the process busy.
    working: usize,
    /// Since when none did.
    idle_since: Instant,
    /// Whether any call of a link was ever answered.
    answered: bool,
    /// Set once no call can be answered any more.
    over: Option<Fault>,
}

struct Waiting {
    link: u64,
    /// A subscription stream: open without end, no work of the server's.
    standing: bool,
    answer: Option<Answer>,
    waker: Option<Waker>,
    /// The last sign of life.
    progress: Option<Instant>,
}

/// What is known of a call that something on the wire belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) link: u64,
    pub(super) call: u64,
}

/// Whether a process has something to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) working: usize,
    pub(super) idle_since: Instant,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self {
            next: AtomicU64::new(1),
            table: Mutex::new(Table {
                waiting: HashMap::new(),
                working: 0,
                idle_since: Instant::now(),
                answered: false,
                over: None,
            }),
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Enters a call before it is sent.
    pub(super) fn enter(&self, id: u64, link: u64, standing: bool) -> Result<(), Fault> {
        let mut table = self.lock();
        if let Some(fault) = &table.over {
            return Err(unsent(fault));
        }
        let waiting = Waiting {
            link,
            standing,
            answer: None,
            waker: None,
            progress: None,
        };
        table.working += usize::from(!standing);
        table.waiting.insert(id, waiting);
        Ok(())
    }

    /// Takes the answer if it has come.
    pub(super) fn poll(&self, id: u64, context: &mut Context<'_>) -> Poll<Answer> {
        let mut table = self.lock();
        let Some(waiting) = table.waiting.get_mut(&id) else {
            return Poll::Ready(Err(Fault::Cancelled));
        };
        if waiting.answer.is_none() {
            match &mut waiting.waker {
                Some(waker) => waker.clone_from(context.waker()),
                None => waiting.waker = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        let answer = table.remove(id).and_then(|waiting| waiting.answer);
        Poll::Ready(answer.unwrap_or(Err(Fault::Cancelled)))
    }

    /// Leaves a call; `true` if it was still unanswered.
    pub(super) fn leave(&self, id: u64) -> bool {
        let left = self.lock().remove(id);
        left.is_some_and(|waiting| waiting.answer.is_none())
    }

    /// Hands an answer to the call it belongs to; `false` if nobody waits for it.
    pub(super) fn answer(&self, id: u64, answer: Answer) -> bool {
        let mut table = self.lock();
        let came = answer.is_ok();
        let Some(waiting) = table.waiting.get_mut(&id) else {
            return false;
        };
        if waiting.answer.is_some() {
            return false;
        }
        waiting.answer = Some(answer);
        let waker = waiting.waker.take();
        let of_client = waiting.link != NO_LINK;
        table.answered |= came && of_client;
        drop(table);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Ends a call of `link` as cancelled; `false` if it has no such call unanswered.
    pub(super) fn cancel(&self, id: u64, link: u64) -> bool {
        let table = self.lock();
        let waiting = table.waiting.get(&id);
        let own = waiting.is_some_and(|w| w.link == link && w.answer.is_none());
        drop(table);
        own && self.answer(id, Err(Fault::Cancelled))
    }

    /// Notes a sign of life of a call, and tells whose it is.
    pub(super) fn progress(&self, id: u64) -> Option<Whose> {
        let mut table = self.lock();
        let waiting = table.waiting.get_mut(&id)?;
        waiting.progress = Some(Instant::now());
        Some(Whose {
            link: waiting.link,
            call: id,
        })
    }

    pub(super) fn whose(&self, id: u64) -> Option<Whose> {
        let link = self.lock().waiting.get(&id)?.link;
        Some(Whose { link, call: id })
    }

    /// The only call that is being worked on, if there is exactly one.
    pub(super) fn only(&self) -> Option<Whose> {
        let table = self.lock();
        if table.working != 1 {
            return None;
        }
        let open = |(_, w): &(&u64, &Waiting)| !w.standing && w.answer.is_none();
        let (id, waiting) = table.waiting.iter().find(open)?;
        Some(Whose {
            link: waiting.link,
            call: *id,
        })
    }

    /// The only call that waits for an answer, of whatever kind, if there is exactly one.
    pub(super) fn only_unanswered(&self) -> Option<u64> {
        let table = self.lock();
        let mut open = table.waiting.iter().filter(|(_, w)| w.answer.is_none());
        let only = open.next().map(|(id, _)| *id);
        only.filter(|_| open.next().is_none())
    }

    /// When a call that began at `begun` times out, if it did not show life again.
    pub(super) fn deadline(
        &self,
        id: u64,
        begun: Instant,
        call: Duration,
        max: Duration,
    ) -> Instant {
        let progress = self.lock().waiting.get(&id).and_then(|w| w.progress);
        (progress.unwrap_or(begun) + call).min(begun + max)
    }

    /// Fails all calls, and every later one.
    pub(super) fn end(&self, fault: &Fault) {
        let wakers = self.lock().end(fault);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Like [`Calls::end`] if there is nothing to do; `patient`: an open subscription is something to do.
    pub(super) fn end_if_idle(&self, fault: &Fault, patient: bool) -> bool {
        let mut table = self.lock();
        let idle = table.working == 0 && (!patient || table.waiting.is_empty());
        if !idle || table.over.is_some() {
            return false;
        }
        let wakers = table.end(fault);
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    pub(super) fn load(&self) -> Load {
        let table = self.lock();
        Load {
            working: table.working,
            idle_since: table.idle_since,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().over.is_some()
    }

    pub(super) fn has_answered(&self) -> bool {
        self.lock().answered
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no holder of this lock panics")
    }
}

impl Table {
    /// Those to wake once the lock is released.
    fn end(&mut self, fault: &Fault) -> Vec<Waker> {
        let mut wakers = Vec::new();
        if self.over.is_some() {
            return wakers;
        }
        self.over = Some(fault.clone());
        for waiting in self.waiting.values_mut() {
            waiting.answer.get_or_insert_with(|| Err(fault.clone()));
            wakers.extend(waiting.waker.take());
        }
        wakers
    }

    fn remove(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        self.working -= usize::from(!waiting.standing);
        if self.working == 0 {
            self.idle_since = Instant::now();
        }
        Some(waiting)
    }
}

/// The fault of a call that came too late to be sent.
pub(super) fn unsent(fault: &Fault) -> Fault {
    match fault {
        Fault::Crashed { reason } => Fault::unreachable(reason.clone()),
        Fault::Stopped(reason) => Fault::unreachable(*reason),
        other => other.clone(),
    }
}
