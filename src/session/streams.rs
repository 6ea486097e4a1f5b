//! The event streams of one session, and the ids that find them again.

use super::outbox::{Bounds, Gone, Outbox};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// The number of the standing stream, which GET opens.
const STANDING: u64 = 0;

/// Streams of calls kept for resumption at most; beyond it the one that ended first goes.
const MAX_KEPT: usize = 64;

/// The id of an event: stream and place, unique in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    pub stream: u64,
    pub sequence: u64,
}

impl EventId {
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, sequence) = text.split_once('-')?;
        Some(Self {
            stream: stream.parse().ok()?,
            sequence: sequence.parse::<u64>().ok()?.checked_sub(1)?,
        })
    }

    /// The id that primes a stream: before its first event.
    pub fn start(stream: u64) -> String {
        format!("{stream}-0")
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.sequence + 1)
    }
}

pub struct Streams {
    bounds: Bounds,
    keep: Duration,
    /// What is for the client but belongs to no call.
    pub standing: Arc<Outbox>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    kept: HashMap<u64, Kept>,
}

struct Kept {
    outbox: Arc<Outbox>,
    ended: Option<Instant>,
}

impl Streams {
    /// `keep` is how long a stream that ended can be resumed.
    pub fn new(bounds: Bounds, keep: Duration) -> Self {
        Self {
            bounds,
            keep,
            standing: Arc::new(Outbox::standing(STANDING, bounds)),
            inner: Mutex::default(),
        }
    }

    /// An outbox for one call. It can be resumed once [`Streams::keep`] was called.
    pub fn open(&self) -> Arc<Outbox> {
        let mut inner = self.lock();
        inner.next += 1;
        Arc::new(Outbox::new(inner.next, true, self.bounds))
    }

    /// Keeps the stream for clients that come back to it.
    pub fn keep(&self, outbox: &Arc<Outbox>) {
        let mut inner = self.lock();
        inner.sweep(self.keep, self.bounds);
        let kept = Kept {
            outbox: outbox.clone(),
            ended: None,
        };
        inner.kept.insert(outbox.number, kept);
    }

    /// A reader that goes on after the event `id`.
    pub fn resume(&self, id: EventId) -> Result<(Arc<Outbox>, u64), Gone> {
        let outbox = match id.stream {
            STANDING => self.standing.clone(),
            number => self.lock().kept.get(&number).ok_or(Gone)?.outbox.clone(),
        };
        let reader = outbox.attach_after(id.sequence)?;
        Ok((outbox, reader))
    }

    /// [`Streams::resume`] from the very start, which is what the id of a primed stream asks for.
    pub fn resume_text(&self, text: &str) -> Result<(Arc<Outbox>, u64), Gone> {
        if let Some(id) = EventId::parse(text) {
            return self.resume(id);
        }
        let stream = text.strip_suffix("-0").and_then(|s| s.parse().ok());
        let outbox = match stream.ok_or(Gone)? {
            STANDING => self.standing.clone(),
            number => self.lock().kept.get(&number).ok_or(Gone)?.outbox.clone(),
        };
        let reader = outbox.attach_from_start()?;
        Ok((outbox, reader))
    }

    /// Frees what ended longer ago than it is kept.
    pub fn sweep(&self) {
        self.lock().sweep(self.keep, self.bounds);
    }

    /// Bytes kept now, of all streams.
    pub fn kept(&self) -> usize {
        let calls: usize = self.lock().kept.values().map(|k| k.outbox.kept()).sum();
        calls + self.standing.kept()
    }

    /// Whether a response reads one of the streams now.
    pub fn has_reader(&self) -> bool {
        self.standing.has_reader() || self.lock().kept.values().any(|k| k.outbox.has_reader())
    }

    /// Ends the standing stream. Those of calls end with the answers to their calls.
    pub fn finish(&self) {
        self.standing.finish();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder of this lock panics")
    }
}

impl Inner {
    fn sweep(&mut self, keep: Duration, bounds: Bounds) {
        let now = Instant::now();
        for one in self.kept.values_mut() {
            if one.ended.is_none() && one.outbox.is_finished() {
                one.ended = Some(now);
            }
        }
        self.kept
            .retain(|_, k| k.ended.is_none_or(|at| now.duration_since(at) < keep));
        self.make_room(bounds);
        if self.kept.len() >= MAX_KEPT {
            let ended = |(number, k): (&u64, &Kept)| k.ended.map(|at| (at, *number));
            let oldest = self.kept.iter().filter_map(ended).min();
            if let Some((_, number)) = oldest {
                self.kept.remove(&number);
            }
        }
    }

    /// Lets go of streams that were read to their end, oldest first, while all together hold more than the
    /// session may keep. The newest stays: what was sent last is what may not have arrived.
    fn make_room(&mut self, bounds: Bounds) {
        let size = |k: &Kept| (k.outbox.events(), k.outbox.kept());
        let sizes = self.kept.values().map(size);
        let (mut events, mut bytes) =
            sizes.fold((0, 0), |(e, b), (events, bytes)| (e + events, b + bytes));
        if events <= bounds.events && bytes <= bounds.bytes {
            return;
        }
        let spent = self.kept.iter().filter(|(_, k)| k.outbox.is_spent());
        let mut spent: Vec<u64> = spent.map(|(number, _)| *number).collect();
        spent.sort_unstable();
        spent.pop();
        for number in spent {
            let Some(gone) = self.kept.remove(&number) else {
                continue;
            };
            let (fewer, smaller) = size(&gone);
            events -= fewer;
            bytes -= smaller;
            if events <= bounds.events && bytes <= bounds.bytes {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Sort;

    fn streams() -> Streams {
        let bounds = Bounds {
            events: 8,
            bytes: 1000,
        };
        Streams::new(bounds, Duration::from_secs(60))
    }

    #[test]
    fn an_event_id_finds_its_own_stream_and_no_other() {
        let streams = streams();
        let (one, two) = (streams.open(), streams.open());
        streams.keep(&one);
        streams.keep(&two);
        one.push(Sort::Answer, "1".into());
        two.push(Sort::Answer, "2".into());
        let (found, _) = streams.resume_text(&EventId::start(two.number)).unwrap();
        assert_eq!(found.number, two.number);
        assert!(streams.resume_text("99-1").is_err());
        assert!(streams.resume_text("nonsense").is_err());
    }

    #[test]
    fn ids_read_back() {
        let id = EventId {
            stream: 3,
            sequence: 0,
        };
        assert_eq!(id.to_string(), "3-1");
        assert_eq!(EventId::parse("3-1"), Some(id));
        assert_eq!(EventId::parse("3-0"), None);
    }
}
