//! Metrics and probes for the operator.

use crate::{backend::Server, telemetry::Metrics};
use axum::Router;
use std::sync::{Arc, atomic::AtomicBool};

pub struct State;

impl State {
    pub fn new(
        _metrics: Arc<Metrics>,
        _servers: Vec<Arc<Server>>,
        _draining: Arc<AtomicBool>,
        _key: Option<String>,
    ) -> Self {
        Self
    }
}

pub fn router(_state: State) -> Router {
    Router::new()
}
