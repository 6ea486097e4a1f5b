//! What an operator's tools ask: probes and metrics, on a listener of their own.
//!
//! | path | answer |
//! |---|---|
//! | `/livez` | 200 as long as the process runs, whatever its servers do |
//! | `/readyz` | 200, or 503 once the gateway is shutting down; the body tells how each server fares |
//! | `/metrics` | the metrics as Prometheus reads them; asks for the key, if there is one |
//!
//! The listener is opened only when the gateway takes calls, so there is no time in
//! which a probe could be told of readiness too early. A server that is down does not
//! make the gateway unready: the others are still worth reaching, and no restart of
//! the gateway would bring it back.

mod app;
mod guard;

pub use app::{State, router};
