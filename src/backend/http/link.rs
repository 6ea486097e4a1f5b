//! One backend session, or one stateless standing, with an HTTP server.
//!
//! Answers "Streamable HTTP" of the transports page of revisions 2025-03-26 to
//! 2025-11-25, and the streamable HTTP page of 2026-07-28. Calls run side by side,
//! each in its own request; nothing here waits for another call.

use super::{core::Core, patience::Patience, site::Site, standing};
use crate::{
    backend::{Call, Eras, Fault, Profile, Receiver},
    mcp::{Message, code},
};
use bytes::Bytes;
use http::HeaderValue;
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// How long opening waits for the standing stream, so that the first call's notifications find it open.
const STREAM_HEAD: Duration = Duration::from_millis(300);
const FOR_EVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// A link of one holder. Dropping it closes it.
pub struct HttpLink {
    core: Arc<Core>,
}

/// What a link is made of, once the server has introduced itself.
pub(super) struct Introduced {
    pub profile: Arc<Profile>,
    pub session: Option<HeaderValue>,
    /// The first id that is free for calls.
    pub next: u64,
}

impl HttpLink {
    pub(super) fn new(
        site: Arc<Site>,
        eras: Arc<Eras>,
        introduced: Introduced,
        receiver: Arc<dyn Receiver>,
    ) -> Self {
        let core = Core::new(site, eras, introduced, receiver);
        Self {
            core: Arc::new(core),
        }
    }

    /// Completes a legacy handshake: says `initialized`, hands on what the server said before, opens the standing stream.
    pub(super) async fn begin(&self, early: Vec<Message>) -> Result<(), Fault> {
        let initialized = code::call_message(None, "notifications/initialized", None);
        match self.post(initialized).await {
            // Refused for its form: the server has not understood it, which harms nobody.
            Ok(()) | Err(Fault::NotMcp(_)) => {}
            Err(fault) => return Err(fault),
        }
        for message in early {
            self.core.take(message, None);
        }
        let head = standing::spawn(self.core.clone());
        // Late or never: the stream goes on being opened behind this.
        let _ = timeout(STREAM_HEAD, head).await;
        Ok(())
    }

    /// A number that no other call of this link has.
    pub fn next_id(&self) -> u64 {
        self.core.next_id()
    }

    pub fn profile(&self) -> &Arc<Profile> {
        &self.core.profile
    }

    /// Whether calls may still be made.
    pub fn is_alive(&self) -> bool {
        self.core.is_open()
    }

    /// Sends a request and waits for its answer. Dropping the future abandons the call and tells the server.
    pub async fn call(&self, call: Call) -> Result<Message, Fault> {
        let core = &self.core;
        if !core.is_open() {
            return Err(Fault::SessionLost);
        }
        let settings = &core.site.settings;
        let (step, limit) = match call.method {
            // A subscription stands for as long as somebody wants it.
            "subscriptions/listen" => (FOR_EVER, FOR_EVER),
            _ => (settings.call, settings.call_max.max(settings.call)),
        };
        let given_up = core.running.begin(call.id);
        let mut unanswered = Unanswered {
            core,
            id: call.id,
            reason: None,
        };
        let sleep = pin!(sleep(step));
        let mut patience = Patience::new(sleep, step, limit, given_up);
        let answer = core.exchange(&call, &mut patience).await;
        match &answer {
            Err(Fault::TimedOut(_)) => unanswered.reason = Some(br#""no answer in time""#),
            _ => unanswered.settle(),
        }
        answer
    }

    /// Sends a notification, or an answer to a request of the server. Modern servers take neither over HTTP: nothing is sent then.
    pub async fn post(&self, message: Bytes) -> Result<(), Fault> {
        self.core.post(message).await
    }

    /// Abandons a call: [`HttpLink::call`] returns [`Fault::Cancelled`] and the server is told, with the raw JSON of a reason.
    pub fn cancel(&self, id: u64, reason: Option<&[u8]>) {
        if self.core.running.give_up(id) {
            self.core.tell_cancelled(id, reason);
        }
    }

    /// Ends the standing stream and the backend session (DELETE, best effort). [`Receiver::ended`] is not called for it.
    pub async fn close(&self) {
        if self.core.end() {
            self.core.delete().await;
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        if self.core.end() {
            let core = self.core.clone();
            self.core.spawn(async move { core.delete().await });
        }
    }
}

/// A call without an answer yet: dropped as such, the server is told that nobody waits any more.
struct Unanswered<'a> {
    core: &'a Arc<Core>,
    id: u64,
    reason: Option<&'static [u8]>,
}

impl Unanswered<'_> {
    #[expect(
        clippy::mem_forget,
        reason = "it holds a reference and no more; dropping it would cancel"
    )]
    fn settle(self) {
        self.core.running.end(self.id);
        std::mem::forget(self);
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.core.running.end(self.id) {
            self.core.tell_cancelled(self.id, self.reason);
        }
    }
}
