//! What the router keeps for one client session.

use super::{ask::Asks, changes::Told, slot::Slot};
use crate::session::Session;
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio_util::sync::CancellationToken;

pub type ClientSession = Session<Standing>;

/// Severity of a log message, as RFC 5424 orders them.
pub const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// The rank of a level's name; 0 is the most talkative.
pub fn level_rank(name: &str) -> Option<usize> {
    LEVELS.iter().position(|l| *l == name)
}

const UNSET: usize = usize::MAX;

pub struct Standing {
    /// By place in the endpoint; made when first needed.
    slots: Box<[OnceLock<Arc<Slot>>]>,
    pub asks: Asks,
    pub told: Told,
    level: AtomicUsize,
    pub initialized: AtomicBool,
    /// Calls running now.
    pub calls: AtomicUsize,
    /// Calls that still wait for their backend, so that they can be cancelled too.
    waiting: Mutex<HashMap<Vec<u8>, CancellationToken>>,
    /// Original URIs subscribed to, by place.
    subscribed: Mutex<HashSet<(usize, String)>>,
}

impl Standing {
    pub fn new(places: usize) -> Self {
        Self {
            slots: (0..places).map(|_| OnceLock::new()).collect(),
            asks: Asks::default(),
            told: Told::default(),
            level: AtomicUsize::new(UNSET),
            initialized: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            waiting: Mutex::default(),
            subscribed: Mutex::default(),
        }
    }

    pub fn slot(&self, place: usize, make: impl FnOnce() -> Arc<Slot>) -> &Arc<Slot> {
        self.slots[place].get_or_init(make)
    }

    /// The slots in use.
    pub fn slots(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.slots.iter().filter_map(OnceLock::get)
    }

    pub fn slot_if_used(&self, place: usize) -> Option<&Arc<Slot>> {
        self.slots.get(place)?.get()
    }

    /// The level that the client set, as a rank.
    pub fn level(&self) -> Option<usize> {
        let level = self.level.load(Ordering::Relaxed);
        (level != UNSET).then_some(level)
    }

    pub fn level_name(&self) -> Option<&'static str> {
        self.level().map(|rank| LEVELS[rank])
    }

    pub fn set_level(&self, rank: usize) {
        self.level.store(rank, Ordering::Relaxed);
    }

    /// Notes a call that waits for its backend, until the guard goes.
    pub fn wait(&self, id: Vec<u8>) -> Waiting<'_> {
        let token = CancellationToken::new();
        let mut waiting = self.waiting.lock().expect(LOCK);
        waiting.insert(id.clone(), token.clone());
        Waiting {
            standing: self,
            id,
            token,
        }
    }

    /// Cancels a call that still waits; `false` if none with this id does.
    pub fn cancel_waiting(&self, id: &[u8]) -> bool {
        let token = self.waiting.lock().expect(LOCK).remove(id);
        token.inspect(CancellationToken::cancel).is_some()
    }

    /// Notes a subscription; `false` if it stood already.
    pub fn subscribe(&self, place: usize, uri: &str) -> bool {
        let mut subscribed = self.subscribed.lock().expect(LOCK);
        subscribed.insert((place, uri.to_owned()))
    }

    pub fn unsubscribe(&self, place: usize, uri: &str) -> bool {
        let mut subscribed = self.subscribed.lock().expect(LOCK);
        subscribed.remove(&(place, uri.to_owned()))
    }

    pub fn is_subscribed(&self, place: usize, uri: &str) -> bool {
        let subscribed = self.subscribed.lock().expect(LOCK);
        subscribed.contains(&(place, uri.to_owned()))
    }

    /// What a backend that starts again has to be told.
    pub fn subscriptions(&self, place: usize) -> Vec<String> {
        let subscribed = self.subscribed.lock().expect(LOCK);
        let mine = subscribed.iter().filter(|(p, _)| *p == place);
        mine.map(|(_, uri)| uri.clone()).collect()
    }
}

/// A call that waits for its backend.
pub struct Waiting<'a> {
    standing: &'a Standing,
    id: Vec<u8>,
    token: CancellationToken,
}

impl Waiting<'_> {
    /// Ready when the client gives up.
    pub async fn given_up(&self) {
        self.token.cancelled().await;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.standing.waiting.lock().expect(LOCK).remove(&self.id);
    }
}

const LOCK: &str = "no holder of this lock panics";
