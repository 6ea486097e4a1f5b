//! What the operator wrote, as the parts that do it.

use super::{Options, StartError};
use crate::{
    auth::Gate,
    backend::{Eras, Server, Transport, http, stdio},
    catalog::{Naming, Shape},
    config::{self, Config, Target},
    front,
    mcp::{Era, Revision, ServerId},
    router::{self, Endpoint},
    session::{self, Bounds},
    telemetry::Metrics,
};
use ::http::{HeaderName, HeaderValue};
use std::sync::Arc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What all stdio servers share.
pub struct Workshop {
    pub processes: Arc<stdio::Processes>,
    pub tracker: TaskTracker,
    pub stop: CancellationToken,
}

/// Every configured server, in the file's order.
pub fn servers(
    config: &Config,
    options: &Options,
    metrics: &Metrics,
    workshop: &Workshop,
) -> Vec<Arc<Server>> {
    let client = http::Client::new();
    let build = |(id, server): (&config::ServerId, &config::Server)| {
        let id = ServerId::new(id.as_str()).expect("the configuration checked every name");
        let handles = metrics.server(id.as_str());
        let transport = match &server.target {
            Target::Process(process) => {
                let settings = stdio_settings(server, process, options);
                let eras = Arc::new(Eras::new(settings.protocol.fixed()));
                let parts = stdio::Parts {
                    processes: workshop.processes.clone(),
                    metrics: handles.clone(),
                    eras: eras.clone(),
                    tracker: workshop.tracker.clone(),
                    stop: workshop.stop.clone(),
                };
                let supervisor = stdio::Supervisor::new(id.clone(), settings, parts);
                Transport::Stdio { supervisor, eras }
            }
            Target::Remote(remote) => match http_settings(server, remote) {
                Ok(settings) => Transport::Http(http::Origin::new(
                    id.clone(),
                    settings,
                    &client,
                    handles.clone(),
                )),
                Err(reason) => Transport::Unavailable(reason),
            },
            Target::Unavailable(reason) => Transport::Unavailable(reason.clone()),
        };
        let frame = server.limits.frame.bytes();
        Arc::new(Server::new(id, server.isolation, frame, transport, handles))
    };
    config.servers.iter().map(build).collect()
}

fn stdio_settings(
    server: &config::Server,
    process: &config::Process,
    options: &Options,
) -> stdio::Settings {
    let mut settings = stdio::Settings::new(process.command.clone(), process.args.clone());
    let env = process.env.iter();
    settings.env = env
        .map(|(k, v)| (k.clone(), v.expose().to_owned()))
        .collect();
    settings.inherit_env = process.inherit_env.clone();
    settings.cwd = process.cwd.clone();
    settings.shim = options.shim.clone();
    settings.isolation = match server.isolation {
        config::Isolation::Session => stdio::Isolation::Session,
        config::Isolation::Principal => stdio::Isolation::Principal,
        config::Isolation::Request => stdio::Isolation::Request,
        config::Isolation::Shared => stdio::Isolation::Shared,
    };
    settings.protocol = match protocol(server.protocol) {
        None => stdio::Protocol::Auto,
        Some(http::Fixed::Era(era)) => stdio::Protocol::Fixed(era),
        Some(http::Fixed::Revision(revision)) => stdio::Protocol::Exactly(revision),
    };
    settings.start.timeout = server.start.timeout.get();
    settings.start.restarts = server.start.restarts;
    let backoff = server.start.backoff;
    settings.start.backoff = (backoff.first().get(), backoff.longest().get());
    let limits = &server.limits;
    settings.limits.processes = limits.processes;
    settings.limits.per_principal = limits.per_principal;
    settings.limits.idle = limits.idle.get();
    settings.limits.queue = limits.queue.get();
    settings.limits.frame = limits.frame.bytes();
    settings.limits.memory = limits.memory.map(config::Size::get);
    settings.timeouts.call = server.timeouts.call.get();
    settings.timeouts.call_max = server.timeouts.call_max.get();
    settings
}

