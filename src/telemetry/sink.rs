//! The way out for log lines: who writes one never waits for who reads it.
//!
//! A thread of its own writes to standard error. If its reader stalls, lines wait up
//! to a bound and are then dropped and counted; nothing else of the program notices.

use prometheus::IntCounter;
use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

/// How much may wait to be written: some seconds of a busy log, and never more than a few megabytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub lines: usize,
    pub bytes: usize,
}

/// The bounds of the log on standard error.
pub(super) const BOUNDS: Bounds = Bounds {
    lines: 8192,
    bytes: 4 * 1024 * 1024,
};

/// Wait before a descriptor that is full and does not block is tried again.
const AGAIN: Duration = Duration::from_millis(10);

/// Takes lines in and hands them to a thread that writes them. Cheap to clone.
#[derive(Clone)]
pub(super) struct Sink(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    bounds: Bounds,
    dropped: IntCounter,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// The thread has lines in hand that are not written yet.
    writing: bool,
}

impl Sink {
    /// Starts the thread. It lives as long as the process.
    pub fn spawn(
        out: impl Write + Send + 'static,
        bounds: Bounds,
        dropped: IntCounter,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            bounds,
            dropped,
        });
        let writer = shared.clone();
        std::thread::Builder::new()
            .name("log".into())
            .stack_size(128 * 1024)
            .spawn(move || writer.run(out))?;
        Ok(Self(shared))
    }

    /// Takes a line in, or drops it if too much waits.
    fn put(&self, line: &[u8]) {
        let shared = &self.0;
        let mut queue = shared.lock();
        let full = queue.lines.len() >= shared.bounds.lines
            || queue.bytes + line.len() > shared.bounds.bytes;
        if full {
            drop(queue);
            shared.dropped.inc();
            return;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line.into());
        drop(queue);
        shared.changed.notify_all();
    }

    /// Waits until everything is written, at most `limit`.
    pub fn flush(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let mut queue = self.0.lock();
        while queue.writing || !queue.lines.is_empty() {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return;
            };
            let waited = self.0.changed.wait_timeout(queue, left);
            queue = waited.expect(LOCK).0;
        }
    }
}

impl Write for Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect(LOCK)
    }

    fn run(&self, mut out: impl Write) {
        loop {
            let lines = self.take();
            for line in &lines {
                // Nobody is left to tell that the log cannot be written.
                if write_line(&mut out, line).is_err() {
                    self.dropped.inc();
                }
            }
            self.lock().writing = false;
            self.changed.notify_all();
        }
    }

    fn take(&self) -> VecDeque<Box<[u8]>> {
        let mut queue = self.lock();
        while queue.lines.is_empty() {
            queue = self.changed.wait(queue).expect(LOCK);
        }
        queue.writing = true;
        queue.bytes = 0;
        std::mem::take(&mut queue.lines)
    }
}

/// Like `write_all`, but patient with a descriptor that somebody made non-blocking.
#[expect(clippy::disallowed_methods, reason = "runs on the log's own thread")]
fn write_line(out: &mut impl Write, mut line: &[u8]) -> io::Result<()> {
    while !line.is_empty() {
        match out.write(line) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => line = &line[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(AGAIN),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

const LOCK: &str = "no holder of this lock panics";

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// An output whose reader can stall.
    struct Stalling {
        entered: Sender<()>,
        go: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Stalling {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.entered.send(());
            let _ = self.go.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stalls_costs_lines_and_nothing_else() {
        let (entered, inside) = channel();
        let (release, go) = channel();
        let written = Arc::default();
        let out = Stalling {
            entered,
            go,
            written: Arc::clone(&written),
        };
        let dropped = IntCounter::new("dropped", "x").unwrap();
        let bounds = Bounds {
            lines: 2,
            bytes: 10,
        };
        let sink = Sink::spawn(out, bounds, dropped.clone()).unwrap();
        sink.put(b"1\n");
        inside.recv().unwrap();
        for line in ["2\n", "3\n", "4\n", "5\n"] {
            sink.put(line.as_bytes());
        }
        assert_eq!(dropped.get(), 2);
        sink.flush(Duration::from_millis(1));
        drop(release);
        sink.flush(Duration::from_secs(10));
        assert_eq!(*written.lock().unwrap(), b"1\n2\n3\n");
        sink.put(b"much too long for it\n");
        assert_eq!(dropped.get(), 3);
    }
}
