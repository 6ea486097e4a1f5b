//! The two kinds of clients, as a call sees them.

use super::standing::ClientSession;
use crate::{
    auth::Principal,
    mcp::{Era, Revision},
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

/// Whose call it is.
#[derive(Clone)]
pub enum Client {
    Legacy(Arc<ClientSession>),
    Modern(Arc<ModernCaller>),
}

/// What one modern request says of its client.
pub struct ModernCaller {
    pub principal: Principal,
    pub endpoint: usize,
    pub revision: Revision,
    /// Raw JSON.
    pub client_info: Bytes,
    /// Raw JSON.
    pub capabilities: Bytes,
    /// Rank of the level it asked for; without one it gets no log messages.
    pub log_level: Option<usize>,
    /// `Mcp-Param-*` headers as they came.
    pub params: Vec<(HeaderName, HeaderValue)>,
}

impl Client {
    pub fn era(&self) -> Era {
        match self {
            Self::Legacy(_) => Era::Legacy,
            Self::Modern(_) => Era::Modern,
        }
    }

    pub fn endpoint(&self) -> usize {
        match self {
            Self::Legacy(session) => session.caller.endpoint,
            Self::Modern(caller) => caller.endpoint,
        }
    }

    pub fn revision(&self) -> Revision {
        match self {
            Self::Legacy(session) => session.caller.revision,
            Self::Modern(caller) => caller.revision,
        }
    }
}
