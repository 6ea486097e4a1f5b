//! What can go wrong between the gateway and a server, and whether the call may have run.

use crate::mcp::{RpcError, code};
use serde_json::json;
use std::time::Duration;

/// Whether the server may have begun the call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It provably did not: sending it again is safe.
    No,
    Maybe,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// No connection, or no process: `reason` is for the operator's log.
    #[error("cannot be reached: {reason}")]
    Unreachable { reason: String, ran: Ran },
    /// The process ended, or the connection broke, while calls were running.
    #[error("ended unexpectedly: {reason}")]
    Crashed { reason: String },
    /// The gateway ended the process itself, for the reason given.
    #[error("was stopped: {0}")]
    Stopped(&'static str),
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The server does not know our session any more (HTTP 404). Nothing ran.
    #[error("the backend session is lost")]
    SessionLost,
    /// The server refused our credentials; `status` is 401 or 403.
    #[error("refused our credentials with {status}")]
    Refused { status: u16 },
    /// The server itself is over a limit (429), with the seconds it asked to wait.
    #[error("over a limit of the server")]
    Throttled { retry_after: Option<u64> },
    /// A cap of ours on processes is reached, and waiting for a place took too long.
    #[error("{0}")]
    Busy(&'static str),
    /// What came back is not the protocol.
    #[error("answered with something that is not MCP: {0}")]
    NotMcp(String),
    /// A message went over the size limit, in bytes.
    #[error("a message is larger than {0} bytes")]
    TooLarge(usize),
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// The server does not speak the era that was asked for.
    #[error("does not speak a {0} revision")]
    WrongEra(&'static str),
    /// The server answered `initialize` or `server/discover` with an error.
    #[error("refused to start a session: {0}")]
    Declined(String),
}

impl Fault {
    pub fn unreachable(reason: impl Into<String>) -> Self {
        Self::Unreachable {
            reason: reason.into(),
            ran: Ran::No,
        }
    }

    /// Whether sending the call again could run it twice.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Unreachable { ran, .. } => *ran == Ran::Maybe,
            Self::Crashed { .. }
            | Self::Stopped(_)
            | Self::TimedOut(_)
            | Self::NotMcp(_)
            | Self::Cancelled => true,
            // The request was refused before it left, or it was the answer that grew too large.
            Self::TooLarge(_) => true,
            Self::SessionLost
            | Self::Refused { .. }
            | Self::Throttled { .. }
            | Self::Busy(_)
            | Self::WrongEra(_)
            | Self::Declined(_) => false,
        }
    }

    /// What the client is told: the server's name and whether a retry is safe, never the inner reason.
    pub fn answer(&self, server: &str) -> RpcError {
        let (code, text) = match self {
            Self::Unreachable { .. } => (code::UNREACHABLE, "cannot be reached"),
            Self::Crashed { .. } => (code::UNREACHABLE, "ended while the call was running"),
            Self::Stopped(_) => (code::UNREACHABLE, "was stopped while the call was running"),
            Self::TimedOut(_) => (code::TIMED_OUT, "did not answer in time"),
            Self::SessionLost => (code::UNREACHABLE, "lost its session"),
            Self::Refused { .. } => (code::REFUSED, "refused the gateway's credentials"),
            Self::Throttled { .. } => (code::OVER_LIMIT, "is over a limit of its own"),
            Self::Busy(_) => (code::OVER_LIMIT, "has no free place"),
            Self::NotMcp(_) => (code::UNREACHABLE, "answered with something that is not MCP"),
            Self::TooLarge(_) => (
                code::UNREACHABLE,
                "sent or was sent a message over the size limit",
            ),
            Self::Cancelled => (code::INTERNAL, "was told to stop: the call was cancelled"),
            Self::WrongEra(_) => (
                code::NOT_CARRIED,
                "speaks no revision that fits this client",
            ),
            Self::Declined(_) => (code::UNREACHABLE, "refused to start a session"),
        };
        let mut data = json!({"server": server, "retrySafe": !self.may_have_run()});
        if let Self::Throttled {
            retry_after: Some(seconds),
        } = self
        {
            data["retryAfterMs"] = (seconds * 1000).into();
        }
        RpcError::new(code, format!("server `{server}` {text}")).with(data)
    }
}
