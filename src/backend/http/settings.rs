//! What the operator decided about one HTTP server, ready to use.

use super::address::Address;
use crate::mcp::{Era, Revision};
use http::{HeaderName, HeaderValue};
use std::time::Duration;

/// How one HTTP server is spoken to.
#[derive(Clone, Debug)]
pub struct Settings {
    pub address: Address,
    /// Sent with every request to the server, and to nobody else.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What the operator fixed of the protocol; `None` finds out.
    pub protocol: Option<Fixed>,
    /// For name lookup, TCP and TLS together.
    pub connect: Duration,
    /// For a call until its answer or its next progress.
    pub call: Duration,
    /// For a call in all, whatever progress it reports.
    pub call_max: Duration,
    /// How long a standing stream may stay without a byte before it is opened anew; `None` waits for ever.
    pub idle_stream: Option<Duration>,
    /// For opening a link, era detection included.
    pub start: Duration,
    /// The largest message from the server, in bytes.
    pub frame: usize,
    pub pool: Pool,
}

/// What of the protocol is not left to detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    Era(Era),
    Revision(Revision),
}

impl Fixed {
    pub fn era(self) -> Era {
        match self {
            Self::Era(era) => era,
            Self::Revision(revision) => revision.era(),
        }
    }
}

/// Bounds on connections that wait for the next request.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// How long one waits before it is closed.
    pub idle: Duration,
    /// How many wait.
    pub max_idle: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            // Node and uvicorn close theirs after 5 s. A request that crosses such a close on
            // the way may or may not have run, so ours are closed first.
            idle: Duration::from_secs(4),
            max_idle: 128,
        }
    }
}

impl Settings {
    /// The defaults for a server at `address`.
    pub fn at(address: Address) -> Self {
        Self {
            address,
            headers: Vec::new(),
            protocol: None,
            connect: Duration::from_secs(5),
            call: Duration::from_secs(60),
            call_max: Duration::from_secs(600),
            idle_stream: None,
            start: Duration::from_secs(60),
            frame: 16 << 20,
            pool: Pool::default(),
        }
    }
}
