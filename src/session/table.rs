//! All sessions, who they belong to, and when they end.

use super::streams::Streams;
use crate::mcp::Revision;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use dashmap::DashMap;
use serde_json::{Map, Value};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// What `initialize` told of the client.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Stable identity; a session is found by this principal only.
    pub principal: Arc<str>,
    /// Number of the endpoint it was opened on.
    pub endpoint: usize,
    pub revision: Revision,
    /// Raw JSON.
    pub client_info: Bytes,
    /// Raw JSON.
    pub capabilities_json: Bytes,
    pub capabilities: Map<String, Value>,
}

pub struct Session<T> {
    /// What the client sends as `Mcp-Session-Id`.
    pub id: Arc<str>,
    /// A number for logs and holders; never reused.
    pub number: u64,
    pub caller: Caller,
    pub streams: Streams,
    /// Cancelled when the session ends.
    pub ended: CancellationToken,
    pub state: T,
    calls: AtomicUsize,
    seen: AtomicU64,
    born: Instant,
}

/// How many sessions there may be and how long an idle one lives.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub all: usize,
    pub per_principal: usize,
    pub idle: Duration,
}

/// No place for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A session that was opened, and the one that made room for it.
pub struct Opened<T> {
    pub session: Arc<Session<T>>,
    pub evicted: Option<Arc<Session<T>>>,
}

pub struct Table<T> {
    sessions: DashMap<Arc<str>, Arc<Session<T>>>,
    principals: DashMap<Arc<str>, usize>,
    limits: Limits,
    next: AtomicU64,
}

impl<T> Session<T> {
    /// Notes that the client is there.
    pub fn touch(&self) {
        let now = self.born.elapsed().as_micros() as u64;
        self.seen.store(now, Ordering::Relaxed);
    }

    /// Holds the session open while the returned guard lives.
    pub fn hold(self: &Arc<Self>) -> Hold<T> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Hold(self.clone())
    }

    /// How long nothing came from the client; `None` while a call runs or a stream is read.
    pub fn idle(&self) -> Option<Duration> {
        if self.calls.load(Ordering::Relaxed) > 0 || self.streams.has_reader() {
            return None;
        }
        let seen = Duration::from_micros(self.seen.load(Ordering::Relaxed));
        Some(self.born.elapsed().saturating_sub(seen))
    }
}

/// Keeps the idle reaper away from a session.
pub struct Hold<T>(Arc<Session<T>>);

impl<T> Drop for Hold<T> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Table<T> {
    pub fn new(limits: Limits) -> Self {
        Self {
            sessions: DashMap::new(),
            principals: DashMap::new(),
            limits,
            next: AtomicU64::new(1),
        }
    }

    /// Opens a session. At a limit, the same principal's longest idle one makes room; it is
    /// returned for the caller to end what hangs on it.
    pub fn open(&self, caller: Caller, streams: Streams, state: T) -> Result<Opened<T>, Full> {
        let principal = caller.principal.clone();
        let mine = self.principals.get(&principal).map_or(0, |n| *n);
        let mut evicted = None;
        if mine >= self.limits.per_principal || self.sessions.len() >= self.limits.all {
            let idle = self.longest_idle(&principal).ok_or(Full)?;
            evicted = self.remove(&idle);
        }
        let session = Arc::new(Session {
            id: new_id(),
            number: self.next.fetch_add(1, Ordering::Relaxed),
            caller,
            streams,
            ended: CancellationToken::new(),
            state,
            calls: AtomicUsize::new(0),
            seen: AtomicU64::new(0),
            born: Instant::now(),
        });
        *self.principals.entry(principal).or_insert(0) += 1;
        self.sessions.insert(session.id.clone(), session.clone());
        Ok(Opened { session, evicted })
    }

    /// The session `id` if it belongs to `principal` and was opened on `endpoint`; anything else is unknown.
    pub fn find(&self, id: &str, principal: &str, endpoint: usize) -> Option<Arc<Session<T>>> {
        let session = self.sessions.get(id)?.clone();
        let caller = &session.caller;
        (&*caller.principal == principal && caller.endpoint == endpoint).then_some(session)
    }

