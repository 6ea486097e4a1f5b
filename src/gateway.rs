//! From a configuration to a running gateway, and to its orderly end.

use crate::{auth::Gate, config::Config, router::Router, telemetry::Metrics};
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

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
    pub gate: Arc<Gate>,
}

/// A gateway that listens.
pub struct Running {
    /// Where clients connect.
    pub public: Vec<SocketAddr>,
    /// Where metrics and probes are.
    pub admin: Option<SocketAddr>,
    /// Cancel it to begin the drain, as SIGTERM does.
    pub stop: CancellationToken,
}

impl Gateway {
    /// Builds all parts; no I/O.
    pub fn build(_config: &Config, _options: &Options) -> Result<Self, StartError> {
        unimplemented!()
    }

    /// Binds the listeners, contacts the servers and begins to serve.
    pub async fn start(self) -> Result<Running, StartError> {
        unimplemented!()
    }
}

impl Running {
    /// Waits for the end: after `stop` is cancelled, new work is taken for the drain delay, running calls finish within
    /// the grace time, streams end, processes are gone.
    pub async fn ended(self) {
        let _ = Duration::ZERO;
        unimplemented!()
    }
}
