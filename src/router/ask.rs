//! Requests of servers that wait for a client's answer.

use super::inlet::Inlet;
use bytes::Bytes;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// Most questions that may wait for one client; beyond it a server is told at once that nobody answers.
const MAX_WAITING: usize = 1024;

/// One question on its way.
pub struct Ask {
    pub inlet: Arc<Inlet>,
    /// The server's own id, raw.
    pub original: Bytes,
    /// The progress token that the server gave, raw.
    pub token: Option<Bytes>,
}

/// The questions of one session, by the ids that its client sees.
#[derive(Default)]
pub struct Asks {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Ask>>,
}

impl Asks {
    /// Takes a question in and gives it an id; `None` if too many wait.
    pub fn put(&self, ask: Ask) -> Option<u64> {
        let mut waiting = self.lock();
        if waiting.len() >= MAX_WAITING {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        waiting.insert(id, ask);
        Some(id)
    }

    /// The question that an answer is for; each can be taken once.
    pub fn take(&self, id: u64) -> Option<Ask> {
        self.lock().remove(&id)
    }

    /// The inlet and the server's own token of a question, for progress on it.
    pub fn token(&self, id: u64) -> Option<(Arc<Inlet>, Bytes)> {
        let waiting = self.lock();
        let ask = waiting.get(&id)?;
        Some((ask.inlet.clone(), ask.token.clone()?))
    }

    /// The client's id of the question that `inlet` knows as `original`.
    pub fn find(&self, inlet: &Inlet, original: &[u8]) -> Option<u64> {
        let same = |ask: &Ask| std::ptr::eq(&*ask.inlet, inlet) && ask.original == original;
        let waiting = self.lock();
        waiting.iter().find(|(_, a)| same(a)).map(|(id, _)| *id)
    }

    /// Takes out all that came from `inlet`.
    pub fn take_of(&self, inlet: &Inlet) -> Vec<u64> {
        let mut waiting = self.lock();
        let mine = |(_, ask): &(&u64, &Ask)| std::ptr::eq(&*ask.inlet, inlet);
        let ids: Vec<u64> = waiting.iter().filter(mine).map(|(id, _)| *id).collect();
        for id in &ids {
            waiting.remove(id);
        }
        ids
    }

    /// Takes out everything.
    pub fn take_all(&self) -> Vec<Ask> {
        self.lock().drain().map(|(_, ask)| ask).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Ask>> {
        self.waiting.lock().expect("no holder of this lock panics")
    }
}
