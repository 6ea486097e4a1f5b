//! What is on its way to a client on one event stream, and what was sent lately.
//!
//! An outbox is written by the router and read by the body of an HTTP response. On
//! legacy streams it keeps a bounded tail of what was sent, so that a client whose
//! connection broke can resume with `Last-Event-ID` (2025-11-25, transports,
//! "Resumability and Redelivery"). Each message goes to one reader only.

use crate::mcp::ListKind;
use bytes::Bytes;
use std::{
    collections::VecDeque,
    sync::Mutex,
    task::{Context, Poll, Waker},
};
use tokio::sync::Notify;

/// How much of a stream is kept, for readers that come late or come back.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub events: usize,
    pub bytes: usize,
}

/// What may wait in any case where a reader is there or about to be, however little is kept of what was
/// sent: it must not miss what comes in one burst.
const BURST: Bounds = Bounds {
    events: 4096,
    bytes: 4 << 20,
};
/// What may wait in any case for a client that has not opened its standing stream, if it ever does.
const ABSENT: Bounds = Bounds {
    events: 256,
    bytes: 256 << 10,
};
/// What a message is to the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// May be dropped, oldest first, when too many wait.
    Notice,
    /// Carries no content: one that waits is enough.
    Changed(ListKind),
    /// A request to the client.
    Ask,
    /// The answer that ends the stream; never dropped.
    Answer,
}

struct Entry {
    sequence: u64,
    sort: Sort,
    message: Bytes,
}

/// A message with its place in the stream.
pub struct Sent {
    pub sequence: u64,
    pub message: Bytes,
}

#[derive(Default)]
struct Inner {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Messages that no reader has taken yet, and their bytes.
    waiting: usize,
    waiting_bytes: usize,
    next: u64,
    /// First sequence that no reader has taken yet.
    untaken: u64,
    /// Sequences below this one are gone.
    floor: u64,
    finished: bool,
    readers: Vec<Attached>,
    next_reader: u64,
}

struct Attached {
    reader: u64,
    cursor: u64,
    /// Still being given again what was sent before.
    resumed: bool,
    waker: Option<Waker>,
}

pub struct Outbox {
    /// The stream's number in its session.
    pub number: u64,
    keep_sent: bool,
    /// Whether it may be that nobody ever reads it.
    standing: bool,
    bounds: Bounds,
    inner: Mutex<Inner>,
    pushed: Notify,
}

/// The asked place in the stream is unknown or no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl Outbox {
    /// `keep_sent` keeps what was sent, within the bounds, for [`Outbox::attach_after`].
    pub fn new(number: u64, keep_sent: bool, bounds: Bounds) -> Self {
        Self {
            number,
            keep_sent,
            standing: false,
            bounds,
            inner: Mutex::default(),
            pushed: Notify::new(),
        }
    }

    /// The outbox for what belongs to no call.
    pub fn standing(number: u64, bounds: Bounds) -> Self {
        Self {
            standing: true,
            ..Self::new(number, true, bounds)
        }
    }

    /// Adds a message; `false` if it was not needed or the stream is over.
    pub fn push(&self, sort: Sort, message: Bytes) -> bool {
        let mut inner = self.lock();
        let merged = matches!(sort, Sort::Changed(_)) && inner.waits(sort);
        if inner.finished || merged {
            return false;
        }
        let sequence = inner.next;
        inner.next += 1;
        inner.bytes += message.len();
        inner.waiting += 1;
        inner.waiting_bytes += message.len();
        inner.entries.push_back(Entry {
            sequence,
            sort,
            message,
        });
        inner.finished = sort == Sort::Answer;
        let least = match self.standing && inner.readers.is_empty() {
            true => ABSENT,
            false => BURST,
        };
        inner.trim(self.bounds, least);
        inner.wake();
        drop(inner);
        self.pushed.notify_waiters();
        true
    }

    /// Ends the stream without an answer.
    pub fn finish(&self) {
        let mut inner = self.lock();
        inner.finished = true;
        inner.wake();
    }

    /// Waits until there is something to read.
    pub async fn filled(&self) {
        loop {
            let pushed = self.pushed.notified();
            if self.has_untaken() {
                return;
            }
            pushed.await;
        }
    }

    /// Whether a message of the sort is there that no reader has taken.
    pub fn waits(&self, sort: Sort) -> bool {
        self.lock().waits(sort)
    }

    pub fn has_untaken(&self) -> bool {
        let inner = self.lock();
        inner.untaken < inner.next
    }

    pub fn is_finished(&self) -> bool {
        self.lock().finished
    }

    /// Whether a response reads it now.
    pub fn has_reader(&self) -> bool {
        !self.lock().readers.is_empty()
    }

    /// Whether it ended and a reader took all of it.
    pub fn is_spent(&self) -> bool {
        let inner = self.lock();
        inner.finished && inner.untaken == inner.next && inner.readers.is_empty()
    }

    /// Messages kept now.
    pub fn events(&self) -> usize {
        self.lock().entries.len()
    }

    /// Bytes kept now.
    pub fn kept(&self) -> usize {
        self.lock().bytes
    }

    /// A new reader, which takes over from what no other reader has taken.
    pub fn attach(&self) -> u64 {
        let mut inner = self.lock();
        let cursor = inner.untaken;
        inner.attach(cursor, false)
    }

    /// A new reader that goes on after `sequence`.
    pub fn attach_after(&self, sequence: u64) -> Result<u64, Gone> {
        let mut inner = self.lock();
        let cursor = sequence.checked_add(1).ok_or(Gone)?;
        if cursor < inner.floor || cursor > inner.next {
            return Err(Gone);
        }
        Ok(inner.attach(cursor, true))
    }

    /// A new reader that gets all that was ever sent.
    pub fn attach_from_start(&self) -> Result<u64, Gone> {
        let mut inner = self.lock();
        if inner.floor > 0 {
            return Err(Gone);
        }
        Ok(inner.attach(0, true))
    }

    pub fn detach(&self, reader: u64) {
        let mut inner = self.lock();
        inner.readers.retain(|r| r.reader != reader);
        inner.wake();
    }

    /// The next message for `reader`, or the end of the stream. Only the newest reader gets messages.
    pub fn poll_next(&self, reader: u64, cx: &mut Context<'_>) -> Poll<Option<Sent>> {
        let mut inner = self.lock();
        let Some(place) = inner.readers.iter().position(|r| r.reader == reader) else {
            return Poll::Ready(None);
        };
        let newest = place + 1 == inner.readers.len();
        let cursor = inner.readers[place].cursor;
        let cursor = match inner.readers[place].resumed {
            true => cursor,
            // What went to another reader meanwhile is not sent twice.
            false => cursor.max(inner.untaken),
        };
        if newest && let Some(sent) = inner.take(cursor, self.keep_sent) {
            let caught_up = sent.sequence + 1 >= inner.untaken;
            let attached = &mut inner.readers[place];
            attached.cursor = sent.sequence + 1;
            attached.resumed &= !caught_up;
            return Poll::Ready(Some(sent));
        }
        if inner.finished {
            return Poll::Ready(None);
        }
        inner.readers[place].waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder of this lock panics")
    }
}

