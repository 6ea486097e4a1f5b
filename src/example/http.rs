//! An example server over HTTP: what is checked before a message is looked at, and the decision, request by
//! request, which era it belongs to. The eras themselves are in `http_legacy` and `http_modern`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::fault::{Fault, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, error_message};
use super::legacy::unsupported;
use super::revision::{Revision, Spoken};
use super::world::World;
use super::{headers, http_legacy, http_modern, modern, sse};

/// Bytes of a body; far more than any made-up trip needs.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// How long running calls may take to end after the sign to stop.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until `shutdown` is cancelled.
pub async fn run(
    world: Arc<World>,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let app = router(&world).layer(middleware::from_fn_with_state(address, guard));
    let stopping = shutdown.clone();
    let server = axum::serve(listener, app)
        .with_graceful_shutdown(async move { stopping.cancelled().await });
    tokio::select! {
        outcome = async { server.await } => outcome,
        () = async {
            shutdown.cancelled().await;
            world.close();
            tokio::time::sleep(GRACE).await;
        } => Ok(()),
    }
}

fn router(world: &Arc<World>) -> Router {
    let oldest = Spoken::Only(Revision::V2024_11_05);
    let mut router = Router::new();
    if world.spoken != oldest {
        router = router.route("/mcp", any(endpoint));
    }
    if world.spoken.includes(Revision::V2024_11_05) {
        router = router
            .route("/sse", get(http_legacy::open_sse))
            .route("/messages", post(messages));
    }
    router.with_state(Arc::clone(world))
}

/// Lets in only who comes from this machine: a web page elsewhere could make its reader's browser call.
async fn guard(State(address): State<SocketAddr>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let origin = headers.get(header::ORIGIN).map(|origin| {
        origin
            .to_str()
            .ok()
            .and_then(|origin| url::Url::parse(origin).ok())
            .and_then(|origin| origin.host_str().map(str::to_owned))
    });
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .and_then(|host| url::Url::parse(&format!("http://{host}")).ok())
        .and_then(|host| host.host_str().map(str::to_owned));
    let local = |name: &str| {
        let bare = name.trim_matches(['[', ']']);
        matches!(name, "localhost" | "127.0.0.1" | "[::1]") || bare == address.ip().to_string()
    };
    // Whoever listens on all interfaces is reached by names that we can't know.
    let host_known = address.ip().is_unspecified() || host.is_none_or(|host| local(&host));
    if !host_known || origin.is_some_and(|origin| !origin.is_some_and(|name| local(&name))) {
        let fault = Fault::rpc(INVALID_REQUEST, "Only this machine may call");
        return refuse(StatusCode::FORBIDDEN, &Value::Null, &fault);
    }
    next.run(request).await
}

/// A fault as a JSON body. `id` is null where it belongs to no request.
pub fn refuse(status: StatusCode, id: &Value, fault: &Fault) -> Response {
    sse::json(status, &error_message(id, fault))
}

/// A method that the endpoint doesn't have.
pub fn not_allowed(allowed: &'static str) -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, allowed)]).into_response()
}

async fn endpoint(State(world): State<Arc<World>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let version = headers::text(&parts.headers, headers::VERSION).and_then(Revision::named);
    let sessions = world.spoken.legacy() && !version.is_some_and(Revision::is_modern);
    match parts.method {
        Method::POST => match read(&parts, body).await {
            Ok(message) => take(world, &parts.headers, message).await,
            Err(response) => response,
        },
        Method::GET if sessions => http_legacy::open_stream(&world, &parts.headers),
        Method::DELETE if sessions => http_legacy::end(&world, &parts.headers),
        _ if sessions => not_allowed("GET, POST, DELETE"),
        _ => not_allowed("POST"),
    }
}

/// The message in a POST's body, or the answer to a POST that has none.
async fn read(parts: &Parts, body: Body) -> Result<Value, Response> {
    let accepted = |wanted: &str| accepts(&parts.headers, wanted);
    if !accepted("application/json") || !accepted("text/event-stream") {
        return Err(StatusCode::NOT_ACCEPTABLE.into_response());
    }
    read_json(parts, body).await
}

async fn read_json(parts: &Parts, body: Body) -> Result<Value, Response> {
    let content_type = headers::text(&parts.headers, "content-type").unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response());
    }
    let bytes = to_bytes(body, MAX_BODY)
        .await
        .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE.into_response())?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let fault = Fault::rpc(PARSE_ERROR, error.to_string());
        refuse(StatusCode::BAD_REQUEST, &Value::Null, &fault)
    })
}

/// Whether the `Accept` headers admit that type.
pub fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let (kind, _) = wanted.split_once('/').unwrap_or((wanted, ""));
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.split(';').next())
        .map(|range| range.trim().to_ascii_lowercase())
        .any(|range| range == wanted || range == "*/*" || range == format!("{kind}/*"))
}

/// Hands a message to its era.
async fn take(world: Arc<World>, headers: &HeaderMap, message: Value) -> Response {
    let id = &message["id"];
    let spoken = world.spoken;
    let version = headers::text(headers, headers::VERSION);
    if message["method"] == "initialize" && !modern::is_modern(&message) {
        if spoken.legacy() {
            return http_legacy::post(world, headers, message).await;
        }
        let requested = message["params"]["protocolVersion"]
            .as_str()
            .unwrap_or_default();
        return refuse(StatusCode::BAD_REQUEST, id, &unsupported(&world, requested));
    }
    let named = version.and_then(Revision::named);
    if spoken.modern() && (named.is_some_and(Revision::is_modern) || !spoken.legacy()) {
        return http_modern::post(world, headers, message).await;
    }
    if !spoken.modern() && message["method"] == "server/discover" {
        let fault = Fault::rpc(METHOD_NOT_FOUND, "Method not found: server/discover");
        return refuse(StatusCode::BAD_REQUEST, id, &fault);
    }
    if let Some(version) = version
        && !named.is_some_and(|named| spoken.includes(named))
    {
        let fault = if spoken.modern() {
            unsupported(&world, version)
        } else {
            let message = format!("Unsupported protocol version: {version}");
            let data = json!({ "supported": spoken.names() });
            Fault::with_data(INVALID_REQUEST, message, data)
        };
        return refuse(StatusCode::BAD_REQUEST, id, &fault);
    }
    if spoken.modern() && modern::is_modern(&message) {
        // Only the header is missing, which the check will say.
        return http_modern::post(world, headers, message).await;
    }
    http_legacy::post(world, headers, message).await
}

async fn messages(State(world): State<Arc<World>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    match read_json(&parts, body).await {
        Ok(message) => http_legacy::post_sse(&world, parts.uri.query(), message),
        Err(response) => response,
    }
}
