//! The file as a whole, and the settings that belong to neither a server nor an endpoint.
//!
//! A doc comment here is what an operator reads in the schema, so it speaks to an operator.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    auth::Auth,
    endpoint::{Endpoint, Names},
    server::Server,
    value::{
        Address, EndpointPath, HostName, HttpUrl, Listen, Origin, Period, Secret, ServerId, Size,
    },
};

/// Drawbridge: one door for every MCP server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where clients connect: host and port, or a list of them. Anything but loopback needs `auth`.
    pub listen: Listen,
    /// The address under which clients reach the gateway, if a proxy stands in front of it. Its host is allowed.
    pub public_url: Option<HttpUrl>,
    /// Further values of `Host` that are allowed, besides loopback and the host of `public_url`.
    pub hosts: Vec<HostName>,
    /// Origins of browser pages that are allowed, besides loopback: exact ones, or `*` for any.
    pub origins: Vec<Origin>,
    /// Serve HTTPS with this certificate. Both files are read again when they change.
    pub tls: Option<Tls>,
    /// The MCP servers behind the gateway, by name: up to 31 lower-case letters, digits and `-`. `mcpServers` is
    /// another name for this key.
    #[schemars(extend("propertyNames" = super::value::names_of::<ServerId>()), with = "IndexMap<String, Server>")]
    pub servers: IndexMap<ServerId, Server>,
    /// The paths that clients connect to and what is behind each. Left out: `/mcp` with every server.
    #[schemars(extend("propertyNames" = super::value::names_of::<EndpointPath>()), with = "IndexMap<String, Endpoint>")]
    pub endpoints: IndexMap<EndpointPath, Endpoint>,
    /// Whether every server is also served alone, its names untouched, at `/mcp/NAME`.
    pub single_server: bool,
    /// How tools and prompts are named on endpoints with `names: prefixed`.
    pub names: Names,
    /// Who may connect: `none` for everyone, or keys. Needed unless `listen` is loopback.
    pub auth: Option<Auth>,
    /// Bounds on what clients may use.
    pub limits: Limits,
    /// Event streams to clients.
    pub streams: Streams,
    /// How long clients wait for servers that have never been reached.
    pub discovery: Discovery,
    /// What happens between SIGTERM and the end of the process.
    pub drain: Drain,
    /// Logs.
    pub telemetry: Telemetry,
    /// The listener for metrics and probes.
    pub admin: Admin,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: Listen::one(Address::local(8080)),
            public_url: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            tls: None,
            servers: IndexMap::new(),
            endpoints: IndexMap::from([(EndpointPath::standard(), Endpoint::default())]),
            single_server: true,
            names: Names::default(),
            auth: None,
            limits: Limits::default(),
            streams: Streams::default(),
            discovery: Discovery::default(),
            drain: Drain::default(),
            telemetry: Telemetry::default(),
            admin: Admin::default(),
        }
    }
}

impl Config {
    /// The servers behind an endpoint, in its order, or in the file's where it names none.
    pub fn servers_of<'a>(&'a self, endpoint: &'a Endpoint) -> Vec<(&'a ServerId, &'a Server)> {
        match &endpoint.servers {
            None => self.servers.iter().collect(),
            Some(ids) => ids
                .iter()
                .filter_map(|id| self.servers.get_key_value(id))
                .collect(),
        }
    }
}

/// A certificate and its key. Paths are relative to the file that they stand in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// A PEM file with the certificate and its chain.
    #[schemars(length(min = 1))]
    pub cert: PathBuf,
    /// A PEM file with the private key.
    #[schemars(length(min = 1))]
    pub key: PathBuf,
}

/// Bounds on what clients may use.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The largest request body.
    #[schemars(extend("x-min" = "1KiB", "x-max" = "1GiB"))]
    pub body: Size,
    /// The largest head of a request: all its headers together.
    #[schemars(extend("x-min" = "4KiB", "x-max" = "1MiB"))]
    pub headers: Size,
    /// How long a client may take to send a request.
    #[schemars(extend("x-min" = "100ms", "x-max" = "1h"))]
    pub request_timeout: Period,
    /// Sessions in all.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sessions: usize,
    /// Sessions of one principal.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sessions_per_principal: usize,
    /// How long a session may lie idle before it is ended.
    #[schemars(extend("x-min" = "1s", "x-max" = "30d"))]
    pub session_idle: Period,
    /// How deep objects and arrays of a message may be nested.
    #[schemars(range(min = 8, max = 1024))]
    pub json_depth: usize,
    /// Messages in one batch (revision 2025-03-26).
    #[schemars(range(min = 1, max = 10_000))]
    pub batch: usize,
    /// Processes of stdio servers in all.
    #[schemars(range(min = 1, max = 100_000))]
    pub processes: usize,
    /// Calls that one session may have running at a time.
    #[schemars(range(min = 1, max = 100_000))]
    pub concurrent_calls_per_session: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body: Size::mib(16),
            headers: Size::kib(64),
            request_timeout: Period::seconds(30),
            sessions: 10_000,
            sessions_per_principal: 1_000,
            session_idle: Period::seconds(30 * 60),
            json_depth: 128,
            batch: 50,
            processes: 256,
            concurrent_calls_per_session: 256,
        }
    }
}