impl Inner {
    fn waits(&self, sort: Sort) -> bool {
        let waits = |e: &Entry| e.sequence >= self.untaken && e.sort == sort;
        self.entries.iter().any(waits)
    }

    fn attach(&mut self, cursor: u64, resumed: bool) -> u64 {
        let reader = self.next_reader;
        self.next_reader += 1;
        self.readers.push(Attached {
            reader,
            cursor,
            resumed,
            waker: None,
        });
        reader
    }

    /// The first kept message at or after `cursor`.
    fn take(&mut self, cursor: u64, keep: bool) -> Option<Sent> {
        let place = self.entries.partition_point(|e| e.sequence < cursor);
        let entry = self.entries.get(place)?;
        let sent = Sent {
            sequence: entry.sequence,
            message: entry.message.clone(),
        };
        let waited = self.entries.range(..=place).rev();
        for entry in waited.take_while(|e| e.sequence >= self.untaken) {
            self.waiting -= 1;
            self.waiting_bytes -= entry.message.len();
        }
        self.untaken = self.untaken.max(sent.sequence + 1);
        if !keep {
            self.bytes -= sent.message.len();
            self.entries.remove(place);
            self.floor = self.floor.max(sent.sequence + 1);
        }
        Some(sent)
    }

    /// Drops what is over the bounds: of what was sent, the oldest; of what waits, the oldest notices.
    fn trim(&mut self, bounds: Bounds, least: Bounds) {
        while self.entries.len() > bounds.events || self.bytes > bounds.bytes {
            let untaken = self.untaken;
            let sent = |e: &Entry| e.sequence < untaken && e.sort != Sort::Answer;
            if !self.entries.front().is_some_and(sent) {
                break;
            }
            self.remove(0);
        }
        let most = Bounds {
            events: bounds.events.max(least.events),
            bytes: bounds.bytes.max(least.bytes),
        };
        while self.waiting > most.events || self.waiting_bytes > most.bytes {
            let (newest, untaken) = (self.next - 1, self.untaken);
            let oldest = |sort| {
                move |e: &Entry| e.sort == sort && e.sequence >= untaken && e.sequence < newest
            };
            let notice = self.entries.iter().position(oldest(Sort::Notice));
            // Questions are bounded in number where they are asked; here it is those that were taken back.
            let ask = || {
                self.entries
                    .iter()
                    .position(oldest(Sort::Ask))
                    .filter(|_| self.waiting > most.events)
            };
            let Some(place) = notice.or_else(ask) else {
                return;
            };
            self.remove(place);
        }
    }

    fn remove(&mut self, place: usize) {
        let Some(entry) = self.entries.remove(place) else {
            return;
        };
        self.bytes -= entry.message.len();
        if entry.sequence < self.untaken {
            self.floor = self.floor.max(entry.sequence + 1);
        } else {
            self.waiting -= 1;
            self.waiting_bytes -= entry.message.len();
        }
    }

