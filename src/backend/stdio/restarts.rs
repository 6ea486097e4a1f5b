//! When a server that does not come up, or does not stay up, is started again.
//!
//! A decision only; the clock is the caller's. After a failed start the next one has
//! to wait, longer each time; after too many in a row starts are refused meanwhile,
//! and one at a time is tried.

use std::time::Duration;
use tokio::time::Instant;

/// Failures do not count any more after so many of the longest waits.
const FORGOTTEN: u32 = 20;

#[derive(Debug)]
pub(super) struct Restarts {
    /// Failed starts in a row after which starts are refused.
    allowed: u32,
    first: Duration,
    longest: Duration,
    failures: u32,
    /// No start before this.
    next: Option<Instant>,
    /// A start is being tried after a failure; others wait for what becomes of it.
    trying: bool,
}

/// Whether a process may be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// Not before this.
    Until(Instant),
    /// A start is being tried; ask again when it is decided.
    Trial,
    /// Too many starts failed; the next is tried after this.
    Refused(Duration),
}

impl Restarts {
    pub(super) fn new(allowed: u32, backoff: (Duration, Duration)) -> Self {
        Self {
            allowed,
            first: backoff.0,
            longest: backoff.1.max(backoff.0),
            failures: 0,
            next: None,
            trying: false,
        }
    }

    /// Asks for a start. After [`Gate::Open`] its outcome must be told.
    pub(super) fn ask(&mut self, now: Instant) -> Gate {
        let long = self.longest.saturating_mul(FORGOTTEN);
        if !self.trying && self.next.is_some_and(|next| now > next + long) {
            self.proved();
        }
        if self.failures == 0 {
            return Gate::Open;
        }
        let looping = self.failures > self.allowed;
        let wait = self.next.map(|next| next.saturating_duration_since(now));
        match (looping, self.trying, wait) {
            (true, true, wait) => Gate::Refused(wait.unwrap_or_default()),
            (false, true, _) => Gate::Trial,
            (true, false, Some(wait)) if !wait.is_zero() => Gate::Refused(wait),
            (false, false, Some(wait)) if !wait.is_zero() => Gate::Until(now + wait),
            _ => {
                self.trying = true;
                Gate::Open
            }
        }
    }

    /// A start came to nothing, or what came up ended before it was of use. `chance` is in 0..=1.
    pub(super) fn failed(&mut self, now: Instant, chance: f64) {
        self.trying = false;
        self.failures = self.failures.saturating_add(1);
        let doubled = self.first.saturating_mul(1 << (self.failures - 1).min(20));
        // Not all at the same moment: between half of it and all of it.
        let wait = doubled.min(self.longest).mul_f64(0.5 + chance / 2.0);
        self.next = Some(now + wait);
    }

    /// A start was given up before anything could be told.
    pub(super) fn undecided(&mut self) {
        self.trying = false;
    }

    /// A process came up; whether it is of use is not known yet.
    pub(super) fn came_up(&mut self) {
        self.trying = false;
    }

    /// A process was of use: what failed before does not count any more.
    pub(super) fn proved(&mut self) {
        self.failures = 0;
        self.next = None;
        self.trying = false;
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// How long until the next start may be tried, if starts are refused now.
    pub(super) fn refused_for(&self, now: Instant) -> Option<Duration> {
        let wait = self.next?.saturating_duration_since(now);
        (self.failures > self.allowed && !wait.is_zero()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn restarts() -> Restarts {
        Restarts::new(2, (SECOND, 4 * SECOND))
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_and_then_starts_are_refused() {
        let (mut restarts, now) = (restarts(), Instant::now());
        assert_eq!(restarts.ask(now), Gate::Open);
        restarts.failed(now, 1.0);
        assert_eq!(restarts.ask(now), Gate::Until(now + SECOND));
        let now = now + SECOND;
        assert_eq!(restarts.ask(now), Gate::Open);
        assert_eq!(restarts.ask(now), Gate::Trial);
        restarts.failed(now, 1.0);
        assert_eq!(restarts.ask(now), Gate::Until(now + 2 * SECOND));
        restarts.failed(now, 1.0);
        assert_eq!(restarts.ask(now), Gate::Refused(4 * SECOND));
        let now = now + 4 * SECOND;
        assert_eq!(restarts.ask(now), Gate::Open, "one trial");
        assert!(
            matches!(restarts.ask(now), Gate::Refused(_)),
            "and only one"
        );
        restarts.failed(now, 0.0);
        assert_eq!(
            restarts.refused_for(now),
            Some(2 * SECOND),
            "the longest, halved"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_useful_process_clears_the_record() {
        let (mut restarts, now) = (restarts(), Instant::now());
        for _ in 0..9 {
            restarts.failed(now, 0.5);
        }
        let later = now + 100 * SECOND;
        assert_eq!(restarts.ask(later), Gate::Open, "forgotten");
        restarts.failed(now, 0.5);
        restarts.proved();
        assert_eq!(restarts.ask(now), Gate::Open);
        assert_eq!(restarts.ask(now), Gate::Open);
    }
}
