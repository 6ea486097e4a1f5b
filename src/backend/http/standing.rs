//! The stream on which a legacy server says what belongs to no call.
//!
//! A server need not offer one; then there is none, without a word about it. One
//! that breaks is opened again, later each time.

use super::{
    core::{Core, remark},
    events::{End, Events},
    reply,
    verdict::Refusal,
};
use crate::mcp::sse;
use http::{HeaderValue, StatusCode};
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
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
    failures: u32,
}

/// What one attempt showed.
enum Attempt {
    Stream(Box<Events>),
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
                    self.read(*events).await;
                }
            }
            tokio::time::sleep(self.wait()).await;
        }
    }

    async fn open(&mut self, had_one: bool) -> Attempt {
        let core = &self.core;
        let Ok(response) = core.get(self.last_id.as_ref()).await else {
            return Attempt::Failed;
        };
        let status = response.status();
        if status.is_success() && reply::is_events(response.headers()) {
            let events = Events::new(response, core.site.settings.frame);
            return Attempt::Stream(Box::new(events));
        }
        tracing::debug!(server = %core.site.id, status = status.as_u16(), "no standing stream");
        match status {
            StatusCode::NOT_IMPLEMENTED => return Attempt::None,
            StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => return Attempt::Failed,
            _ if status.is_server_error() => return Attempt::Failed,
            _ => {}
        }
        if had_one {
            // The stream was there, so it may be the session that is gone.
            let text = remark(response).await;
            let refusal = Refusal::without_error(status, &text);
            if core.act_on(&refusal).is_some() {
                return Attempt::None;
            }
        }
        // What the server dislikes may also be the place to go on from.
        match self.last_id.take() {
            Some(_) => Attempt::Failed,
            None => Attempt::None,
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
            self.last_id = Some(id);
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

    fn take(&self, event: &sse::Event) {
        if !reply::is_message(event) {
            return;
        }
        let core = &self.core;
        if reply::each(&event.data, |message| core.take(message, None)).is_err() {
            core.site.metrics.dropped.inc();
        }
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
