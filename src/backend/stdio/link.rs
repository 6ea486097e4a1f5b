//! A link to a server over a process of its own or a shared one.

use super::process::{Process, is_standing};
use crate::{
    backend::{Call, Fault, Profile, Receiver},
    mcp::{Era, Message, code},
};
use bytes::Bytes;
use std::sync::Arc;

/// Why a private process ends with its link.
const CLOSED: &str = "its link was closed";

/// One holder's use of a process. Dropped, it is closed.
pub struct StdioLink {
    process: Arc<Process>,
    profile: Arc<Profile>,
    number: u64,
}

impl StdioLink {
    /// Links to a process that is in service; `None` if it is over by now.
    pub(super) fn attach(process: &Arc<Process>, receiver: Arc<dyn Receiver>) -> Option<Self> {
        let profile = process.profile()?.clone();
        let (number, first) = process.links.attach(receiver)?;
        // Not before there is somebody to take what a server asks right after it.
        if first && profile.era() == Era::Legacy {
            let initialized = code::call_message(None, "notifications/initialized", None);
            process.send(initialized).ok()?;
        }
        Some(Self {
            process: process.clone(),
            profile,
            number,
        })
    }

    pub fn next_id(&self) -> u64 {
        self.process.calls.next_id()
    }

    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    pub fn is_alive(&self) -> bool {
        !self.process.is_over()
    }

    /// The server's process id, for logs.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// Sends a request and waits for its answer within the limits for calls. Dropped, the server is told that nobody waits any more.
    pub async fn call(&self, call: Call) -> Result<Message, Fault> {
        let (link, id) = (self.number, call.id);
        if is_standing(call.method) {
            return self.process.ask(link, id, call.message, false).await;
        }
        self.process.call(link, id, call.message).await
    }

    /// Sends a notification or a response. Never waits.
    pub fn send(&self, message: Bytes) -> Result<(), Fault> {
        if self.process.is_over() {
            return Err(Fault::unreachable("the process is over"));
        }
        self.process.send(message)
    }

    /// Abandons a call of this link; any other id is ignored.
    pub fn cancel(&self, id: u64, reason: Option<&[u8]>) {
        if self.process.calls.cancel(id, self.number) {
            self.process.send_cancelled(id, reason);
        }
    }

    /// Gives the process up. A private one ends; that takes place in the background.
    pub async fn close(&self) {
        self.leave();
    }

    fn leave(&self) {
        self.process.links.detach(self.number);
        if self.process.links.is_private() {
            self.process.stop(Fault::Stopped(CLOSED));
        }
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.leave();
    }
}