    fn wake(&mut self) {
        for reader in &mut self.readers {
            if let Some(waker) = reader.waker.take() {
                waker.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    const BOUNDS: Bounds = Bounds {
        events: 4,
        bytes: 1000,
    };

    fn next(outbox: &Outbox, reader: u64) -> Poll<Option<(u64, Bytes)>> {
        let mut cx = Context::from_waker(Waker::noop());
        let sent = outbox.poll_next(reader, &mut cx);
        sent.map(|s| s.map(|s| (s.sequence, s.message)))
    }

    fn got(sequence: u64, text: &'static str) -> Poll<Option<(u64, Bytes)>> {
        Poll::Ready(Some((sequence, Bytes::from_static(text.as_bytes()))))
    }

    fn notice(outbox: &Outbox, text: &'static str) {
        outbox.push(Sort::Notice, Bytes::from_static(text.as_bytes()));
    }

    #[test]
    fn what_comes_before_the_reader_is_kept_for_it() {
        let outbox = Outbox::new(1, true, BOUNDS);
        notice(&outbox, "a");
        let reader = outbox.attach();
        assert_eq!(next(&outbox, reader), got(0, "a"));
        assert_eq!(next(&outbox, reader), Poll::Pending);
        outbox.push(Sort::Answer, "z".into());
        assert_eq!(next(&outbox, reader), got(1, "z"));
        assert_eq!(next(&outbox, reader), Poll::Ready(None));
    }

    #[test]
    fn a_reader_that_comes_back_goes_on_where_it_was() {
        let outbox = Outbox::new(1, true, BOUNDS);
        let first = outbox.attach();
        notice(&outbox, "a");
        notice(&outbox, "b");
        assert_eq!(next(&outbox, first), got(0, "a"));
        assert_eq!(next(&outbox, first), got(1, "b"));
        outbox.push(Sort::Answer, "z".into());
        let again = outbox.attach_after(0).unwrap();
        assert_eq!(next(&outbox, again), got(1, "b"));
        assert_eq!(next(&outbox, again), got(2, "z"));
        assert_eq!(next(&outbox, again), Poll::Ready(None));
        assert_eq!(outbox.attach_after(7), Err(Gone));
    }

    #[test]
    fn what_is_no_longer_kept_is_not_replayed_in_part() {
        let outbox = Outbox::new(1, true, BOUNDS);
        let reader = outbox.attach();
        for _ in 0..8 {
            notice(&outbox, "x");
            let _ = next(&outbox, reader);
        }
        assert_eq!(outbox.attach_after(0), Err(Gone));
        assert!(outbox.attach_after(6).is_ok());
    }

    #[test]
    fn the_newest_reader_is_served_and_an_older_one_takes_over_again() {
        let outbox = Outbox::new(1, true, BOUNDS);
        let old = outbox.attach();
        let new = outbox.attach();
        notice(&outbox, "a");
        assert_eq!(next(&outbox, old), Poll::Pending);
        assert_eq!(next(&outbox, new), got(0, "a"));
        outbox.detach(new);
        notice(&outbox, "b");
        // `a` went to the other stream, and to one stream only.
        assert_eq!(next(&outbox, old), got(1, "b"));
    }

    #[test]
    fn a_change_that_waits_is_announced_once() {
        let outbox = Outbox::new(1, true, BOUNDS);
        let changed = Sort::Changed(ListKind::Tools);
        assert!(outbox.push(changed, "c".into()));
        assert!(!outbox.push(changed, "c".into()));
        let reader = outbox.attach();
        assert_eq!(next(&outbox, reader), got(0, "c"));
        assert!(outbox.push(changed, "c".into()));
    }

    #[test]
    fn bounds_cost_notices_but_no_answer() {
        let outbox = Outbox::new(1, true, BOUNDS);
        outbox.push(Sort::Ask, "ask".into());
        for _ in 0..20 {
            notice(&outbox, "n");
        }
        outbox.push(Sort::Answer, "z".into());
        let reader = outbox.attach();
        assert_eq!(next(&outbox, reader), got(0, "ask"));
        let mut last = Poll::Pending;
        while let Poll::Ready(Some(sent)) = next(&outbox, reader) {
            last = Poll::Ready(Some(sent));
        }
        assert_eq!(last, got(21, "z"));
    }

    #[test]
    fn a_burst_waits_whole_and_what_nobody_ever_fetches_is_bounded() {
        let outbox = Outbox::new(
            0,
            true,
            Bounds {
                events: 0,
                bytes: 0,
            },
        );
        for n in 0..100u32 {
            outbox.push(Sort::Notice, n.to_string().into());
        }
        assert_eq!(outbox.events(), 100);
        for _ in 0..5000 {
            outbox.push(Sort::Ask, Bytes::from_static(b"?"));
        }
        assert!(outbox.events() <= BURST.events, "{}", outbox.events());
        outbox.push(Sort::Answer, Bytes::from_static(b"answer"));
        let reader = outbox.attach();
        let mut last = None;
        while let Poll::Ready(Some((_, message))) = next(&outbox, reader) {
            last = Some(message);
        }
        assert_eq!(last.as_deref(), Some(&b"answer"[..]));
    }
}
