//! One MCP server: how it is reached, how it is supervised and what of it is shown.
//!
//! The file's entry is flat, as desktop clients have it ([`Entry`]); the rest of the program gets a [`Server`], whose
//! [`Target`] is exactly one thing.

use std::{borrow::Cow, path::PathBuf};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    shown::{Shown, Tools},
    value::{Backoff, HeaderName, HttpUrl, Period, Secret, Size},
};

/// One MCP server.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Entry")]
pub struct Server {
    /// How it is reached.
    pub target: Target,
    /// The revision of the protocol it is spoken to in.
    pub protocol: Protocol,
    /// Who shares a process or a backend session.
    pub isolation: Isolation,
    /// How a process is started and started again.
    pub start: Start,
    /// Bounds on what it may use.
    pub limits: ServerLimits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Which of its tools are shown, and how.
    pub tools: Tools,
    /// Which of its prompts are shown, and how.
    pub prompts: Shown,
    /// Which of its resources and templates are shown, by their URI, and how.
    pub resources: Shown,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Target {
    /// As a process of ours, over its standard input and output.
    Process(Process),
    /// At an address, over streamable HTTP.
    Remote(Remote),
    /// Not at all: its entry asks for something that is not there, and this text says for what.
    Unavailable(String),
}

/// A process to start.
#[derive(Clone, Default)]
pub struct Process {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment.
    pub env: IndexMap<String, Secret>,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
    /// Variables that it gets from the gateway's own environment, besides the usual ones.
    pub inherit_env: Vec<String>,
}

/// An address to connect to.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The address.
    pub url: HttpUrl,
    /// Headers that every request carries.
    pub headers: IndexMap<HeaderName, Secret>,
}

/// Arguments do not print: people put keys into them.
impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &self.env)
            .field("cwd", &self.cwd)
            .field("inherit_env", &self.inherit_env)
            .finish()
    }
}

impl Server {
    /// A server with everything at its default.
    pub fn at(target: Target) -> Self {
        Server {
            target,
            protocol: Protocol::default(),
            isolation: Isolation::default(),
            start: Start::default(),
            limits: ServerLimits::default(),
            timeouts: Timeouts::default(),
            tools: Tools::default(),
            prompts: Shown::default(),
            resources: Shown::default(),
        }
    }
}

/// One MCP server: either a `command` to run or a `url` to connect to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Server")]
pub(crate) struct Entry {
    /// The program to run: a path, or a name that is looked up in `PATH`. It speaks on standard input and output.
    #[schemars(length(min = 1))]
    command: Option<String>,
    /// Arguments of the program.
    #[schemars(with = "Vec<Plain>")]
    args: Vec<String>,
    /// Variables of the program's environment.
    env: IndexMap<String, Secret>,
    /// A file of `NAME=value` lines with more variables for the program; `env` comes before it.
    #[serde(rename = "envFile")]
    #[schemars(length(min = 1))]
    env_file: Option<String>,
    /// The program's working directory; relative to the file that it stands in.
    #[schemars(length(min = 1))]
    cwd: Option<PathBuf>,
    /// Variables that the program gets from the gateway's own environment, besides the usual ones.
    inherit_env: Vec<String>,
    /// The address to connect to, instead of a `command`.
    url: Option<HttpUrl>,
    /// Headers that every request to `url` carries.
    #[schemars(extend("propertyNames" = super::value::names_of::<HeaderName>()), with = "IndexMap<String, Secret>")]
    headers: IndexMap<HeaderName, Secret>,
    /// The transport, as desktop clients write it. It follows from `command` or `url` and need not be written.
    #[serde(rename = "type")]
    kind: Option<Kind>,
    /// Leave this server out.
    disabled: bool,
    /// For desktop clients only: ignored here.
    #[serde(rename = "autoApprove")]
    auto_approve: Option<serde_json::Value>,
    /// For desktop clients only: ignored here.
    #[serde(rename = "alwaysAllow")]
    always_allow: Option<serde_json::Value>,
    /// The revision of the protocol: found out (`auto`), of one era, or exactly one.
    protocol: Protocol,
    /// Who shares a process or a session with the server.
    isolation: Isolation,
    /// How the process is started and started again.
    start: Start,
    /// Bounds on what the server may use.
    limits: ServerLimits,
    /// How long things may take.
    timeouts: Timeouts,
    /// Which tools are shown, and how.
    tools: Tools,
    /// Which prompts are shown, and how.
    prompts: Shown,
    /// Which resources and templates are shown, by their URI, and how.
    resources: Shown,
    /// Why it cannot be used, if it cannot: put there by the reader, never by an operator.
    #[schemars(skip)]
    unavailable: Option<String>,
}

impl JsonSchema for Server {
    fn schema_name() -> Cow<'static, str> {
        Entry::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Entry::json_schema(generator)
    }
}

