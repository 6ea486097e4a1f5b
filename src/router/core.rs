//! The router's parts, and the lifetime of what hangs on sessions.

use super::{
    changes::Pending,
    client::Client,
    endpoint::Endpoint,
    inlet::Home,
    modern::Pool,
    slot::{Face, Slot},
    standing::{ClientSession, Standing},
    subscribers::Subscribers,
    tasks::Seal,
};
use crate::{
    backend::{Holder, Server},
    catalog::{LayerKey, Layers},
    mcp::{Era, RpcError, code},
    session::{Bounds, Table},
    telemetry::Metrics,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How often sessions and pools are looked through for what is over.
const REAP_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Settings {
    /// How long `initialize` and `server/discover` wait for servers never reached.
    pub wait: Duration,
    /// How long a list waits for one server.
    pub list_wait: Duration,
    pub calls_per_session: usize,
    /// What is kept of a stream.
    pub bounds: Bounds,
    /// How long a stream that ended is kept.
    pub keep: Duration,
}

pub struct Router {
    pub servers: Vec<Arc<Server>>,
    pub endpoints: Vec<Endpoint>,
    pub sessions: Table<Standing>,
    pub settings: Settings,
    pub metrics: Arc<Metrics>,
    pub(super) layers: Layers,
    pub(super) pool: Pool,
    pub(super) subscribers: Subscribers,
    pub(super) seal: Seal,
    pub(super) pending: Pending,
    pub(super) running: AtomicUsize,
    /// When the gateway began to contact its servers.
    pub(super) started: Instant,
    pub(super) tasks: TaskTracker,
    pub(super) shutdown: CancellationToken,
}

impl Router {
    pub fn new(
        servers: Vec<Arc<Server>>,
        endpoints: Vec<Endpoint>,
        sessions: Table<Standing>,
        settings: Settings,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            servers,
            endpoints,
            sessions,
            settings,
            metrics,
            layers: Layers::default(),
            pool: Pool::default(),
            subscribers: Subscribers::default(),
            seal: Seal::new(),
            pending: Pending::default(),
            running: AtomicUsize::new(0),
            started: Instant::now(),
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
        })
    }

    /// Requests being answered now.
    pub fn calls(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Runs a task that the shutdown waits for.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tasks.spawn(task)
    }

    /// The client's place at a server.
    pub(super) fn slot(self: &Arc<Self>, client: &Client, place: usize) -> Arc<Slot> {
        match client {
            Client::Legacy(session) => {
                let make = || self.session_slot(session, place);
                session.state.slot(place, make).clone()
            }
            Client::Modern(caller) => self.pooled(caller, place),
        }
    }

    fn session_slot(self: &Arc<Self>, session: &Arc<ClientSession>, place: usize) -> Arc<Slot> {
        let caller = &session.caller;
        let key = LayerKey {
            endpoint: caller.endpoint,
            place,
            principal: caller.principal.clone(),
            capabilities: caller.capabilities_json.clone(),
            revision: caller.revision,
            era: Era::Legacy,
        };
        let face = Face {
            era: Era::Legacy,
            revision: caller.revision,
            client_info: caller.client_info.clone(),
            capabilities: caller.capabilities_json.clone(),
            holder: Holder {
                principal: caller.principal.clone(),
                session: Some(session.number),
            },
        };
        let server = self.endpoints[caller.endpoint].places[place].server.clone();
        let home = Home::Session(Arc::downgrade(session));
        let layer = self.layers.take(key);
        let at = (caller.endpoint, place);
        Slot::new(Arc::downgrade(self), at, server, face, home, layer)
    }

    /// Ends a session and all that hangs on it; `false` if there is none.
    pub fn end(self: &Arc<Self>, id: &str) -> bool {
        let Some(session) = self.sessions.remove(id) else {
            return false;
        };
        self.clean_up(session);
        true
    }

    /// Closes the backends of a session that is over and answers the servers that still wait for its client.
    pub(super) fn clean_up(self: &Arc<Self>, session: Arc<ClientSession>) {
        self.metrics.sessions.set(self.sessions.len() as i64);
        for ask in session.state.asks.take_all() {
            let error = RpcError::new(code::INTERNAL, "the client is gone");
            ask.inlet.respond(error.message(Some(&ask.original)));
        }
        let router = self.clone();
        self.spawn(async move {
            let closing = session
                .state
                .slots()
                .map(|slot| router.leave(&session, slot));
            futures_util::future::join_all(closing).await;
        });
    }

    /// Unsubscribes what only this session followed on a shared backend, then closes.
    async fn leave(&self, session: &ClientSession, slot: &Arc<Slot>) {
        let open = slot.ready();
        for uri in session.state.subscriptions(slot.place) {
            let last = self.subscribers.leave(slot, &uri) == Some(0);
            if let (true, Some(open)) = (last, &open) {
                let params = format!("{{\"uri\":{}}}", crate::mcp::message::quote(&uri));
                let _ = open.ask("resources/unsubscribe", &params).await;
            }
        }
        slot.close().await;
    }

    /// Ends what was idle too long, until the shutdown.
    pub fn run_reaper(self: &Arc<Self>) {
        let router = self.clone();
        self.spawn(async move {
            let mut tick = tokio::time::interval(REAP_EVERY);
            tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = router.shutdown.cancelled() => return,
                    _ = tick.tick() => {}
                }
                for session in router.sessions.reap() {
                    tracing::debug!(session = session.number, "an idle session ended");
                    router.clean_up(session);
                }
                for slot in router.pool.sweep() {
                    slot.close().await;
                }
                router.layers.sweep();
            }
        });
    }

    /// Ends every session and every server's processes, within `grace`.
    pub async fn stop(self: &Arc<Self>, grace: Duration) {
        self.shutdown.cancel();
        for session in self.sessions.all() {
            self.end(&session.id);
        }
        for slot in self.pool.all() {
            slot.close().await;
        }
        let ending = self.servers.iter().map(|s| s.shutdown(grace));
        futures_util::future::join_all(ending).await;
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some tasks did not end within the grace time");
        }
    }

    /// Whether a result may hold URIs or task ids that have to change.
    pub(super) fn exposes(&self, slot: &Slot, errand: &super::exchange::Errand<'_>) -> bool {
        let inner = errand.message.inner();
        let tasks = inner.task.is_some() || inner.task_id.is_some();
        tasks || self.endpoints[slot.endpoint].shared.any()
    }

    /// Rewrites what a result says of URIs and tasks, where anything has to be.
    pub(super) fn expose_in_result(
        &self,
        slot: &Slot,
        errand: &super::exchange::Errand<'_>,
        answer: bytes::Bytes,
    ) -> bytes::Bytes {
        let answer = self.expose_tasks(slot, errand, answer);
        let endpoint = &self.endpoints[slot.endpoint];
        if !endpoint.shared.any() {
            return answer;
        }
        super::uris::expose(&endpoint.shared, &slot.server.id, answer)
    }
}
