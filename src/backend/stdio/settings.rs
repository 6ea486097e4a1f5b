//! What a supervisor is told: how to start a server and how much it may have.

use crate::mcp::{Era, Revision};
use std::{path::PathBuf, time::Duration};

/// Who shares a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Each client session has its own; each link that belongs to none has one, too.
    Session,
    /// The sessions of one principal share one.
    Principal,
    /// Each request has its own: a process lives until its link is closed.
    Request,
    /// Everyone shares one.
    Shared,
}

/// Which revisions a server is spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Found out, see [`super::super::Eras`].
    Auto,
    Fixed(Era),
    Exactly(Revision),
}

impl Protocol {
    /// The era that the operator set, if any.
    pub fn fixed(self) -> Option<Era> {
        match self {
            Self::Auto => None,
            Self::Fixed(era) => Some(era),
            Self::Exactly(revision) => Some(revision.era()),
        }
    }
}

/// Everything about one stdio server. It does not print: `env` and `args` may hold secrets.
#[derive(Clone)]
pub struct Settings {
    /// A path, or a name that is looked up in the server's `PATH`.
    pub command: String,
    pub args: Vec<String>,
    /// Variables, in addition to the usual ones.
    pub env: Vec<(String, String)>,
    /// Names of variables that it gets from the gateway's environment, besides the usual ones.
    pub inherit_env: Vec<String>,
    pub cwd: Option<PathBuf>,
    pub protocol: Protocol,
    pub isolation: Isolation,
    pub start: Start,
    pub limits: Limits,
    pub timeouts: Timeouts,
    /// How an ending goes on when the server does not end by itself.
    pub ending: Ending,
    /// The program that serves as keeper; this very one if unset.
    pub shim: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct Start {
    /// From the spawn to the answer to the first message.
    pub timeout: Duration,
    /// How often in a row a start may fail before starts are refused for a while.
    pub restarts: u32,
    /// The first and the longest wait between failed starts.
    pub backoff: (Duration, Duration),
    /// How long a server may be silent before a probe of its era counts as not understood, from the spawn.
    pub silence: Duration,
    /// The same once it has written anything, from then on.
    pub silence_after_output: Duration,
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// Processes of this server.
    pub processes: usize,
    /// Processes of this server for one principal.
    pub per_principal: usize,
    /// A process without a call for this long is ended.
    pub idle: Duration,
    /// How long an opening waits for a place.
    pub queue: Duration,
    /// The longest line from the server, in bytes.
    pub frame: usize,
    /// Bytes that wait for the server to read them; a single message may be larger.
    pub unread: usize,
    /// Private memory of each of the server's processes, in bytes.
    pub memory: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Timeouts {
    /// A call without any progress.
    pub call: Duration,
    /// A call in all.
    pub call_max: Duration,
}

#[derive(Clone, Debug)]
pub struct Ending {
    /// From the end of its input to SIGTERM.
    pub quiet: Duration,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
}

impl Settings {
    /// A server with everything at its default.
    pub fn new(command: impl Into<String>, args: Vec<String>) -> Self {
        Self {
            command: command.into(),
            args,
            env: Vec::new(),
            inherit_env: Vec::new(),
            cwd: None,
            protocol: Protocol::Auto,
            isolation: Isolation::Session,
            start: Start {
                timeout: Duration::from_secs(120),
                restarts: 5,
                backoff: (Duration::from_secs(1), Duration::from_secs(30)),
                silence: Duration::from_secs(10),
                silence_after_output: Duration::from_secs(1),
            },
            limits: Limits {
                processes: 32,
                per_principal: 8,
                idle: Duration::from_secs(600),
                queue: Duration::from_secs(10),
                frame: 16 << 20,
                unread: 16 << 20,
                memory: None,
            },
            timeouts: Timeouts {
                call: Duration::from_secs(60),
                call_max: Duration::from_secs(600),
            },
            ending: Ending {
                quiet: Duration::from_secs(1),
                grace: Duration::from_secs(2),
            },
            shim: None,
        }
    }
}
