//! How long a call may take, and whether its caller still wants it.

use crate::backend::Fault;
use std::{pin::Pin, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep},
};

/// The limits of one call while it runs. Every wait of the call goes through [`Patience::hold`].
pub(super) struct Patience<'a> {
    sleep: Pin<&'a mut Sleep>,
    /// Until the answer or the next progress.
    step: Duration,
    limit: Instant,
    given_up: oneshot::Receiver<()>,
}

impl<'a> Patience<'a> {
    /// `sleep` must run for `step`; `limit` is the end whatever progress comes.
    pub fn new(
        sleep: Pin<&'a mut Sleep>,
        step: Duration,
        limit: Duration,
        given_up: oneshot::Receiver<()>,
    ) -> Self {
        Self {
            sleep,
            step,
            limit: Instant::now() + limit,
            given_up,
        }
    }

    /// Waits for `work` within the limits.
    pub async fn hold<F: Future>(&mut self, work: F) -> Result<F::Output, Fault> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            _ = &mut self.given_up => Err(Fault::Cancelled),
            () = self.sleep.as_mut() => Err(Fault::TimedOut(self.step)),
        }
    }

    /// The server reported progress: the wait starts anew, up to the limit.
    pub fn extend(&mut self) {
        let until = (Instant::now() + self.step).min(self.limit);
        self.sleep.as_mut().reset(until);
    }
}