fn http_settings(
    server: &config::Server,
    remote: &config::Remote,
) -> Result<http::Settings, String> {
    let address = http::Address::new(remote.url.as_url().clone()).map_err(|e| e.to_string())?;
    let mut settings = http::Settings::at(address);
    for (name, value) in &remote.headers {
        let name: HeaderName = name.to_http();
        let mut value = HeaderValue::try_from(value.expose())
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        settings.headers.push((name, value));
    }
    settings.protocol = protocol(server.protocol);
    settings.connect = server.timeouts.connect.get();
    settings.call = server.timeouts.call.get();
    settings.call_max = server.timeouts.call_max.get();
    settings.idle_stream = Some(server.timeouts.idle_stream.get());
    settings.start = server.start.timeout.get();
    settings.frame = server.limits.frame.bytes();
    Ok(settings)
}

fn protocol(protocol: config::Protocol) -> Option<http::Fixed> {
    use config::Protocol as P;
    Some(match protocol {
        P::Auto => return None,
        P::Modern => http::Fixed::Era(Era::Modern),
        P::Legacy => http::Fixed::Era(Era::Legacy),
        P::V2024_11_05 => http::Fixed::Revision(Revision::V2024_11_05),
        P::V2025_03_26 => http::Fixed::Revision(Revision::V2025_03_26),
        P::V2025_06_18 => http::Fixed::Revision(Revision::V2025_06_18),
        P::V2025_11_25 => http::Fixed::Revision(Revision::V2025_11_25),
        P::V2026_07_28 => http::Fixed::Revision(Revision::V2026_07_28),
    })
}

/// The configured endpoints, then one for each server alone.
pub fn endpoints(config: &Config, servers: &[Arc<Server>]) -> Vec<Endpoint> {
    let find = |id: &config::ServerId| {
        let at = config
            .servers
            .get_index_of(id)
            .expect("the configuration checked every name");
        servers[at].clone()
    };
    let mut endpoints = Vec::new();
    for (path, endpoint) in &config.endpoints {
        let naming = match endpoint.names {
            config::Naming::Bare => Naming::Bare {
                max: config.names.max,
            },
            config::Naming::Prefixed => Naming::Prefixed {
                max: config.names.max,
            },
        };
        let places = config.servers_of(endpoint).into_iter();
        let places = places.map(|(id, server)| {
            let shape = shape(id, server, naming, endpoint.tools.clone());
            (find(id), shape)
        });
        let scopes = endpoint.scopes.iter().map(|s| s.as_str().to_owned());
        endpoints.push(Endpoint::new(
            path.as_str().to_owned(),
            places.collect(),
            endpoint.page_size,
            scopes.collect(),
        ));
    }
    if config.single_server {
        for (id, server) in &config.servers {
            let path = format!("/mcp/{}", id.as_str());
            if endpoints.iter().any(|e| e.path == path) {
                continue;
            }
            let naming = Naming::Bare {
                max: config.names.max,
            };
            let shape = shape(id, server, naming, config::Selection::default());
            let scopes = scopes_of(&endpoints, id);
            endpoints.push(Endpoint::new(path, vec![(find(id), shape)], 1000, scopes));
        }
    }
    endpoints
}