impl From<Entry> for Server {
    fn from(entry: Entry) -> Server {
        let target = match (entry.unavailable, entry.command, entry.url) {
            (Some(reason), _, _) => Target::Unavailable(reason),
            (None, Some(command), _) => Target::Process(Process {
                command,
                args: entry.args,
                env: entry.env,
                cwd: entry.cwd,
                inherit_env: entry.inherit_env,
            }),
            (None, None, Some(url)) => Target::Remote(Remote {
                url,
                headers: entry.headers,
            }),
            // A fault has been reported for it; the server only stands here so that other faults are found too.
            (None, None, None) => Target::Unavailable("it has neither `command` nor `url`".into()),
        };
        Server {
            target,
            protocol: entry.protocol,
            isolation: entry.isolation,
            start: entry.start,
            limits: entry.limits,
            timeouts: entry.timeouts,
            tools: entry.tools,
            prompts: entry.prompts,
            resources: entry.resources,
        }
    }
}

/// The schema of a text that may also be written as a bare number or boolean.
pub(crate) struct Plain;

impl JsonSchema for Plain {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Plain".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "number", "boolean"], "x-kind": "plain" })
    }
}

/// The transport, as desktop clients write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// A `command`.
    Stdio,
    /// A `url` with streamable HTTP.
    Http,
    /// A `url` with streamable HTTP.
    StreamableHttp,
    /// A `url` with streamable HTTP.
    #[serde(rename = "streamableHttp")]
    StreamableHttpCamel,
    /// A `url` with the HTTP+SSE transport of 2024-11-05: not supported yet.
    Sse,
}

/// The revision of the protocol that a server is spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Found out at the first contact.
    #[default]
    Auto,
    /// The newest revision without sessions that both sides know.
    Modern,
    /// The newest revision with sessions that both sides know.
    Legacy,
    /// 2024-11-05.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// 2025-03-26.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// 2025-06-18.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// 2025-11-25.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// 2026-07-28.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

/// Who shares a process or a session with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Each client session has its own.
    #[default]
    Session,
    /// The sessions of one principal share one.
    Principal,
    /// Each request has its own.
    Request,
    /// Everyone shares one.
    Shared,
}

/// How a process is started and started again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Start {
    /// How long it may take until it answers for the first time; package runners may have to install it first.
    #[schemars(extend("x-min" = "100ms", "x-max" = "1h"))]
    pub timeout: Period,
    /// How many times in a row it is started again after a crash. 0: never.
    #[schemars(range(min = 0, max = 1000))]
    pub restarts: u32,
    /// The first and the longest wait before it is started again.
    pub backoff: Backoff,
}

impl Default for Start {
    fn default() -> Self {
        Start {
            timeout: Period::seconds(120),
            restarts: 5,
            backoff: Backoff::standard(),
        }
    }
}

/// Bounds on what a server may use.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerLimits {
    /// Processes of this server.
    #[schemars(range(min = 1, max = 100_000))]
    pub processes: usize,
    /// Processes of this server for one principal.
    #[schemars(range(min = 1, max = 100_000))]
    pub per_principal: usize,
    /// How long a process may lie idle before it is stopped.
    #[schemars(extend("x-min" = "1s", "x-max" = "30d"))]
    pub idle: Period,
    /// How long a call waits for a process when there are as many as may be. 0s does not wait.
    #[schemars(extend("x-min" = "0s", "x-max" = "1h"))]
    pub queue: Period,
    /// The largest message from the server.
    #[schemars(extend("x-min" = "1KiB", "x-max" = "1GiB"))]
    pub frame: Size,
    /// How much memory a process may use. Left out: as much as it likes.
    #[schemars(extend("x-min" = "1MiB", "x-max" = "1TiB"))]
    pub memory: Option<Size>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            processes: 32,
            per_principal: 8,
            idle: Period::seconds(10 * 60),
            queue: Period::seconds(10),
            frame: Size::mib(16),
            memory: None,
        }
    }
}

/// How long things may take.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// Connecting to a `url`.
    #[schemars(extend("x-min" = "10ms", "x-max" = "10m"))]
    pub connect: Period,
    /// A call without any progress.
    #[schemars(extend("x-min" = "10ms", "x-max" = "1d"))]
    pub call: Period,
    /// A call in all; progress may extend it to this.
    #[schemars(extend("x-min" = "10ms", "x-max" = "7d"))]
    pub call_max: Period,
    /// A stream from the server without any event or comment.
    #[schemars(extend("x-min" = "1s", "x-max" = "1d"))]
    pub idle_stream: Period,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Period::seconds(5),
            call: Period::seconds(60),
            call_max: Period::seconds(10 * 60),
            idle_stream: Period::seconds(5 * 60),
        }
    }
}
