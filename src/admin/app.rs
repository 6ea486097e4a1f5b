//! The admin listener's state and its routes.

use super::guard::{Barred, Guard};
use crate::{
    backend::{Health, Server},
    telemetry::Metrics,
};
use axum::{
    Router as Routes,
    extract::State as Shared,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, StatusCode, Uri, header};
use serde_json::{Map, Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the admin listener tells of.
pub struct State {
    metrics: Arc<Metrics>,
    servers: Vec<Arc<Server>>,
    draining: Arc<AtomicBool>,
    guard: Guard,
}

impl State {
    /// `draining` makes `/readyz` fail; `key` is what `/metrics` asks for.
    pub fn new(
        metrics: Arc<Metrics>,
        servers: Vec<Arc<Server>>,
        draining: Arc<AtomicBool>,
        key: Option<String>,
    ) -> Self {
        let guard = Guard::new(key.as_deref());
        Self {
            metrics,
            servers,
            draining,
            guard,
        }
    }
}

/// The routes of the admin listener.
pub fn router(state: State) -> Routes {
    Routes::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(state))
}

async fn livez() -> Response {
    text(StatusCode::OK, TEXT, "ok\n".into())
}

async fn readyz(Shared(state): Shared<Arc<State>>) -> Response {
    let (status, word) = match state.draining.load(Ordering::Acquire) {
        false => (StatusCode::OK, "ready"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
    };
    let fares = |server: &Arc<Server>| {
        let health = match server.health() {
            Health::Starting => "starting",
            Health::Up => "up",
            Health::Down => "down",
        };
        (server.id.to_string(), Value::from(health))
    };
    let servers: Map<String, Value> = state.servers.iter().map(fares).collect();
    let body = json!({"status": word, "servers": servers});
    text(status, "application/json", format!("{body}\n"))
}

async fn metrics(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    match state.guard.check(&uri, &headers) {
        Ok(()) => text(StatusCode::OK, PROMETHEUS, state.metrics.render()),
        Err(Barred::Key) => {
            let body = "this needs the admin key: Authorization: Bearer KEY\n";
            let mut response = text(StatusCode::UNAUTHORIZED, TEXT, body.into());
            let challenge = header::HeaderValue::from_static("Bearer realm=\"drawbridge admin\"");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, challenge);
            response
        }
        Err(Barred::Host) => {
            let body =
                "without an admin key this is answered under an IP address or localhost only\n";
            text(StatusCode::FORBIDDEN, TEXT, body.into())
        }
    }
}

fn text(status: StatusCode, kind: &'static str, body: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{backend::Transport, config::Isolation, mcp::ServerId};
    use axum::body::Body;
    use http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    struct Bench {
        routes: Routes,
        server: Arc<Server>,
        draining: Arc<AtomicBool>,
    }

    fn bench(key: Option<&str>) -> Bench {
        let metrics = Arc::new(Metrics::new());
        let server = Arc::new(Server::new(
            ServerId::new("files").unwrap(),
            Isolation::Session,
            1024,
            Transport::Unavailable("a test's".into()),
            metrics.server("files"),
        ));
        let draining = Arc::new(AtomicBool::new(false));
        let key = key.map(str::to_owned);
        let state = State::new(metrics, vec![server.clone()], draining.clone(), key);
        Bench {
            routes: router(state),
            server,
            draining,
        }
    }

    impl Bench {
        async fn get(&self, path: &str, key: Option<&str>) -> (StatusCode, String) {
            let mut request = Request::get(path).header("host", "127.0.0.1:9090");
            if let Some(key) = key {
                request = request.header("authorization", format!("Bearer {key}"));
            }
            let request = request.body(Body::empty()).unwrap();
            let response = self.routes.clone().oneshot(request).await.unwrap();
            let status = response.status();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(body.to_vec()).unwrap())
        }
    }

    #[tokio::test]
    async fn liveness_depends_on_no_server() {
        let bench = bench(None);
        bench.server.note(Health::Down);
        bench.draining.store(true, Ordering::Release);
        assert_eq!(bench.get("/livez", None).await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn readiness_tells_of_each_server_and_fails_only_in_a_drain() {
        let bench = bench(Some("key"));
        for (health, word) in [
            (Health::Starting, "starting"),
            (Health::Down, "down"),
            (Health::Up, "up"),
        ] {
            bench.server.note(health);
            let (status, body) = bench.get("/readyz", None).await;
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(status, StatusCode::OK);
            assert_eq!(body, json!({"status": "ready", "servers": {"files": word}}));
        }
        bench.draining.store(true, Ordering::Release);
        let (status, body) = bench.get("/readyz", None).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(body.contains("draining"), "{body}");
    }

    #[tokio::test]
    async fn metrics_ask_for_the_key_where_there_is_one() {
        let (open, closed) = (bench(None), bench(Some("key")));
        let (status, body) = open.get("/metrics", None).await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.contains("drawbridge_server_up{server=\"files\"}"));
        assert_eq!(closed.get("/metrics", Some("key")).await.0, StatusCode::OK);
        for wrong in [None, Some("kex")] {
            let (status, body) = closed.get("/metrics", wrong).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            assert!(!body.contains("drawbridge_"), "{body}");
        }
    }

    #[tokio::test]
    async fn nothing_else_is_there() {
        assert_eq!(bench(None).get("/", None).await.0, StatusCode::NOT_FOUND);
    }
}
