//! The front's state and its routes.

use super::{door::Door, request};
use crate::{
    auth::Gate,
    router::{Endpoint, Router},
    telemetry::Metrics,
};
use axum::{
    Router as Routes,
    body::Body,
    extract::{Request, State},
    response::Response,
    routing::{any, get},
};
use http::{HeaderName, Method, header};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize},
    },
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

#[derive(Clone, Debug)]
pub struct Settings {
    /// The largest request body, in bytes.
    pub body: usize,
    /// The largest head of a request, in bytes.
    pub head: usize,
    /// How long a client may take to send a request's body.
    pub request_timeout: Duration,
    pub json_depth: u32,
    /// Messages in one batch at most.
    pub batch: usize,
    /// Silence after which a comment keeps a stream alive.
    pub keep_alive: Duration,
    /// How long a POST waits for its answer before it turns into a stream.
    pub silence: Duration,
    /// What clients are told to wait before they reconnect.
    pub retry: Duration,
}

/// Everything a request needs. One for the life of the gateway.
pub struct Front {
    pub router: Arc<Router>,
    pub gate: Arc<Gate>,
    pub door: Door,
    pub settings: Settings,
    pub metrics: Arc<Metrics>,
    /// New work is refused.
    pub draining: AtomicBool,
    /// Requests being answered now.
    pub running: AtomicUsize,
    /// Ends the streams.
    pub closing: CancellationToken,
}

/// The routes of the public listener.
pub fn app(front: Arc<Front>) -> Routes {
    let mut routes = Routes::new().route("/healthz", get(|| async { "ok\n" }));
    for (number, endpoint) in front.router.endpoints.iter().enumerate() {
        for path in spellings(endpoint) {
            let handler = move |State(front): State<Arc<Front>>, request: Request<Body>| async move {
                request::answer(&front, number, request).await
            };
            routes = routes.route(&path, any(handler));
        }
    }
    let cors = cors(&front);
    routes.fallback(missing).layer(cors).with_state(front)
}

/// Both spellings are served: a redirect would cost clients their token.
fn spellings(endpoint: &Endpoint) -> Vec<String> {
    let path = endpoint.path.trim_end_matches('/');
    match path {
        "" => vec!["/".to_owned()],
        path => vec![path.to_owned(), format!("{path}/")],
    }
}

async fn missing() -> Response {
    super::refusal::Refusal::NoEndpoint.response(None)
}

/// Browser pages of allowed origins may call; what they may read goes beyond the safe list.
fn cors(front: &Arc<Front>) -> CorsLayer {
    let checked = front.clone();
    let allowed = AllowOrigin::predicate(move |origin, _| checked.door.admits_origin(origin));
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            HeaderName::from_static("mcp-session-id"),
            HeaderName::from_static("mcp-protocol-version"),
            header::WWW_AUTHENTICATE,
            header::RETRY_AFTER,
        ])
        .max_age(Duration::from_secs(600))
}
