//! What one example process shares between all its clients: the server, the legacy sessions, the open
//! `subscriptions/listen` streams. Who may hear of a change is decided here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::calendar::Diary;
use super::fault::notification;
use super::revision::Spoken;
use super::server::Server;
use super::session::Session;

/// Where messages for a client go. Unbounded, since a tool sends a few messages per call and the steps of the
/// one that sends many are capped.
pub type Outlet = mpsc::UnboundedSender<Value>;

/// Sessions at a time; more than any test opens, and few enough for any machine.
const MAX_SESSIONS: usize = 16_384;

/// An open `subscriptions/listen` request.
pub struct Listener {
    /// The id of the request, which is the subscription's id too.
    pub id: Value,
    /// Wants `notifications/tools/list_changed`.
    pub tools: bool,
    /// Wants `notifications/resources/updated` for these.
    pub uris: Vec<String>,
    /// Where its messages go.
    pub out: Outlet,
}

impl Listener {
    fn send(&self, method: &str, mut params: Value) {
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": self.id });
        // A closed stream is removed by its own request; nobody else has to know.
        let _ = self.out.send(notification(method, params));
    }
}

/// What one example process shares between all its clients.
pub struct World {
    /// The server that this process plays.
    pub server: Box<dyn Server>,
    /// The revisions that it speaks.
    pub spoken: Spoken,
    /// Entries per page of a list, if lists come in pages.
    pub page_size: Option<usize>,
    /// The bookings of all clients that have no session (2026-07-28).
    pub diary: Arc<Diary>,
    /// Cancelled when the process is about to end.
    pub closing: CancellationToken,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    listeners: Mutex<HashMap<u64, Listener>>,
    next_listener: AtomicU64,
}

/// A listener's place in the world; leaving it ends the subscription.
pub struct Seat {
    world: Arc<World>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        locked(&self.world.listeners).remove(&self.number);
    }
}

impl World {
    /// A world without any client.
    pub fn new(server: Box<dyn Server>, spoken: Spoken, page_size: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            server,
            spoken,
            page_size,
            diary: Arc::default(),
            closing: CancellationToken::new(),
            sessions: Mutex::default(),
            listeners: Mutex::default(),
            next_listener: AtomicU64::new(0),
        })
    }

    /// Makes a session known, so that its requests and the news for it find it; false if there are too many.
    pub fn admit(&self, session: Arc<Session>) -> bool {
        let mut sessions = locked(&self.sessions);
        if sessions.len() >= MAX_SESSIONS {
            return false;
        }
        sessions.insert(session.id().to_owned(), session);
        true
    }

    /// The session of that id.
    pub fn session(&self, id: &str) -> Option<Arc<Session>> {
        locked(&self.sessions).get(id).cloned()
    }

    /// Ends a session and everything that runs in it; false if there was none.
    pub fn dismiss(&self, id: &str) -> bool {
        let Some(session) = locked(&self.sessions).remove(id) else {
            return false;
        };
        session.end();
        true
    }

    /// Ends all subscriptions and sessions, since the process is about to end.
    pub fn close(&self) {
        self.closing.cancel();
        let sessions: Vec<_> = locked(&self.sessions).drain().collect();
        for (_, session) in sessions {
            session.end();
        }
    }

    /// Opens a subscription. Its acknowledgement goes out before anything else can be sent on it.
    pub fn listen(self: &Arc<Self>, listener: Listener) -> Seat {
        let mut honoured = json!({});
        if listener.tools {
            honoured["toolsListChanged"] = json!(true);
        }
        if !listener.uris.is_empty() {
            honoured["resourceSubscriptions"] = json!(listener.uris);
        }
        let number = self.next_listener.fetch_add(1, Ordering::Relaxed);
        let mut listeners = locked(&self.listeners);
        listener.send(
            "notifications/subscriptions/acknowledged",
            json!({ "notifications": honoured }),
        );
        listeners.insert(number, listener);
        Seat {
            world: Arc::clone(self),
            number,
        }
    }

    /// The list of tools has changed for all clients without a session.
    pub fn tools_changed(&self) {
        let listeners = locked(&self.listeners);
        for listener in listeners.values().filter(|listener| listener.tools) {
            listener.send("notifications/tools/list_changed", json!({}));
        }
    }

    /// Resources have changed, in every session: all those whose URI `changed` picks. A subscriber is told the
    /// URI as it wrote it.
    pub fn resources_changed(&self, changed: impl Fn(&str) -> bool) {
        for session in locked(&self.sessions).values() {
            for uri in session.subscriptions().iter().filter(|uri| changed(uri)) {
                session.notify(notification(
                    "notifications/resources/updated",
                    json!({ "uri": uri }),
                ));
            }
        }
        for listener in locked(&self.listeners).values() {
            for uri in listener.uris.iter().filter(|uri| changed(uri)) {
                listener.send("notifications/resources/updated", json!({ "uri": uri }));
            }
        }
    }
}

/// The lock's value. A panic elsewhere leaves these plain collections whole, so poison is ignored.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