/// Event streams to clients.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Streams {
    /// How long a stream may be silent before a comment keeps it alive.
    #[schemars(extend("x-min" = "100ms", "x-max" = "1h"))]
    pub keep_alive: Period,
    /// How long a POST waits for its answer before it turns into a stream.
    #[schemars(extend("x-min" = "1ms", "x-max" = "1h"))]
    pub silence: Period,
    /// How long a client is told to wait before it connects again.
    #[schemars(extend("x-min" = "1ms", "x-max" = "1h"))]
    pub retry: Period,
    /// What is kept of a stream so that a client can resume it.
    pub replay: Replay,
}

impl Default for Streams {
    fn default() -> Self {
        Streams {
            keep_alive: Period::seconds(15),
            silence: Period::seconds(1),
            retry: Period::seconds(1),
            replay: Replay::default(),
        }
    }
}

/// What is kept of a stream so that a client can resume it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// Events of one session. 0 keeps none.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub events: usize,
    /// Bytes of one session's events.
    #[schemars(extend("x-min" = "0B", "x-max" = "1GiB"))]
    pub bytes: Size,
    /// How long an event is kept.
    #[schemars(extend("x-min" = "1s", "x-max" = "1d"))]
    pub keep: Period,
}

impl Default for Replay {
    fn default() -> Self {
        Replay {
            events: 256,
            bytes: Size::mib(1),
            keep: Period::seconds(5 * 60),
        }
    }
}

/// How long clients wait for servers that have never been reached.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Discovery {
    /// How long `initialize` and `server/discover` wait; then they answer without the server. 0s does not wait.
    #[schemars(extend("x-min" = "0s", "x-max" = "5m"))]
    pub wait: Period,
    /// How long a list waits; then it goes out without the server. 0s does not wait.
    #[schemars(extend("x-min" = "0s", "x-max" = "5m"))]
    pub list_wait: Period,
}

impl Default for Discovery {
    fn default() -> Self {
        Discovery {
            wait: Period::seconds(5),
            list_wait: Period::seconds(5),
        }
    }
}

/// What happens between SIGTERM and the end of the process.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drain {
    /// How long new work is still taken after `/readyz` has begun to fail, so that load balancers notice.
    #[schemars(extend("x-min" = "0s", "x-max" = "1h"))]
    pub delay: Period,
    /// How long running calls may take after that.
    #[schemars(extend("x-min" = "0s", "x-max" = "1d"))]
    pub grace: Period,
}

impl Default for Drain {
    fn default() -> Self {
        Drain {
            delay: Period::seconds(5),
            grace: Period::seconds(30),
        }
    }
}

/// What the gateway tells about itself.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// Logs, on standard error.
    pub log: Log,
}

/// Logs, on standard error.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The least important messages to write.
    pub level: LogLevel,
    /// How messages are written.
    pub format: LogFormat,
}

/// How important a message must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// An operator must act.
    Error,
    /// Something is wrong and was dealt with.
    Warn,
    /// What happens in the large.
    #[default]
    Info,
    /// What happens in the small.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The level's name, as log filters have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

/// How log messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object in a line.
    Json,
}

/// The listener for metrics and probes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    /// Where it listens, or `off`. Anything but loopback needs a `key`.
    #[serde(deserialize_with = "super::value::address_or_off")]
    #[schemars(schema_with = "super::value::address_or_off_schema", extend("default" = "127.0.0.1:9090"))]
    pub listen: Option<Address>,
    /// The key that everything but the probes asks for. Probes need none.
    pub key: Option<Secret>,
}

impl Default for Admin {
    fn default() -> Self {
        Admin {
            listen: Some(Address::local(9090)),
            key: None,
        }
    }
}
