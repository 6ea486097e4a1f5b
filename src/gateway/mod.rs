//! From a configuration to a running gateway, and to its orderly end.
//!
//! Build makes the parts without any I/O, start binds and contacts the servers, and
//! the end is a drain: readiness fails at once, new work is still taken for a while
//! so that load balancers notice, running calls finish within the grace time,
//! streams end, processes are gone.

mod build;

use crate::{
    admin,
    auth::Gate,
    config::Config,
    front::{self, Front},
    router::Router,
    session::Table,
    telemetry::Metrics,
};
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What is not in the file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program that holds child processes; the running one where unset.
    pub shim: Option<PathBuf>,
    /// A token that callers must show besides what the file says (`--token`).
    pub token: Option<String>,
}

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: String,
        source: std::io::Error,
    },
    #[error("{0}")]
    Tls(String),
    #[error("{0}")]
    Unsafe(&'static str),
}

/// A gateway whose parts are built and whose servers are not contacted yet.
pub struct Gateway {
    pub router: Arc<Router>,
    pub metrics: Arc<Metrics>,
    front: Arc<Front>,
    config: Config,
    workshop: build::Workshop,
    certificates: Option<Arc<front::Certificates>>,
}

/// A gateway that listens.
pub struct Running {
    /// Where clients connect.
    pub public: Vec<SocketAddr>,
    /// Where metrics and probes are.
    pub admin: Option<SocketAddr>,
    /// Cancel it to begin the drain, as SIGTERM does.
    pub stop: CancellationToken,
    gateway: Gateway,
    /// Readiness fails from here on.
    draining: Arc<AtomicBool>,
    /// Ends the listeners.
    closing: CancellationToken,
    listeners: Vec<JoinHandle<()>>,
    admin_listener: Option<JoinHandle<()>>,
    admin_stop: CancellationToken,
}

impl Gateway {
    /// Builds all parts; no I/O but reading the certificate.
    pub fn build(config: &Config, options: &Options) -> Result<Self, StartError> {
        let metrics = Arc::new(Metrics::new());
        let workshop = build::Workshop {
            processes: crate::backend::stdio::Processes::new(config.limits.processes),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let servers = build::servers(config, options, &metrics, &workshop);
        let endpoints = build::endpoints(config, &servers);
        let sessions = Table::new(build::session_limits(config));
        let settings = build::router_settings(config);
        let router = Router::new(servers, endpoints, sessions, settings, metrics.clone());
        let gate: Gate = build::gate(config, options)?;
        let front = Arc::new(Front {
            router: router.clone(),
            gate: Arc::new(gate),
            door: build::door(config),
            settings: build::front_settings(config),
            metrics: metrics.clone(),
            draining: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            closing: CancellationToken::new(),
        });
        Ok(Self {
            router,
            metrics,
            front,
            workshop,
            certificates: build::certificates(config)?,
            config: config.clone(),
        })
    }

    /// Contacts the servers and reaps what is idle; needed also where nothing listens.
    pub fn contact(&self) {
        self.router.watch_servers();
        self.router.run_reaper();
    }

    /// Ends everything that [`Gateway::contact`] and calls began.
    pub async fn close(&self, grace: Duration) {
        self.router.stop(grace).await;
        self.workshop.stop.cancel();
        self.workshop.tracker.close();
        if tokio::time::timeout(grace, self.workshop.tracker.wait())
            .await
            .is_err()
        {
            tracing::warn!("some processes did not end within the grace time");
        }
    }

    /// Binds the listeners, contacts the servers and begins to serve.
    pub async fn start(self) -> Result<Running, StartError> {
        let closing = CancellationToken::new();
        let limits = build::connection_limits(&self.config);
        let grace = self.config.drain.grace.get();
        let tls = match &self.certificates {
            None => None,
            Some(certificates) => {
                self.router
                    .spawn(self.until_stop(certificates.clone().watch()));
                Some(
                    certificates
                        .config()
                        .map_err(|e| StartError::Tls(e.to_string()))?,
                )
            }
        };
        let mut bound = Vec::new();
        for address in self.config.listen.addresses() {
            bound.push(bind(&address.to_string()).await?);
        }
        let draining = Arc::new(AtomicBool::new(false));
        let (admin, admin_listener, admin_stop) = self.start_admin(&draining).await?;
        self.contact();
        let mut public = Vec::new();
        let mut listeners = Vec::new();
        for tcp in bound {
            public.extend(tcp.local_addr());
            let listener = front::Listener {
                tcp,
                tls: tls.clone(),
            };
            let routes = front::app(self.front.clone());
            let serving = front::serve(listener, routes, limits, closing.clone(), grace);
            listeners.push(tokio::spawn(serving));
        }
        Ok(Running {
            public,
            admin,
            stop: CancellationToken::new(),
            gateway: self,
            draining,
            closing,
            listeners,
            admin_listener,
            admin_stop,
        })
    }

    fn until_stop<F>(&self, work: F) -> impl Future<Output = ()> + Send + use<F>
    where
        F: Future<Output = ()> + Send,
    {
        let stop = self.workshop.stop.clone();
        async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        }
    }

    /// The admin listener outlives the public ones, so that probes are answered to the end.
    async fn start_admin(
        &self,
        draining: &Arc<AtomicBool>,
    ) -> Result<
        (
            Option<SocketAddr>,
            Option<JoinHandle<()>>,
            CancellationToken,
        ),
        StartError,
    > {
        let stop = CancellationToken::new();
        let Some(address) = &self.config.admin.listen else {
            return Ok((None, None, stop));
        };
        let tcp = bind(&address.to_string()).await?;
        let local = tcp.local_addr().ok();
        let key = self
            .config
            .admin
            .key
            .as_ref()
            .map(|k| k.expose().to_owned());
        let state = admin::State::new(
            self.metrics.clone(),
            self.router.servers.clone(),
            draining.clone(),
            key,
        );
        let listener = front::Listener { tcp, tls: None };
        let limits = build::connection_limits(&self.config);
        let routes = admin::router(state);
        let serving = front::serve(
            listener,
            routes,
            limits,
            stop.clone(),
            Duration::from_secs(1),
        );
        Ok((local, Some(tokio::spawn(serving)), stop))
    }
}

async fn bind(address: &str) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| StartError::Listen {
            address: address.to_owned(),
            source,
        })
}

impl Running {
    /// Waits for `stop`, then drains, and returns when nothing runs any more.
    pub async fn ended(self) {
        self.stop.cancelled().await;
        let drain = &self.gateway.config.drain;
        let (delay, grace) = (drain.delay.get(), drain.grace.get());
        let front = &self.gateway.front;
        tracing::info!(
            delay_ms = delay.as_millis() as u64,
            grace_ms = grace.as_millis() as u64,
            "shutting down"
        );
        self.draining.store(true, Ordering::Release);
        tokio::time::sleep(delay).await;
        front.draining.store(true, Ordering::Release);
        let idle = async {
            while front.running.load(Ordering::Relaxed) > 0 || self.gateway.router.calls() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(grace, idle).await.is_err() {
            tracing::warn!("some calls did not finish within the grace time");
        }
        for session in self.gateway.router.sessions.all() {
            session.streams.standing.finish();
        }
        front.closing.cancel();
        self.closing.cancel();
        let rest = Duration::from_secs(5).min(grace.max(Duration::from_secs(1)));
        self.gateway.close(rest).await;
        for listener in self.listeners {
            let _ = tokio::time::timeout(rest, listener).await;
        }
        self.admin_stop.cancel();
        if let Some(listener) = self.admin_listener {
            let _ = listener.await;
        }
    }
}
