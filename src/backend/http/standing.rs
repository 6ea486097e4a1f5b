//! The stream on which a legacy server says what belongs to no call.
//!
//! A server need not offer one; then there is none, without a word about it. One
//! that breaks is opened again, later each time.

use super::{
    events::{End, Events},
    link::Core,
    reply,
};
use crate::{backend::Fault, mcp::Message};
use http::StatusCode;
use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Floor and ceiling for what a server wishes as `retry:`.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// A stream that stood this long was a good one, even if it was silent.
const STOOD: Duration = Duration::from_secs(10);

/// Opens the stream in a task of the link. What it returns is ready when the server has answered for the first time.
pub(super) fn spawn(core: Arc<Core>) -> oneshot::Receiver<()> {
    let (answered, head) = oneshot::channel();
    let stop = core.stop.clone();
    let task = core.clone();
    core.spawn(async move {
        let mut standing = Standing {
            core: task,
            answered: Some(answered),
            last_id: None,
            retry: None,
            failures: 0,
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = standing.run() => {}
        }
    });
    head
}

struct Standing {
    core: Arc<Core>,
    answered: Option<oneshot::Sender<()>>,
    last_id: Option<String>,
    retry: Option<Duration>,
    failures: u32,
}

/// What one attempt showed.
enum Attempt {
    Stream(Events),
    Failed,
    /// The server has no such stream.
    None,
}

impl Standing {
    async fn run(&mut self) {
        let mut had_one = false;
        loop {
            let attempt = self.open(had_one).await;
            self.answered.take();
            match attempt {
                Attempt::None => return,
                Attempt::Failed => self.failures += 1,
                Attempt::Stream(events) => {
                    had_one = true;
                    self.read(events).await;
                }
            }
            tokio::time::sleep(self.wait()).await;
        }
    }

    async fn open(&mut self, had_one: bool) -> Attempt {
        let core = &self.core;
        let last = self.last_id.as_deref();
        let Ok(response) = core.site.send(|uri| core.get_request(uri, last)).await else {
            return Attempt::Failed;
        };
        let status = response.status();
        if status.is_success() && reply::is_events(response.headers()) {
            return Attempt::Stream(Events::new(response, core.site.settings.frame));
        }
        tracing::debug!(server = %core.site.id, status = status.as_u16(), "no standing stream");
        match status {
            StatusCode::NOT_IMPLEMENTED => Attempt::None,
            StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => Attempt::Failed,
            _ if status.is_server_error() => Attempt::Failed,
            StatusCode::NOT_FOUND if had_one => {
                // The stream was there: it is the session that is gone.
                core.lose(Fault::SessionLost);
                Attempt::None
            }
            // The place to go on from is what the server may dislike.
            _ if self.last_id.take().is_some() => Attempt::Failed,
            _ => Attempt::None,
        }
    }

    async fn read(&mut self, mut events: Events) {
        let _up = Up::new(self.core.clone());
        let idle = self.core.site.settings.idle_stream;
        let began = Instant::now();
        let mut heard = false;
        let end = loop {
            match events.next_within(idle).await {
                Ok(event) => {
                    heard = true;
                    self.take(&event);
                }
                Err(end) => break end,
            }
        };
        if let Some(id) = events.last_id() {
            self.last_id = Some(id.to_owned());
        }
        self.retry = events.retry().or(self.retry);
        self.failures = match heard || began.elapsed() >= STOOD {
            true => 0,
            false => self.failures + 1,
        };
        tracing::debug!(server = %self.core.site.id, ?end, "standing stream ended");
        if let End::TooLarge(limit) = end {
            tracing::warn!(server = %self.core.site.id, limit, "a message on the standing stream is too large");
        }
    }

    fn take(&self, event: &crate::mcp::sse::Event) {
        if !(event.name.is_empty() || event.name == "message") {
            return;
        }
        match reply::parse(&event.data) {
            Ok(reply::Messages::One(message)) => self.pass(message),
            Ok(reply::Messages::Batch(messages)) => {
                messages.into_iter().for_each(|m| self.pass(m));
            }
            Err(_) => self.core.site.metrics.dropped.inc(),
        }
    }

    fn pass(&self, message: Message) {
        self.core.take(message, None);
    }

    /// As the server wishes, or longer after each failure; spread, so that many links do not come back at once.
    fn wait(&self) -> Duration {
        let wished = self.retry.map(|r| r.clamp(SHORTEST_RETRY, LONGEST_RETRY));
        if self.failures == 0 {
            return wished.unwrap_or_else(|| spread(FIRST_WAIT));
        }
        let doubled = FIRST_WAIT * 2_u32.pow((self.failures - 1).min(5));
        let wait = doubled.min(LONGEST_WAIT);
        spread(wait.max(wished.unwrap_or_default()))
    }
}

/// Up to a quarter longer, by chance.
fn spread(wait: Duration) -> Duration {
    let chance = RandomState::new().hash_one(0_u8) % 256;
    wait + wait.mul_f64(chance as f64 / 1024.0)
}

/// Counts a stream while it stands.
struct Up(Arc<Core>);

impl Up {
    fn new(core: Arc<Core>) -> Self {
        core.site.metrics.streams_up.inc();
        Self(core)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        self.0.site.metrics.streams_up.dec();
    }
}
