//! One HTTP server as a place to send requests to: its pool, its headers, its health.

use super::{
    address::Unusable,
    client::{Client, Pooled},
    request::Outgoing,
    settings::Settings,
};
use crate::{
    backend::{Fault, Ran},
    mcp::ServerId,
    telemetry::ServerMetrics,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const USER_AGENT: &str = concat!("drawbridge/", env!("CARGO_PKG_VERSION"));
const REDIRECTS: usize = 3;
/// Servers that choose by order answer with JSON, which costs least.
const JSON_FIRST: &str = "application/json, text/event-stream";
/// Some servers look at the first entry only.
const EVENTS_FIRST: &str = "text/event-stream, application/json";

/// How the last contact with a server went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    #[default]
    Unknown,
    Up,
    /// With the reason, for the operator.
    Down(String),
}

pub(super) struct Site {
    pub id: ServerId,
    pub settings: Settings,
    pub metrics: ServerMetrics,
    /// All tasks of the server's links.
    pub tracker: TaskTracker,
    pub stop: CancellationToken,
    /// Headers of every POST, before a link adds its own.
    headers: HeaderMap,
    /// The server wants event streams named first in `Accept`.
    events_first: AtomicBool,
    pool: Pooled,
    /// What the main path reads of `health`.
    up: AtomicBool,
    health: Mutex<Health>,
}

impl Site {
    pub fn new(id: ServerId, settings: Settings, client: &Client, metrics: ServerMetrics) -> Self {
        Self {
            id,
            headers: headers(&settings, client),
            events_first: AtomicBool::new(false),
            pool: client.pool(&settings),
            settings,
            metrics,
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            up: AtomicBool::new(false),
            health: Mutex::default(),
        }
    }

    /// Headers of every POST, for a link to add its own.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        if self.events_first.load(Ordering::Relaxed) {
            headers.insert(header::ACCEPT, HeaderValue::from_static(EVENTS_FIRST));
        }
        headers
    }

    /// The server refused our `Accept` (406): names event streams first from now on. `false` if it did already.
    pub fn turn_accept(&self) -> bool {
        !self.events_first.swap(true, Ordering::Relaxed)
    }

    /// Sends what `make` makes and waits for the head of the response, at the same origin whatever redirects come.
    pub async fn send<F>(&self, make: F) -> Result<Response<Incoming>, Fault>
    where
        F: Fn(Uri) -> Outgoing,
    {
        let mut at = None;
        for _ in 0..=REDIRECTS {
            let address = at.as_ref().unwrap_or(&self.settings.address);
            let sent = self.pool.request(make(address.uri().clone())).await;
            let response = sent.map_err(|error| self.failed(&error))?;
            match response.status() {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                    let to = response.headers().get(header::LOCATION);
                    let to = address.redirected(to.map(HeaderValue::as_bytes));
                    at = Some(to.map_err(|why| self.refused_redirect(why))?);
                }
                StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
                    // A client may answer these with a GET, which would lose the message.
                    return Err(self.down(
                        format!("answered {}, a redirect", response.status().as_u16()),
                        Ran::No,
                    ));
                }
                status => {
                    self.contact(status);
                    return Ok(response);
                }
            }
        }
        Err(self.refused_redirect(Unusable::TooMany))
    }

    fn failed(&self, error: &legacy::Error) -> Fault {
        let ran = if error.is_connect() {
            Ran::No
        } else {
            Ran::Maybe
        };
        self.down(chain(error), ran)
    }

    fn refused_redirect(&self, why: Unusable) -> Fault {
        self.down(format!("answered with {why}"), Ran::No)
    }

    /// Notes a failed contact and makes a fault of it.
    pub fn down(&self, reason: String, ran: Ran) -> Fault {
        self.note_down(&reason);
        Fault::Unreachable { reason, ran }
    }

    pub fn note_down(&self, reason: &str) {
        self.metrics.up.set(0);
        let mut health = self.health.lock().expect("no holder of this lock panics");
        if self.up.swap(false, Ordering::Relaxed) || *health == Health::Unknown {
            tracing::warn!(server = %self.id, reason, "contact with a server failed");
        }
        *health = Health::Down(reason.to_owned());
    }

    fn contact(&self, status: StatusCode) {
        if status.is_server_error() {
            self.note_down(&format!("answered {}", status.as_u16()));
        } else if !self.up.load(Ordering::Relaxed) {
            self.metrics.up.set(1);
            self.up.store(true, Ordering::Relaxed);
            *self.health.lock().expect("no holder of this lock panics") = Health::Up;
        }
    }

    pub fn health(&self) -> Health {
        let health = self.health.lock().expect("no holder of this lock panics");
        health.clone()
    }
}

fn headers(settings: &Settings, client: &Client) -> HeaderMap {
    // Room for what a link and a call add: a map that grows is hashed anew.
    let mut map = HeaderMap::with_capacity(settings.headers.len() + 12);
    for (name, value) in &settings.headers {
        let mut value = value.clone();
        value.set_sensitive(true);
        map.append(name, value);
    }
    map.entry(header::USER_AGENT)
        .or_insert(HeaderValue::from_static(USER_AGENT));
    map.insert(header::ACCEPT, HeaderValue::from_static(JSON_FIRST));
    let json = HeaderValue::from_static("application/json");
    map.insert(header::CONTENT_TYPE, json);
    let address = &settings.address;
    if let Some(credentials) = client.proxy_credentials(address.uri()) {
        map.insert(header::PROXY_AUTHORIZATION, credentials);
    }
    // HTTP/2, which only `https` may become here, has `:authority` instead.
    if !address.is_https()
        && let Ok(host) = HeaderValue::try_from(address.host())
    {
        map.insert(header::HOST, host);
    }
    map
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
