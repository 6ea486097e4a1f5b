//! Telling which call a line answers that cannot be read as a message.
//!
//! Used for lines with invalid UTF-8, lines over the limit and answers that are not
//! quite JSON-RPC: the call that waits for it fails at once instead of waiting on.

use super::lines::Ends;
use crate::mcp::{
    message::own_number,
    scan::{MAX_DEPTH, Scanner},
};

/// What can be told of a line that is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Torn {
    /// An answer to the call with this id of ours.
    Answer(u64),
    /// A request of the server with this id, raw.
    Request(Vec<u8>),
    Nothing,
}

/// Looks at a line that [`crate::mcp::Message::parse`] refused.
pub(super) fn of_line(line: &[u8]) -> Torn {
    let seen = Seen::of(line);
    match seen.id {
        Some(id) if seen.method => Torn::Request(id.to_vec()),
        Some(id) if seen.answer => own_number(id).map_or(Torn::Nothing, Torn::Answer),
        _ => Torn::Nothing,
    }
}

/// Looks at what is left of a line that was too long to keep.
pub(super) fn of_ends(ends: &Ends) -> Torn {
    let head = Seen::of(&ends.head);
    if head.method || head.params {
        return match head.id {
            Some(id) => Torn::Request(id.to_vec()),
            None => Torn::Nothing,
        };
    }
    let id = head.id.and_then(own_number);
    match id.or_else(|| id_at_end(&ends.tail)) {
        Some(id) if head.answer => Torn::Answer(id),
        _ => Torn::Nothing,
    }
}

/// The members at the top of an object, as far as it can be read.
#[derive(Default)]
struct Seen<'a> {
    /// A string or an integer, raw.
    id: Option<&'a [u8]>,
    method: bool,
    params: bool,
    answer: bool,
}

impl<'a> Seen<'a> {
    fn of(text: &'a [u8]) -> Self {
        let mut seen = Self::default();
        let mut scanner = Scanner::new(text, MAX_DEPTH);
        // It fails where the text is cut or broken; what came before that counts.
        let _ = scanner.object(|s, key| {
            if key.is("id") {
                let id = s.value()?.of(text);
                let is_text = id.first() == Some(&b'"') && std::str::from_utf8(id).is_ok();
                seen.id = (is_text || own_number(id).is_some()).then_some(id);
                return Ok(());
            }
            seen.method |= key.is("method");
            seen.params |= key.is("params");
            seen.answer |= key.is("result") || key.is("error");
            s.value().map(drop)
        });
        seen
    }
}

/// The id of a message whose last member it is, or the last but `jsonrpc`.
fn id_at_end(tail: &[u8]) -> Option<u64> {
    let inside = tail.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let inside = match inside.strip_suffix(b"\"2.0\"") {
        Some(rest) => before_key(rest, b"\"jsonrpc\"")?.strip_suffix(b",")?,
        None => inside,
    };
    let inside = inside.trim_ascii_end();
    let digits = inside.iter().rev().take_while(|b| b.is_ascii_digit());
    let (rest, number) = inside.split_at(inside.len() - digits.count());
    before_key(rest, b"\"id\"")?;
    own_number(number)
}

fn before_key<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let text = text.trim_ascii_end().strip_suffix(b":")?;
    Some(text.trim_ascii_end().strip_suffix(key)?.trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_with_a_broken_inside_is_known_by_its_id() {
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"t\":\"\xc3\"}}";
        assert_eq!(of_line(line), Torn::Answer(5));
        let line = b"{\"result\":{\"t\":\"\xc3\"},\"jsonrpc\":\"2.0\",\"id\":6}";
        assert_eq!(of_line(line), Torn::Answer(6));
        assert_eq!(of_line(b"{\"id\":1,\"result\":{}}"), Torn::Answer(1));
        assert_eq!(
            of_line(b"{\"id\":1,\"method\":\"\xc3\"}"),
            Torn::Request(b"1".to_vec())
        );
        for noise in [
            "{broken",
            "[INFO] up",
            "-32",
            "{\"level\":\"info\",\"id\":1}",
        ] {
            assert_eq!(of_line(noise.as_bytes()), Torn::Nothing, "{noise}");
        }
    }

    #[test]
    fn an_answer_that_was_too_long_is_known_by_either_end() {
        let ends = |head: &str, tail: &str| Ends {
            head: head.into(),
            tail: tail.into(),
            length: 99,
        };
        let answer = "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"t\":\"xx";
        assert_eq!(of_ends(&ends(answer, "xx\"}}")), Torn::Answer(5));
        let late = "{\"result\":{\"t\":\"xx";
        for tail in [
            "x\"},\"jsonrpc\":\"2.0\",\"id\":6}",
            "x\"}, \"id\": 6 , \"jsonrpc\" : \"2.0\" }\r",
        ] {
            assert_eq!(of_ends(&ends(late, tail)), Torn::Answer(6), "{tail}");
        }
        assert_eq!(of_ends(&ends(late, "\"id\":6}}")), Torn::Nothing);
        let request = "{\"id\":5,\"method\":\"sampling/createMessage\",\"params\":{\"t\":\"xx";
        assert_eq!(
            of_ends(&ends(request, "x\"}}")),
            Torn::Request(b"5".to_vec())
        );
        assert_eq!(of_ends(&ends("plain text", "id\":6}")), Torn::Nothing);
    }
}