/// The scopes that any configured endpoint asks for a server: its own endpoint must not be a way around them.
fn scopes_of(endpoints: &[Endpoint], server: &config::ServerId) -> Vec<String> {
    let holds = |e: &&Endpoint| {
        e.places
            .iter()
            .any(|p| p.server.id.as_str() == server.as_str())
    };
    let mut scopes: Vec<String> = Vec::new();
    for scope in endpoints.iter().filter(holds).flat_map(|e| &e.scopes) {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    scopes
}

fn shape(
    id: &config::ServerId,
    server: &config::Server,
    naming: Naming,
    selection: config::Selection,
) -> Shape {
    Shape {
        server: ServerId::new(id.as_str()).expect("the configuration checked every name"),
        naming,
        tools: server.tools.clone(),
        prompts: server.prompts.clone(),
        resources: server.resources.clone(),
        selection,
    }
}

/// Who is let in. Without any `auth`, everyone on loopback.
pub fn gate(config: &Config, options: &Options) -> Result<Gate, StartError> {
    let mut gate = match (&config.auth, &options.token) {
        (Some(config::Auth::Keys(_)), _) | (_, Some(_)) => Gate::closed(),
        (Some(config::Auth::Open), None) => Gate::open(),
        (None, None) if config.listen.is_loopback() => Gate::open(),
        (None, None) => {
            return Err(StartError::Unsafe(
                "it would listen beyond loopback without asking anyone for a key: add `auth.api_keys` (`drawbridge key new NAME` makes one), pass --token, or write `auth: none` if that is what you want",
            ));
        }
    };
    if let Some(config::Auth::Keys(keys)) = &config.auth {
        for key in &keys.api_keys {
            let scopes = key.scopes.iter().map(|s| s.as_str().to_owned());
            let expires = key.expires.map(config::Expiry::at);
            gate.add(
                key.name.as_str(),
                *key.sha256.bytes(),
                scopes.collect(),
                expires,
            );
        }
    }
    if let Some(token) = &options.token {
        gate.add_token("token", token);
    }
    Ok(gate)
}

pub fn door(config: &Config) -> front::Door {
    let mut hosts: Vec<(String, Option<u16>)> = Vec::new();
    if let Some(url) = config.public_url.as_ref().map(config::HttpUrl::as_url) {
        hosts.extend(url.host_str().map(|h| (h.to_owned(), None)));
    }
    hosts.extend(config.hosts.iter().map(|h| (h.host().to_owned(), h.port())));
    let exact = |o: &config::Origin| match o {
        config::Origin::Any => None,
        config::Origin::Exact(origin) => Some(origin.to_string()),
    };
    let origins = config.origins.iter().filter_map(exact);
    front::Door {
        hosts,
        any_origin: config
            .origins
            .iter()
            .any(|o| matches!(o, config::Origin::Any)),
        origins: origins.collect(),
    }
}

pub fn router_settings(config: &Config) -> router::Settings {
    let replay = &config.streams.replay;
    router::Settings {
        wait: config.discovery.wait.get(),
        list_wait: config.discovery.list_wait.get(),
        calls_per_session: config.limits.concurrent_calls_per_session,
        bounds: Bounds {
            events: replay.events,
            bytes: replay.bytes.bytes(),
        },
        keep: replay.keep.get(),
    }
}

pub fn session_limits(config: &Config) -> session::Limits {
    session::Limits {
        all: config.limits.sessions,
        per_principal: config.limits.sessions_per_principal,
        idle: config.limits.session_idle.get(),
    }
}

pub fn front_settings(config: &Config) -> front::Settings {
    front::Settings {
        body: config.limits.body.bytes(),
        head: config.limits.headers.bytes(),
        request_timeout: config.limits.request_timeout.get(),
        json_depth: config.limits.json_depth as u32,
        batch: config.limits.batch,
        keep_alive: config.streams.keep_alive.get(),
        silence: config.streams.silence.get(),
        retry: config.streams.retry.get(),
    }
}

pub fn connection_limits(config: &Config) -> front::Limits {
    front::Limits {
        headers: config.limits.headers.bytes(),
        request_timeout: config.limits.request_timeout.get(),
    }
}

/// A certificate, if the operator has one.
pub fn certificates(config: &Config) -> Result<Option<Arc<front::Certificates>>, StartError> {
    let Some(tls) = &config.tls else {
        return Ok(None);
    };
    let read = front::Certificates::read(&tls.cert, &tls.key);
    read.map(Some).map_err(StartError::Tls)
}
