//! Text in pieces, so that changing a few bytes of a large message copies none of the rest.

use bytes::{Buf, Bytes, BytesMut};
use std::{collections::VecDeque, io::IoSlice};

/// One text, in order. Cheap to clone; reading it as a [`Buf`] uses it up.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    first: Bytes,
    rest: VecDeque<Bytes>,
}

impl Pieces {
    /// Adds to the end; nothing is kept of an empty piece.
    pub fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        if self.first.is_empty() && self.rest.is_empty() {
            self.first = piece;
        } else {
            self.rest.push_back(piece);
        }
    }

    /// The next piece, in order.
    pub fn pop(&mut self) -> Option<Bytes> {
        let next = self.rest.pop_front().unwrap_or_default();
        let piece = std::mem::replace(&mut self.first, next);
        (!piece.is_empty()).then_some(piece)
    }

    pub fn len(&self) -> usize {
        self.first.len() + self.rest.iter().map(Bytes::len).sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// All of it in one piece; copies only where there are several.
    pub fn into_bytes(self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        let mut out = BytesMut::with_capacity(self.len());
        out.extend_from_slice(&self.first);
        for piece in &self.rest {
            out.extend_from_slice(piece);
        }
        out.freeze()
    }
}

impl From<Bytes> for Pieces {
    fn from(text: Bytes) -> Self {
        Self {
            first: text,
            rest: VecDeque::new(),
        }
    }
}

impl From<String> for Pieces {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.first
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        let pieces = std::iter::once(&self.first).chain(&self.rest);
        let mut used = 0;
        for (slot, piece) in out.iter_mut().zip(pieces) {
            *slot = IoSlice::new(piece);
            used += 1;
        }
        used
    }

    fn advance(&mut self, mut count: usize) {
        while count >= self.first.len() && !self.first.is_empty() {
            count -= self.first.len();
            self.first = self.rest.pop_front().unwrap_or_default();
        }
        self.first.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_read_as_the_whole(parts in proptest::collection::vec("[a-z]{0,4}", 0..6), step in 1usize..5) {
            let mut pieces = Pieces::default();
            for part in &parts {
                pieces.push(Bytes::copy_from_slice(part.as_bytes()));
            }
            let whole = parts.concat();
            prop_assert_eq!(pieces.clone().into_bytes(), whole.as_bytes());
            let mut popped = Vec::new();
            let mut rest = pieces.clone();
            while let Some(piece) = rest.pop() {
                popped.extend_from_slice(&piece);
            }
            prop_assert_eq!(popped, whole.as_bytes());
            let mut read = Vec::new();
            while pieces.has_remaining() {
                let count = step.min(pieces.chunk().len());
                read.extend_from_slice(&pieces.chunk()[..count]);
                pieces.advance(count);
            }
            prop_assert_eq!(read, whole.as_bytes());
        }
    }
}
