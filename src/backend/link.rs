//! One open connection to a server, on behalf of one holder.
//!
//! A call is a future: its output is the answer, and dropping it abandons the call
//! (the server is told: `notifications/cancelled` on stdio and legacy HTTP, a closed
//! stream on modern HTTP). Whatever else the server says goes to the [`Receiver`].

use super::{Fault, Profile, http::HttpLink, stdio::StdioLink};
use crate::mcp::{Era, Message, Pieces, Revision};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

/// Takes what a server says outside answers. Must not block.
pub trait Receiver: Send + Sync {
    /// A notification or a request. `call` is the id of the call on whose own stream it
    /// came (HTTP) or whose progress it is; `None` where the transport does not tell.
    fn receive(&self, message: Message, call: Option<u64>);
    /// The link is over; nothing more comes. Called once.
    fn ended(&self, fault: &Fault);
}

/// Who a link is opened for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The caller's stable identity; backends are never shared between two of them unless the server is declared `shared`.
    pub principal: Arc<str>,
    /// A number of the client session; `None` for the gateway's own links and for modern callers.
    pub session: Option<u64>,
}

/// How to open a link.
#[derive(Clone)]
pub struct Opening {
    /// The era the holder would like; the link speaks the other one where the server knows no better.
    pub era: Era,
    /// The revision to ask for in `initialize`.
    pub revision: Revision,
    /// `clientInfo` to give, raw JSON.
    pub client_info: Bytes,
    /// `capabilities` to declare, raw JSON.
    pub capabilities: Bytes,
    pub holder: Holder,
    pub receiver: Arc<dyn Receiver>,
}

/// One request on its way to a server.
pub struct Call {
    /// From [`Link::next_id`]; it stands in `message` as the id, and as the progress token if there is one.
    pub id: u64,
    /// The whole message.
    pub message: Pieces,
    pub method: &'static str,
    /// The method where no row of the table names it.
    pub other_method: Option<String>,
    /// The value of `Mcp-Name` towards a modern HTTP server.
    pub name: Option<String>,
    /// `Mcp-Param-*` towards a modern HTTP server.
    pub params: Vec<(HeaderName, HeaderValue)>,
}

impl Call {
    pub fn method(&self) -> &str {
        self.other_method.as_deref().unwrap_or(self.method)
    }

    /// Whether the call is a stream that ends only when a peer ends it: no time limit then.
    pub fn is_endless(&self) -> bool {
        self.method == "subscriptions/listen"
    }
}

pub enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
}

impl Link {
    /// A number that no other call on the same process or backend session has.
    pub fn next_id(&self) -> u64 {
        match self {
            Self::Stdio(link) => link.next_id(),
            Self::Http(link) => link.next_id(),
        }
    }

    pub fn profile(&self) -> &Arc<Profile> {
        match self {
            Self::Stdio(link) => link.profile(),
            Self::Http(link) => link.profile(),
        }
    }

    pub fn is_alive(&self) -> bool {
        match self {
            Self::Stdio(link) => link.is_alive(),
            Self::Http(link) => link.is_alive(),
        }
    }

    /// Sends a request and waits for its answer, result or error, whose id is the call's.
    pub async fn call(&self, call: Call) -> Result<Message, Fault> {
        match self {
            Self::Stdio(link) => link.call(call).await,
            Self::Http(link) => link.call(call).await,
        }
    }

    /// Sends a notification.
    pub async fn notify(&self, message: Bytes) -> Result<(), Fault> {
        match self {
            Self::Stdio(link) => link.send(message),
            Self::Http(link) => link.post(message).await,
        }
    }

    /// Sends the answer to a request of the server.
    pub async fn respond(&self, message: Bytes) -> Result<(), Fault> {
        self.notify(message).await
    }

    /// Abandons a call of the link with the reason that the client gave (raw JSON): the server is told at once, [`Link::call`] returns [`Fault::Cancelled`].
    pub fn cancel(&self, id: u64, reason: Option<&[u8]>) {
        match self {
            Self::Stdio(link) => link.cancel(id, reason),
            Self::Http(link) => link.cancel(id, reason),
        }
    }

    /// Ends the link: the process if nobody else holds it, or the backend session (DELETE).
    pub async fn close(&self) {
        match self {
            Self::Stdio(link) => link.close().await,
            Self::Http(link) => link.close().await,
        }
    }
}
