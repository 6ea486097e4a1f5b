//! What one server says of itself and how much it offers, for an operator who asks.

use super::{core::Router, pages::fetch};
use crate::{
    backend::{Fault, Profile, Server},
    mcp::{Era, ListKind},
};
use std::sync::Arc;

/// A server at one contact, before anything is hidden or renamed.
pub struct Inspected {
    pub profile: Arc<Profile>,
    /// How many things each of its lists has, in the order of [`ListKind::ALL`].
    pub counts: [usize; 4],
}

impl Router {
    /// Opens the server without client capabilities, reads its lists and lets go of it.
    pub async fn inspect(self: &Arc<Self>, server: &Arc<Server>) -> Result<Inspected, Fault> {
        let slot = self.watcher(server, Era::Modern);
        let open = slot.open().await?;
        let mut counts = [0; 4];
        let mut failed = None;
        for kind in ListKind::ALL {
            match fetch(&open, kind).await {
                Ok(fetched) => counts[kind.index()] = fetched.items.len(),
                Err(fault) => {
                    failed = Some(fault);
                    break;
                }
            }
        }
        let profile = open.link.profile().clone();
        slot.close().await;
        match failed {
            None => Ok(Inspected { profile, counts }),
            Some(fault) => Err(fault),
        }
    }
}