    /// Ends a session: takes it out, ends its streams and cancels its token.
    pub fn remove(&self, id: &str) -> Option<Arc<Session<T>>> {
        let (_, session) = self.sessions.remove(id)?;
        if let Some(mut count) = self.principals.get_mut(&session.caller.principal) {
            *count = count.saturating_sub(1);
        }
        self.principals
            .remove_if(&session.caller.principal, |_, count| *count == 0);
        session.streams.finish();
        session.ended.cancel();
        Some(session)
    }

    /// Ends what was idle too long, and frees streams that are no longer kept.
    pub fn reap(&self) -> Vec<Arc<Session<T>>> {
        let mut over = Vec::new();
        for entry in &self.sessions {
            entry.streams.sweep();
            if entry.idle().is_some_and(|idle| idle >= self.limits.idle) {
                over.push(entry.id.clone());
            }
        }
        over.iter().filter_map(|id| self.remove(id)).collect()
    }

    pub fn all(&self) -> Vec<Arc<Session<T>>> {
        self.sessions.iter().map(|e| e.value().clone()).collect()
    }

    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    fn longest_idle(&self, principal: &str) -> Option<Arc<str>> {
        self.sessions
            .iter()
            .filter(|s| &*s.caller.principal == principal)
            .filter_map(|s| s.idle().map(|idle| (idle, s.id.clone())))
            .max()
            .map(|(_, id)| id)
    }
}

/// 192 random bits: not to be guessed, and visible ASCII as the specification asks.
fn new_id() -> Arc<str> {
    let mut bytes = [0u8; 24];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers");
    URL_SAFE_NO_PAD.encode(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Bounds;

    fn table(all: usize, per_principal: usize, idle: Duration) -> Table<()> {
        Table::new(Limits {
            all,
            per_principal,
            idle,
        })
    }

    fn open(table: &Table<()>, principal: &str) -> Result<Arc<Session<()>>, Full> {
        let caller = Caller {
            principal: principal.into(),
            endpoint: 0,
            revision: Revision::V2025_11_25,
            client_info: Bytes::new(),
            capabilities_json: Bytes::new(),
            capabilities: Map::new(),
        };
        let bounds = Bounds {
            events: 8,
            bytes: 100,
        };
        let streams = Streams::new(bounds, Duration::ZERO);
        table.open(caller, streams, ()).map(|opened| opened.session)
    }

    #[test]
    fn a_session_is_found_by_its_own_principal_and_endpoint_only() {
        let table = table(10, 10, Duration::from_secs(1));
        let session = open(&table, "a").unwrap();
        assert!(table.find(&session.id, "a", 0).is_some());
        assert!(table.find(&session.id, "b", 0).is_none());
        assert!(table.find(&session.id, "a", 1).is_none());
        table.remove(&session.id);
        assert!(table.find(&session.id, "a", 0).is_none());
        assert!(session.ended.is_cancelled() && table.is_empty());
    }

    #[test]
    fn at_a_limit_the_same_callers_idle_session_makes_room() {
        let table = table(3, 2, Duration::from_secs(60));
        let first = open(&table, "a").unwrap();
        let second = open(&table, "a").unwrap();
        let busy = second.hold();
        open(&table, "a").unwrap();
        assert!(first.ended.is_cancelled() && !second.ended.is_cancelled());
        open(&table, "b").unwrap();
        assert_eq!(open(&table, "c").err(), Some(Full));
        drop(busy);
    }

    #[test]
    fn the_reaper_leaves_what_is_in_use() {
        let table = table(10, 10, Duration::ZERO);
        let busy = open(&table, "a").unwrap();
        let reading = open(&table, "a").unwrap();
        let idle = open(&table, "a").unwrap();
        let hold = busy.hold();
        let reader = reading.streams.standing.attach();
        assert_eq!(table.reap().len(), 1);
        assert!(idle.ended.is_cancelled());
        drop(hold);
        reading.streams.standing.detach(reader);
        assert_eq!(table.reap().len(), 2);
    }
}
