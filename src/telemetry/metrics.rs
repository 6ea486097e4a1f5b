//! The metrics, and handles on them.
//!
//! Labels are configured names and closed sets only, never what a caller sent, so
//! the number of series is bounded by the configuration.

use super::Log;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};
use std::time::Duration;

/// How a call ended, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The server answered with an error of its own.
    ServerError,
    /// The gateway answered with an error.
    Fault,
    Cancelled,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Ok, Self::ServerError, Self::Fault, Self::Cancelled];

    fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ServerError => "server_error",
            Self::Fault => "fault",
            Self::Cancelled => "cancelled",
        }
    }
}

/// All metrics of one gateway.
pub struct Metrics {
    registry: Registry,
    calls: IntCounterVec,
    latency: HistogramVec,
    restarts: IntCounterVec,
    noise: IntCounterVec,
    dropped: IntCounterVec,
    processes: IntGaugeVec,
    up: IntGaugeVec,
    streams_up: IntGaugeVec,
    backend_sessions: IntGaugeVec,
    /// Sessions open now.
    pub sessions: IntGauge,
    /// Event streams open to clients now.
    pub streams: IntGauge,
    /// Requests answered without reaching a server, by HTTP status class.
    pub refused: IntCounterVec,
}

/// Handles for one server.
#[derive(Clone)]
pub struct ServerMetrics {
    calls: [IntCounter; 4],
    latency: Histogram,
    /// Processes started again after an unexpected end.
    pub restarts: IntCounter,
    /// Lines on stdout that were no message.
    pub noise: IntCounter,
    /// Messages of the server that belonged to nobody.
    pub dropped: IntCounter,
    /// Processes running now.
    pub processes: IntGauge,
    /// 1 while the last contact with the server was good.
    pub up: IntGauge,
    /// Standing streams of the server open now.
    pub streams_up: IntGauge,
    /// Backend sessions open now.
    pub sessions: IntGauge,
}

impl ServerMetrics {
    /// Counts one call with its duration.
    pub fn call(&self, outcome: Outcome, took: Duration) {
        self.calls[outcome as usize].inc();
        self.latency.observe(took.as_secs_f64());
    }
}

impl Metrics {
    /// Builds and registers everything, process metrics included.
    pub fn new() -> Self {
        let registry = Registry::new();
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let vec = IntCounterVec::new(Opts::new(name, help), labels).expect(VALID);
            registry.register(Box::new(vec.clone())).expect(ONCE);
            vec
        };
        let gauge = |name: &str, help: &str| {
            let vec = IntGaugeVec::new(Opts::new(name, help), &["server"]).expect(VALID);
            registry.register(Box::new(vec.clone())).expect(ONCE);
            vec
        };
        let one = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help).expect(VALID);
            registry.register(Box::new(gauge.clone())).expect(ONCE);
            gauge
        };
        let buckets = vec![0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0];
        let options = HistogramOpts::new(
            "drawbridge_call_duration_seconds",
            "Time from a call's arrival to its answer.",
        );
        let build = gauge_of_build();
        registry.register(Box::new(build)).expect(ONCE);
        let latency = HistogramVec::new(options.buckets(buckets), &["server"]).expect(VALID);
        registry.register(Box::new(latency.clone())).expect(ONCE);
        #[cfg(target_os = "linux")]
        registry
            .register(Box::new(
                prometheus::process_collector::ProcessCollector::for_self(),
            ))
            .expect(ONCE);
        Self {
            calls: counter(
                "drawbridge_calls_total",
                "Requests sent to a server, by how they ended.",
                &["server", "outcome"],
            ),
            restarts: counter(
                "drawbridge_restarts_total",
                "Processes started again after an unexpected end.",
                &["server"],
            ),
            noise: counter(
                "drawbridge_stdout_noise_lines_total",
                "Lines on a server's stdout that were no message.",
                &["server"],
            ),
            dropped: counter(
                "drawbridge_dropped_messages_total",
                "Messages of a server that belonged to no client.",
                &["server"],
            ),
            refused: counter(
                "drawbridge_refused_requests_total",
                "HTTP requests answered without reaching a server, by status.",
                &["status"],
            ),
            processes: gauge("drawbridge_processes", "Processes running now."),
            up: gauge(
                "drawbridge_server_up",
                "1 while the last contact with the server was good.",
            ),
            streams_up: gauge(
                "drawbridge_server_streams",
                "Standing streams of the server open now.",
            ),
            backend_sessions: gauge("drawbridge_backend_sessions", "Backend sessions open now."),
            sessions: one("drawbridge_sessions", "Client sessions open now."),
            streams: one("drawbridge_streams", "Event streams open to clients now."),
            latency,
            registry,
        }
    }

    /// Handles for the server called `name`, which must be a configured name.
    pub fn server(&self, name: &str) -> ServerMetrics {
        ServerMetrics {
            calls: Outcome::ALL.map(|o| self.calls.with_label_values(&[name, o.label()])),
            latency: self.latency.with_label_values(&[name]),
            restarts: self.restarts.with_label_values(&[name]),
            noise: self.noise.with_label_values(&[name]),
            dropped: self.dropped.with_label_values(&[name]),
            processes: self.processes.with_label_values(&[name]),
            up: self.up.with_label_values(&[name]),
            streams_up: self.streams_up.with_label_values(&[name]),
            sessions: self.backend_sessions.with_label_values(&[name]),
        }
    }

    /// Adds what the log counts. Once.
    pub fn add_log(&self, log: &Log) {
        let dropped = Box::new(log.dropped().clone());
        if let Err(error) = self.registry.register(dropped) {
            tracing::error!(%error, "the log's metric cannot be added");
        }
    }

    /// Everything in the Prometheus text format.
    pub fn render(&self) -> String {
        let mut out = Vec::new();
        let families = self.registry.gather();
        if let Err(error) = TextEncoder::new().encode(&families, &mut out) {
            tracing::error!(%error, "metrics cannot be written");
        }
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Which build this is, as the label of a constant.
fn gauge_of_build() -> IntGaugeVec {
    let options = Opts::new(
        "drawbridge_build_info",
        "1, with the version of the gateway.",
    );
    let gauge = IntGaugeVec::new(options, &["version"]).expect(VALID);
    gauge.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
    gauge
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

const VALID: &str = "metric names and labels are valid";
const ONCE: &str = "each metric is registered once";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_under_its_server() {
        let metrics = Metrics::new();
        let server = metrics.server("files");
        server.call(Outcome::ServerError, Duration::from_millis(3));
        let text = metrics.render();
        assert!(
            text.contains(r#"drawbridge_calls_total{outcome="server_error",server="files"} 1"#),
            "{text}"
        );
        assert!(
            text.contains("drawbridge_build_info{version=\"") && text.contains("\"} 1\n"),
            "{text}"
        );
    }
}
