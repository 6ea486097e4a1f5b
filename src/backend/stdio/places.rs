//! How many processes there may be: in all, of a server, and of a server for one caller.
//!
//! Who finds no place first ends his own longest idle process, since some clients
//! open a session for each call and never close it; only then he waits in line.
//! Nobody's process is ended for another caller.

use super::process::Process;
use crate::{backend::Fault, mcp::ServerId};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};

/// Why a process makes room.
const ROOM: &str = "idle, and its caller needs its place";
/// How often who waits looks again for an idle process of his.
const LOOK: Duration = Duration::from_millis(100);

/// All processes of the gateway.
pub struct Processes {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    taken: HashMap<u64, Taken>,
    line: VecDeque<Waiter>,
}

struct Taken {
    wanted: Wanted,
    process: Weak<Process>,
    /// The waiter it was ended for.
    heir: Option<u64>,
}

struct Waiter {
    number: u64,
    wanted: Wanted,
    grant: oneshot::Sender<Place>,
}

/// Who wants a place, and how many there are.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) server: ServerId,
    /// `None`: a process for everyone.
    pub(super) principal: Option<Arc<str>>,
    pub(super) of_server: usize,
    pub(super) per_principal: usize,
}

/// The right to run one process; given back when dropped.
pub(super) struct Place {
    number: u64,
    home: Option<Arc<Processes>>,
}

impl Processes {
    /// `most`: processes in all.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            state: Mutex::default(),
        })
    }

    /// Processes that run now, or are about to.
    pub fn count(&self) -> usize {
        self.lock().taken.len()
    }

    /// Finds a place, within `limit` if others must end first.
    pub(super) async fn admit(
        self: &Arc<Self>,
        wanted: Wanted,
        limit: Duration,
        ending: Duration,
    ) -> Result<Place, Fault> {
        let (number, mut grant) = {
            let mut state = self.lock();
            if state.fits(&wanted, self.most) {
                return Ok(self.take(&mut state, wanted));
            }
            state.last += 1;
            let number = state.last;
            let (sender, grant) = oneshot::channel();
            state.line.push_back(Waiter {
                number,
                wanted: wanted.clone(),
                grant: sender,
            });
            (number, grant)
        };
        let _leaves = Leaves { home: self, number };
        let begun = Instant::now();
        loop {
            let evicting = self.evict(&wanted, number);
            let limit = if evicting { limit.max(ending) } else { limit };
            let Some(left) = limit.checked_sub(begun.elapsed()).filter(|l| !l.is_zero()) else {
                return Err(Fault::Busy("has no free place for another process"));
            };
            tokio::select! {
                place = &mut grant => {
                    return place.map_err(|_| Fault::Busy("has no free place for another process"));
                }
                () = tokio::time::sleep(left.min(LOOK)) => {}
            }
        }
    }

    /// Ends the caller's own longest idle process in favour of the waiter, unless one is ending for him already.
    fn evict(&self, wanted: &Wanted, waiter: u64) -> bool {
        let candidates = {
            let state = self.lock();
            if state.taken.values().any(|taken| taken.heir == Some(waiter)) {
                return true;
            }
            state.candidates(wanted, self.most)
        };
        for (number, process) in candidates {
            // It may have got work since; then the next one is tried.
            if !process.stop_if_idle(ROOM, false) {
                continue;
            }
            if let Some(taken) = self.lock().taken.get_mut(&number) {
                taken.heir = Some(waiter);
            }
            return true;
        }
        false
    }

    fn take(self: &Arc<Self>, state: &mut State, wanted: Wanted) -> Place {
        state.last += 1;
        let number = state.last;
        let taken = Taken {
            wanted,
            process: Weak::new(),
            heir: None,
        };
        state.taken.insert(number, taken);
        Place {
            number,
            home: Some(self.clone()),
        }
    }

    /// Frees a place and gives what is free to those who wait: the heir first, then in line.
    fn free(self: &Arc<Self>, number: u64) {
        let mut state = self.lock();
        let heir = state.taken.remove(&number).and_then(|taken| taken.heir);
        if let Some(at) = heir.and_then(|heir| state.line.iter().position(|w| w.number == heir)) {
            self.serve(&mut state, at);
        }
        let mut at = 0;
        while at < state.line.len() {
            if !self.serve(&mut state, at) {
                at += 1;
            }
        }
    }

    /// Serves the waiter at this place in line if he fits; `true` if he is out of the line.
    fn serve(self: &Arc<Self>, state: &mut State, at: usize) -> bool {
        if !state.fits(&state.line[at].wanted, self.most) {
            return false;
        }
        let Some(waiter) = state.line.remove(at) else {
            return false;
        };
        let place = self.take(state, waiter.wanted);
        if let Err(mut unwanted) = waiter.grant.send(place) {
            // He has gone; dropping it would lock again.
            unwanted.home = None;
            state.taken.remove(&unwanted.number);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl State {
    fn fits(&self, wanted: &Wanted, most: usize) -> bool {
        let [all, of_server, of_caller] = self.counts(wanted);
        all < most && of_server < wanted.of_server && of_caller < wanted.per_principal
    }

    /// Processes in all, of the server, and of the server for the caller.
    fn counts(&self, wanted: &Wanted) -> [usize; 3] {
        let of_server = |taken: &&Taken| taken.wanted.server == wanted.server;
        let own = |taken: &&Taken| taken.wanted.is_of_same_caller(wanted);
        let all = self.taken.values();
        [
            all.len(),
            all.clone().filter(of_server).count(),
            all.filter(of_server).filter(own).count(),
        ]
    }

    /// Processes of the caller that would make room, longest idle first.
    fn candidates(&self, wanted: &Wanted, most: usize) -> Vec<(u64, Arc<Process>)> {
        let [_, of_server, of_caller] = self.counts(wanted);
        // Only the cap on all processes can be helped by ending one of another server.
        let only_here = of_server >= wanted.of_server || of_caller >= wanted.per_principal;
        debug_assert!(only_here || self.taken.len() >= most);
        let mut idle: Vec<_> = self
            .taken
            .iter()
            .filter(|(_, t)| t.heir.is_none() && t.wanted.is_of_same_caller(wanted))
            .filter(|(_, t)| !only_here || t.wanted.server == wanted.server)
            .filter_map(|(number, t)| Some((*number, t.process.upgrade()?)))
            .filter(|(_, process)| process.profile().is_some())
            .map(|(number, process)| (process.load(), number, process))
            .filter(|(load, ..)| load.working == 0)
            .collect();
        idle.sort_by_key(|(load, ..)| load.idle_since);
        idle.into_iter().map(|(_, number, p)| (number, p)).collect()
    }
}

impl Wanted {
    fn is_of_same_caller(&self, other: &Self) -> bool {
        self.principal.is_some() && self.principal == other.principal
    }
}

impl Place {
    /// Tells which process stands in it.
    pub(super) fn hold(&self, process: &Arc<Process>) {
        let Some(home) = &self.home else { return };
        if let Some(taken) = home.lock().taken.get_mut(&self.number) {
            taken.process = Arc::downgrade(process);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.free(self.number);
        }
    }
}

/// Leaves the line when who waits goes away.
struct Leaves<'a> {
    home: &'a Processes,
    number: u64,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.home.lock().line.retain(|w| w.number != self.number);
    }
}
