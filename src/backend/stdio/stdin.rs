//! A server's standard input: whole messages, one after the other, without waiting.
//!
//! A message is written at once by whoever sends it if nothing waits before it; what
//! the pipe does not take is kept, up to a bound, and written by a task as the server
//! reads. Nobody who reads from the server ever waits here, so a server that does not
//! read before it has answered cannot bring both sides to a stop.

use crate::mcp::{Pieces, edit::on_one_line};
use bytes::{Buf, Bytes};
use std::{
    collections::VecDeque,
    io::{self, ErrorKind, IoSlice},
    sync::{Mutex, MutexGuard},
};
use tokio::{net::unix::pipe::Sender, sync::Notify};

const NEWLINE: &[u8] = b"\n";
/// Pieces that one system call writes.
const BATCH: usize = 32;

pub(super) struct Stdin {
    queue: Mutex<Queue>,
    /// Tells the task that something waits, or that the end has come.
    waiting: Notify,
    /// Bytes that may wait; a single message may be larger.
    bound: usize,
}

struct Queue {
    /// `None` once closed.
    pipe: Option<std::sync::Arc<Sender>>,
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

/// Why a message was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unsent {
    /// The server reads nothing any more, or was told that nothing more comes.
    Closed,
    /// Too much waits already.
    Full,
}

impl Stdin {
    pub(super) fn new(pipe: Sender, bound: usize) -> Self {
        let queue = Queue {
            pipe: Some(pipe.into()),
            pieces: VecDeque::new(),
            bytes: 0,
        };
        Self {
            queue: Mutex::new(queue),
            waiting: Notify::new(),
            bound,
        }
    }

    /// Sends a message, whole or not at all. Never blocks.
    pub(super) fn send(&self, message: impl Into<Pieces>) -> Result<(), Unsent> {
        let message = line(message.into());
        let mut queue = self.lock();
        let Some(pipe) = queue.pipe.clone() else {
            return Err(Unsent::Closed);
        };
        if !queue.pieces.is_empty() {
            if queue.bytes + message.len() > self.bound {
                return Err(Unsent::Full);
            }
            queue.push(message);
            return Ok(());
        }
        let mut slices = [IoSlice::new(&[]); BATCH];
        let used = message.chunks_vectored(&mut slices);
        let written = match pipe.try_write_vectored(&slices[..used]) {
            Ok(written) => written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(_) => {
                queue.close();
                return Err(Unsent::Closed);
            }
        };
        if written < message.len() {
            queue.push(message);
            queue.written(written);
            drop(queue);
            self.waiting.notify_one();
        }
        Ok(())
    }

    /// Writes what waits until the input is closed. An error is the server's: it reads no more.
    pub(super) async fn run(&self) -> io::Result<()> {
        loop {
            self.waiting.notified().await;
            while let Some(pipe) = self.busy_pipe() {
                pipe.writable().await?;
                let mut queue = self.lock();
                match queue.write(&pipe) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => {
                        queue.close();
                        return Err(error);
                    }
                    Ok(()) => {}
                }
            }
            if self.lock().pipe.is_none() {
                return Ok(());
            }
        }
    }

    /// Nothing more comes; what still waits is lost.
    pub(super) fn close(&self) {
        self.lock().close();
        self.waiting.notify_one();
    }

    fn busy_pipe(&self) -> Option<std::sync::Arc<Sender>> {
        let queue = self.lock();
        queue.pipe.clone().filter(|_| !queue.pieces.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no holder of this lock panics")
    }
}

impl Queue {
    fn push(&mut self, mut message: Pieces) {
        self.bytes += message.len();
        while let Some(piece) = message.pop() {
            self.pieces.push_back(piece);
        }
    }

    fn write(&mut self, pipe: &Sender) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); BATCH];
        let used = self.pieces.len().min(BATCH);
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
        }
        let written = pipe.try_write_vectored(&slices[..used])?;
        self.written(written);
        Ok(())
    }

    fn written(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(first) = self.pieces.front_mut() {
            if count < first.len() {
                first.advance(count);
                return;
            }
            count -= first.len();
            self.pieces.pop_front();
        }
    }

    fn close(&mut self) {
        self.pipe = None;
        self.pieces = VecDeque::new();
        self.bytes = 0;
    }
}

/// The message on one line, with its end.
fn line(mut message: Pieces) -> Pieces {
    let mut out = Pieces::default();
    while let Some(piece) = message.pop() {
        out.push(on_one_line(piece));
    }
    out.push(Bytes::from_static(NEWLINE));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{io::AsyncReadExt, net::unix::pipe};

    #[tokio::test]
    async fn a_message_is_whole_or_refused() {
        let (sender, mut receiver) = pipe::pipe().unwrap();
        let stdin = std::sync::Arc::new(Stdin::new(sender, 300_000));
        let writer = tokio::spawn({
            let stdin = stdin.clone();
            async move { stdin.run().await }
        });
        // Nothing is read: the pipe takes some, the queue the rest up to its bound.
        let message = |n: u8| Bytes::from(vec![n; 100_000]);
        let sent = (b'a'..b'i').take_while(|n| stdin.send(message(*n)) == Ok(()));
        let sent = sent.count();
        assert!((2..=4).contains(&sent), "{sent}");
        assert_eq!(stdin.send(message(b'z')), Err(Unsent::Full));
        let mut got = vec![0; sent * 100_001];
        receiver.read_exact(&mut got).await.unwrap();
        for (line, n) in got.split(|b| *b == b'\n').zip(b'a'..b'i') {
            assert!(line.iter().all(|b| *b == n));
        }
        stdin.close();
        writer.await.unwrap().unwrap();
        assert_eq!(receiver.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(stdin.send(message(b'y')), Err(Unsent::Closed));
    }

    #[tokio::test]
    async fn a_message_larger_than_the_bound_passes_when_nothing_waits() {
        let (sender, mut receiver) = pipe::pipe().unwrap();
        let stdin = std::sync::Arc::new(Stdin::new(sender, 10));
        let writer = tokio::spawn({
            let stdin = stdin.clone();
            async move { stdin.run().await }
        });
        stdin.send(Bytes::from(vec![b'x'; 200_000])).unwrap();
        assert_eq!(stdin.send(Bytes::from_static(b"{}")), Err(Unsent::Full));
        let mut got = vec![0; 200_001];
        receiver.read_exact(&mut got).await.unwrap();
        assert_eq!(got.last(), Some(&b'\n'));
        drop(receiver);
        // The first send may still fill the pipe before its end is noticed.
        while stdin.send(Bytes::from_static(b"{}")) != Err(Unsent::Closed) {
            tokio::task::yield_now().await;
        }
        drop(writer);
    }
}
