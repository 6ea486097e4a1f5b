//! Cutting a byte stream into lines, whatever pieces it comes in.
//!
//! A line ends at byte 0x0A and nowhere else. A line over the limit is passed over
//! without being kept: its first and last bytes are, so that the call it answers can
//! be told. Answers the framing rules of the stdio transport.

use bytes::{Buf, Bytes, BytesMut};
use std::mem;

/// Room to start with, and to return to after a large line.
const ROOM: usize = 16 << 10;
/// Larger buffers than this are let go as soon as they are empty.
const KEEP: usize = 64 << 10;
/// Less room than this is not worth a read.
const LEAST: usize = 4 << 10;
/// How much is kept of either end of a line over the limit.
const END: usize = 512;

/// Bytes of one server, on their way to lines.
pub(super) struct Lines {
    buffer: BytesMut,
    /// How far the buffer has been searched for a line's end.
    searched: usize,
    limit: usize,
    skipping: Option<Ends>,
}

/// The two ends of a line that was too long to keep.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Ends {
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
    /// Bytes in all.
    pub(super) length: usize,
}

#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// Without its end, and without a carriage return before that. Never empty.
    Whole(Bytes),
    TooLong(Ends),
}

impl Lines {
    /// `limit`: the longest line, in bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::with_capacity(ROOM),
            searched: 0,
            limit,
            skipping: None,
        }
    }

    /// Where the next bytes go; there is always room for some.
    pub(super) fn space(&mut self) -> &mut BytesMut {
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP {
            self.buffer = BytesMut::with_capacity(ROOM);
        }
        if self.buffer.capacity() - self.buffer.len() < LEAST {
            // Used-up room in front is taken back first; a long line grows by large steps, so that little is copied.
            let step = (self.buffer.len() * 3).clamp(ROOM, self.limit.max(ROOM));
            self.buffer.reserve(step);
        }
        &mut self.buffer
    }

    /// The next line that has come to its end.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            let Some(end) = found.map(|at| self.searched + at) else {
                self.searched = self.buffer.len();
                if self.buffer.len() > self.limit || self.skipping.is_some() {
                    self.skip(self.buffer.len());
                }
                return None;
            };
            self.searched = 0;
            if end > self.limit || self.skipping.is_some() {
                self.skip(end);
                self.buffer.advance(1);
                self.searched = 0;
                return self.skipping.take().map(Line::TooLong);
            }
            let line = self.take(end);
            if !line.is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }

    /// Cuts a line of `length` bytes off, with its end.
    fn take(&mut self, length: usize) -> Bytes {
        let cut = match self.buffer[..length].last() {
            Some(b'\r') => length - 1,
            _ => length,
        };
        // A small line is copied, so that keeping it does not keep a large buffer.
        if length < self.buffer.capacity() / 2 {
            let line = Bytes::copy_from_slice(&self.buffer[..cut]);
            self.buffer.advance(length + 1);
            return line;
        }
        let mut line = self.buffer.split_to(length + 1);
        line.truncate(cut);
        let rest = mem::take(&mut self.buffer);
        self.buffer = BytesMut::with_capacity(ROOM.max(rest.len()));
        self.buffer.extend_from_slice(&rest);
        line.freeze()
    }

    fn skip(&mut self, length: usize) {
        let ends = self.skipping.get_or_insert_default();
        ends.add(&self.buffer[..length]);
        self.buffer.advance(length);
        self.searched = 0;
        if self.buffer.is_empty() {
            self.buffer = BytesMut::with_capacity(KEEP);
        }
    }
}

impl Ends {
    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        let room = END - self.head.len();
        self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        let last = &bytes[bytes.len().saturating_sub(END)..];
        let surplus = (self.tail.len() + last.len()).saturating_sub(END);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(pieces: &[&[u8]], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(limit);
        let mut all = Vec::new();
        for piece in pieces {
            let mut piece = *piece;
            while !piece.is_empty() {
                let space = lines.space();
                let room = (space.capacity() - space.len()).min(piece.len());
                assert!(room > 0);
                space.extend_from_slice(&piece[..room]);
                piece = &piece[room..];
                while let Some(line) = lines.next() {
                    all.push(line);
                }
            }
        }
        all
    }

    fn whole(text: &str) -> Line {
        Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn only_the_newline_byte_ends_a_line() {
        let text = "a\u{2028}b\u{85}c\rd\r\n\n\r\n{}\n";
        assert_eq!(
            cut(&[text.as_bytes()], 100),
            [whole("a\u{2028}b\u{85}c\rd"), whole("{}")]
        );
    }

    #[test]
    fn a_line_over_the_limit_leaves_its_ends_and_the_next_line_alone() {
        let mut text = b"first\n{\"id\":7,".to_vec();
        text.extend(std::iter::repeat_n(b'x', 500_000));
        text.extend(b"end}\nlast\n");
        for size in [7, 4096, 1 << 20] {
            let pieces: Vec<_> = text.chunks(size).collect();
            let lines = cut(&pieces, 1000);
            assert_eq!(lines.len(), 3);
            assert_eq!((&lines[0], &lines[2]), (&whole("first"), &whole("last")));
            let Line::TooLong(ends) = &lines[1] else {
                panic!("{lines:?}")
            };
            assert_eq!(ends.length, 500_012);
            assert!(ends.head.starts_with(b"{\"id\":7,") && ends.tail.ends_with(b"xend}"));
            assert!(ends.head.len() <= END && ends.tail.len() <= END);
        }
    }

    #[test]
    fn memory_goes_back_after_a_large_line() {
        let mut lines = Lines::new(16 << 20);
        for _ in 0..(5 << 20) / 65_536 {
            lines.space().extend_from_slice(&[b'x'; 65_536]);
            assert!(lines.next().is_none());
        }
        lines.space().extend_from_slice(b"\n");
        assert!(matches!(lines.next(), Some(Line::Whole(line)) if line.len() == 80 << 16));
        assert!(lines.space().capacity() <= KEEP);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            texts in proptest::collection::vec("[^\n]{0,40}", 0..8),
            sizes in proptest::collection::vec(1usize..9, 1..40),
        ) {
            let stream: Vec<u8> = texts.iter().flat_map(|t| [t.as_bytes(), b"\n"].concat()).collect();
            let mut pieces = Vec::new();
            let (mut rest, mut size) = (&stream[..], sizes.iter().cycle());
            while !rest.is_empty() {
                let (piece, more) = rest.split_at((*size.next().unwrap()).min(rest.len()));
                pieces.push(piece);
                rest = more;
            }
            let want: Vec<_> = texts
                .iter()
                .map(|t| t.strip_suffix('\r').unwrap_or(t))
                .filter(|t| !t.is_empty())
                .map(whole)
                .collect();
            prop_assert_eq!(cut(&pieces, 1000), want);
        }
    }
}
