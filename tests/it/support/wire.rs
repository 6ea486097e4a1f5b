//! One TCP connection, byte by byte: for clients that no decent library can play.

use super::client::PATIENCE;
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub struct Wire {
    pub stream: TcpStream,
    /// All that came and was not taken yet.
    pub read: Vec<u8>,
}

impl Wire {
    pub async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        Self {
            stream,
            read: Vec::new(),
        }
    }

    /// Writes; a peer that has closed already is no fault.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// A whole request with these headers; `Host` and `Content-Length` are added.
    pub async fn request(&mut self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut text = format!(
            "{verb} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        assert!(self.send(text).await, "the connection is open");
    }

    /// Reads once more; `false` at the end.
    pub async fn more(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.read));
        matches!(read.await.expect("bytes or the end in time"), Ok(n) if n > 0)
    }

    /// Reads until `what` has come, and takes all up to its end.
    pub async fn take_until(&mut self, what: &str) -> String {
        loop {
            let found = self
                .read
                .windows(what.len())
                .position(|w| w == what.as_bytes());
            if let Some(at) = found {
                let taken = self.read.drain(..at + what.len()).collect();
                return String::from_utf8(taken).expect("text");
            }
            assert!(
                self.more().await,
                "ended before {what:?}: {:?}",
                String::from_utf8_lossy(&self.read)
            );
        }
    }

    /// The head of a response.
    pub async fn head(&mut self) -> String {
        self.take_until("\r\n\r\n").await
    }

    /// Status of the next response.
    pub async fn status(&mut self) -> u16 {
        let head = self.head().await;
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
        status.unwrap_or_else(|| panic!("no status in {head:?}"))
    }

    /// Reads to the end; whether it was an orderly one.
    pub async fn end(&mut self) -> bool {
        loop {
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.read));
            match read.await.expect("the end in time") {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends the connection with a reset, as a client that is killed with data unread does.
    pub fn reset(self) {
        let _ = self.stream.set_zero_linger();
    }
}
