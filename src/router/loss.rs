//! What becomes of a client's business with a server when the link to it is lost.

use super::{inlet::Inlet, standing::ClientSession};
use crate::{backend::Fault, mcp::code::call_message, session::Sort};
use std::sync::Arc;

impl Inlet {
    /// The link is gone: what it asked the client is taken back.
    pub(super) fn over(&self, fault: &Fault) {
        if let Some(slot) = self.slot.upgrade() {
            tracing::debug!(server = %slot.server.id, %fault, "a link ended");
        }
        let Some(session) = self.session() else {
            return;
        };
        self.restore(&session, fault);
        for id in session.state.asks.take_of(self) {
            let params = format!("{{\"requestId\":{id},\"reason\":\"the server ended\"}}");
            let note = call_message(None, "notifications/cancelled", Some(params.as_bytes()));
            session.streams.standing.push(Sort::Ask, note);
        }
    }

    /// A link over which a session followed resources is opened again at once, since nobody may call for a long time.
    fn restore(&self, session: &Arc<ClientSession>, fault: &Fault) {
        let lost = matches!(fault, Fault::Crashed { .. } | Fault::SessionLost);
        let (Some(router), Some(slot)) = (self.router.upgrade(), self.slot.upgrade()) else {
            return;
        };
        if lost && !session.state.subscriptions(slot.place).is_empty() {
            let ended = session.ended.clone();
            router.spawn(async move {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = slot.reopen() => {}
                }
            });
        }
    }
}
