//! A server's standard error: always read, logged at a bounded rate.
//!
//! Whatever happens to the log, only this task may wait for it; a server never waits
//! because its words are not wanted.

use crate::mcp::ServerId;
use std::time::Duration;
use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver, time::Instant};

/// The longest line that is logged whole, in bytes.
const LINE: usize = 2048;
/// Lines logged in one [`SPAN`].
const LINES: u32 = 100;
const SPAN: Duration = Duration::from_secs(1);

/// Reads to the end. `heard` is told of each line, logged or not, and of any output by an empty one.
pub(super) async fn drain(mut pipe: Receiver, server: ServerId, heard: impl Fn(&str)) {
    let mut log = Log::new(server);
    let mut line = Vec::new();
    let mut buffer = Vec::with_capacity(4096);
    loop {
        buffer.clear();
        match pipe.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(_) => heard(""),
        }
        for piece in buffer.split_inclusive(|b| *b == b'\n') {
            let room = LINE.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                log.line(&line, &heard);
                line.clear();
            }
        }
    }
    log.line(&line, &heard);
    log.dropped();
}

struct Log {
    server: ServerId,
    since: Instant,
    lines: u32,
    dropped: u64,
}

impl Log {
    fn new(server: ServerId) -> Self {
        Self {
            server,
            since: Instant::now(),
            lines: 0,
            dropped: 0,
        }
    }

    fn line(&mut self, line: &[u8], heard: &impl Fn(&str)) {
        let text = String::from_utf8_lossy(line.trim_ascii());
        if text.is_empty() {
            return;
        }
        heard(&text);
        if self.since.elapsed() >= SPAN {
            self.dropped();
            self.since = Instant::now();
            self.lines = 0;
        }
        self.lines += 1;
        if self.lines > LINES {
            self.dropped += 1;
            return;
        }
        let server = self.server.as_str();
        tracing::info!(target: "server_stderr", server, line = %text.escape_debug(), "server wrote");
    }

    fn dropped(&mut self) {
        if self.dropped > 0 {
            let (server, lines) = (self.server.as_str(), self.dropped);
            tracing::warn!(target: "server_stderr", server, lines, "lines left out");
            self.dropped = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn all_is_read_and_a_long_line_is_cut() {
        let (mut sender, receiver) = tokio::net::unix::pipe::pipe().unwrap();
        let heard = std::sync::Mutex::new(Vec::new());
        let server = ServerId::new("a").unwrap();
        let reading = drain(receiver, server, |line| {
            if !line.is_empty() {
                heard.lock().unwrap().push(line.to_owned());
            }
        });
        let writing = async move {
            sender.write_all(&[b'x'; 1 << 20]).await.unwrap();
            sender.write_all(b"\r\n\nb\xffc\nlast").await.unwrap();
        };
        tokio::join!(reading, writing);
        let heard = heard.into_inner().unwrap();
        assert_eq!(heard[0].len(), LINE);
        assert_eq!(heard[1..], ["b\u{fffd}c", "last"]);
    }
}
