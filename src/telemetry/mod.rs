//! One call per thing that happens: log and metric are written together, here.
//!
//! Only this room names metrics. Handles are looked up once, when a part is
//! built, so that counting on the main path is an atomic addition.

mod log;
mod metrics;
mod sink;

pub use log::{Log, LogError, Verbosity};
pub use metrics::{Metrics, Outcome, ServerMetrics};
