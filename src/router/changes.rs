//! Changes of lists: who hears of them, and that they hear once.
//!
//! What a session's own backend says is for that session. What the gateway's own
//! link hears, or finds after a server was away, is fetched first and told then, so
//! that who asks on the announcement gets the new list.

use super::{
    core::Router,
    inlet::{Home, changed_note},
    slot::Slot,
    standing::ClientSession,
};
use crate::{backend::Server, catalog::Listing, mcp::ListKind, session::Sort};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// Changes that come within this time are told as one.
const DEBOUNCE: Duration = Duration::from_millis(30);
const LOCK: &str = "no holder of this lock panics";

/// Changes of servers' lists that are about to be looked into.
#[derive(Default)]
pub struct Pending(Mutex<HashMap<(String, ListKind), Tidings>>);

impl Pending {
    fn ask(&self, server: &Server, kind: ListKind) -> Tell {
        let mut pending = self.0.lock().expect(LOCK);
        let key = (server.id.to_string(), kind);
        pending.entry(key).or_default().ask()
    }

    fn waited(&self, server: &Server, kind: ListKind) {
        let mut pending = self.0.lock().expect(LOCK);
        if let Some(tidings) = pending.get_mut(&(server.id.to_string(), kind)) {
            tidings.waited();
        }
    }
}

/// What one session was told of changes lately.
#[derive(Default)]
pub struct Told(Mutex<[Tidings; 3]>);

#[derive(Clone, Copy, Default)]
struct Tidings {
    last: Option<Instant>,
    /// One more is to be told when the time since the last one is over.
    waits: bool,
}

/// When to tell of a change.
enum Tell {
    Now,
    After(Duration),
    /// One that covers it is told soon.
    Never,
}

impl Told {
    fn ask(&self, kind: ListKind) -> Tell {
        self.0.lock().expect(LOCK)[at(kind)].ask()
    }

    fn waited(&self, kind: ListKind) {
        self.0.lock().expect(LOCK)[at(kind)].waited();
    }
}

impl Tidings {
    /// The first is told at once; all that come within a moment after it are told together.
    fn ask(&mut self) -> Tell {
        if self.waits {
            return Tell::Never;
        }
        let since = self.last.map(|last| last.elapsed());
        match since.and_then(|since| DEBOUNCE.checked_sub(since)) {
            Some(rest) => {
                self.waits = true;
                Tell::After(rest)
            }
            None => {
                self.last = Some(Instant::now());
                Tell::Now
            }
        }
    }

    fn waited(&mut self) {
        self.waits = false;
        self.last = Some(Instant::now());
    }
}

/// Templates are told of as resources.
fn at(kind: ListKind) -> usize {
    kind.index().min(ListKind::Resources.index())
}

impl Router {
    /// A server said that a list changed.
    pub(super) fn list_changed(self: &Arc<Self>, slot: &Arc<Slot>, kind: ListKind) {
        match &slot.home {
            Home::Session(session) => {
                slot.take_own_layer().changed(kind);
                if !slot.server.is_stdio() {
                    for (endpoint, place) in self.places_of(&slot.server) {
                        self.layers.changed(endpoint, place, kind);
                    }
                }
                if let Some(session) = session.upgrade() {
                    self.tell_changed(&session, kind);
                }
            }
            Home::Pool => slot.layer().changed(kind),
            Home::Watch => self.relearn(slot, kind),
        }
    }

    /// Tells a session that a list changed: at once, and of all that changes within a moment after that together.
    pub(super) fn tell_changed(self: &Arc<Self>, session: &Arc<ClientSession>, kind: ListKind) {
        // One that nobody has read yet says it all.
        if session.streams.standing.waits(sort(kind)) {
            return;
        }
        match session.state.told.ask(kind) {
            Tell::Now => push(session, kind),
            Tell::After(rest) => {
                let session = Arc::downgrade(session);
                self.spawn(async move {
                    tokio::time::sleep(rest).await;
                    if let Some(session) = session.upgrade() {
                        session.state.told.waited(kind);
                        push(&session, kind);
                    }
                });
            }
            Tell::Never => {}
        }
    }

    /// Tells the sessions of an endpoint that a server has another list now; those with a link of their own hear it there, unless the link may be one to a server that is no more.
    pub(super) fn announce(
        self: &Arc<Self>,
        (endpoint, place): (usize, usize),
        kind: ListKind,
        list: Option<&Listing>,
        linked_too: bool,
    ) {
        for session in self.sessions.all() {
            if session.caller.endpoint != endpoint {
                continue;
            }
            let slot = session.state.slot_if_used(place);
            let linked = slot.is_some_and(|slot| slot.ready().is_some());
            let knows = |list: &Listing| {
                let known = slot.and_then(|slot| slot.layer().known(kind));
                known.is_some_and(|known| known.body == list.body)
            };
            if (!linked || linked_too) && !list.is_some_and(knows) {
                self.tell_changed(&session, kind);
            }
        }
    }

    /// Fetches the changed list first and tells of it then.
    fn relearn(self: &Arc<Self>, slot: &Arc<Slot>, kind: ListKind) {
        let wait = match self.pending.ask(&slot.server, kind) {
            Tell::Now => None,
            Tell::After(rest) => Some(rest),
            Tell::Never => return,
        };
        let (router, slot) = (self.clone(), slot.clone());
        self.spawn(async move {
            if let Some(rest) = wait {
                tokio::time::sleep(rest).await;
                router.pending.waited(&slot.server, kind);
            }
            let kinds: &[ListKind] = match kind {
                ListKind::Resources => &[ListKind::Resources, ListKind::Templates],
                _ => std::slice::from_ref(&kind),
            };
            for kind in kinds {
                router.relearn_one(&slot, *kind).await;
            }
        });
    }

    async fn relearn_one(self: &Arc<Self>, slot: &Arc<Slot>, kind: ListKind) {
        let learned = match slot.ready() {
            Some(open) => self.learn_list(&open, &slot.server, kind, false).await,
            None => return,
        };
        let Err(fault) = learned else { return };
        tracing::debug!(server = %slot.server.id, %fault, "a changed list could not be fetched");
        for (endpoint, place) in self.places_of(&slot.server).collect::<Vec<_>>() {
            self.layers.changed(endpoint, place, kind);
            self.announce((endpoint, place), kind, None, false);
        }
    }
}

fn push(session: &ClientSession, kind: ListKind) {
    let standing = &session.streams.standing;
    standing.push(sort(kind), changed_note(kind));
}

fn sort(kind: ListKind) -> Sort {
    match kind {
        ListKind::Templates => Sort::Changed(ListKind::Resources),
        kind => Sort::Changed(kind),
    }
}
