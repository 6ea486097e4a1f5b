//! Changing a message by splicing: every byte that is not replaced stays as it came.

use super::{message::Message, pieces::Pieces, scan::Span};
use bytes::{BufMut, Bytes, BytesMut};

/// A text shorter than this is copied: one piece is cheaper to send than several.
const COPIED: usize = 16 << 10;

/// Replacements to make in one text, in any order; they must not overlap.
#[derive(Default)]
pub struct Edit {
    changes: Vec<(usize, usize, Bytes)>,
}

impl Edit {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub fn replace(&mut self, span: Span, with: impl Into<Bytes>) -> &mut Self {
        self.changes.push((span.start(), span.end(), with.into()));
        self
    }

    pub fn insert(&mut self, at: usize, text: impl Into<Bytes>) -> &mut Self {
        self.changes.push((at, at, text.into()));
        self
    }

    /// Cuts `start..end` out.
    pub fn cut(&mut self, start: usize, end: usize) -> &mut Self {
        self.changes.push((start, end, Bytes::new()));
        self
    }

    /// Adds a member at the front of the object at `object`; `value` must be JSON text.
    pub fn add_member(&mut self, text: &[u8], object: Span, name: &str, value: &[u8]) -> &mut Self {
        let inside = &text[object.start() + 1..object.end() - 1];
        let empty = inside.trim_ascii().is_empty();
        let mut member = BytesMut::with_capacity(name.len() + value.len() + 4);
        member.put_u8(b'"');
        member.put_slice(name.as_bytes());
        member.put_slice(b"\":");
        member.put_slice(value);
        if !empty || self.adds_to(object.start() + 1) {
            member.put_u8(b',');
        }
        // The last one added must stand first, so that commas fall right.
        let at = object.start() + 1;
        let first = self.changes.iter().position(|c| c.0 == at && c.1 == at);
        let place = first.unwrap_or(self.changes.len());
        self.changes.insert(place, (at, at, member.freeze()));
        self
    }

    fn adds_to(&self, at: usize) -> bool {
        self.changes.iter().any(|c| c.0 == at && c.1 == at)
    }

    /// The text with all changes made. What is large is not copied: it goes out as pieces of the text that came.
    pub fn pieces(mut self, text: &Bytes) -> Pieces {
        if self.changes.is_empty() {
            return text.clone().into();
        }
        if text.len() < COPIED {
            return self.apply(text).into();
        }
        self.changes.sort_by_key(|c| c.0);
        let mut out = Pieces::default();
        let mut from = 0;
        for (start, end, with) in self.changes {
            debug_assert!(start >= from, "changes must not overlap");
            out.push(text.slice(from..start));
            out.push(with);
            from = end;
        }
        out.push(text.slice(from..));
        out
    }

    /// The text with all changes made, in one piece.
    pub fn apply(mut self, text: &Bytes) -> Bytes {
        if self.changes.is_empty() {
            return text.clone();
        }
        self.changes.sort_by_key(|c| c.0);
        let grown: usize = self.changes.iter().map(|c| c.2.len()).sum();
        let mut out = BytesMut::with_capacity(text.len() + grown);
        let mut from = 0;
        for (start, end, with) in &self.changes {
            debug_assert!(*start >= from, "changes must not overlap");
            out.put_slice(&text[from..*start]);
            out.put_slice(with);
            from = *end;
        }
        out.put_slice(&text[from..]);
        out.freeze()
    }
}

/// The message with its id replaced by `id`, a raw token.
pub fn with_id(message: &Message, id: &[u8]) -> Bytes {
    match message.id_span() {
        Some(span) if message.raw(span) != id => {
            let mut edit = Edit::new();
            edit.replace(span, Bytes::copy_from_slice(id));
            edit.apply(message.bytes())
        }
        _ => message.bytes().clone(),
    }
}

/// The text on one line: raw line breaks are legal JSON white space, but end a frame on stdio and a field in SSE.
pub fn on_one_line(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let flat = |b: &u8| if matches!(b, b'\n' | b'\r') { b' ' } else { *b };
    text.iter().map(flat).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Message {
        Message::parse(Bytes::copy_from_slice(text.as_bytes()), 128).unwrap()
    }

    #[test]
    fn only_the_id_changes() {
        let m = parse(
            r#"{ "id" : "x" ,"jsonrpc":"2.0", "method":"a" , "params":{"z":1.50,"a":"\u00e9"} }"#,
        );
        let out = with_id(&m, b"17");
        assert_eq!(
            out,
            r#"{ "id" : 17 ,"jsonrpc":"2.0", "method":"a" , "params":{"z":1.50,"a":"\u00e9"} }"#
        );
    }

    #[test]
    fn members_are_added_to_full_and_empty_objects() {
        let text = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{ }}"#);
        let m = Message::parse(text, 8).unwrap();
        let mut edit = Edit::new();
        let object = m.payload_span().unwrap();
        edit.add_member(m.bytes(), object, "a", b"1");
        edit.add_member(m.bytes(), object, "b", b"2");
        let out = edit.apply(m.bytes());
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["result"], serde_json::json!({"a": 1, "b": 2}));
    }

    proptest! {
        #[test]
        fn what_is_not_replaced_stays(extra in any_json(), id in 0u64..) {
            let text = format!(r#"{{"jsonrpc":"2.0","x":{extra},"id":1,"method":"m","params":{{"v":{extra}}}}}"#);
            let out = with_id(&parse(&text), id.to_string().as_bytes());
            prop_assert_eq!(out, text.replace("\"id\":1,", &format!("\"id\":{id},")));
        }
    }

    fn any_json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            "-?[1-9][0-9]{0,30}(\\.[0-9]{1,20})?",
            "\\PC{0,8}".prop_map(|s| serde_json::to_string(&s).unwrap()),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4)
                    .prop_map(|v| format!("[{}]", v.join(" , "))),
                proptest::collection::vec(("k[a-z]{0,4}", inner), 0..4).prop_map(|v| {
                    let members: Vec<_> = v
                        .into_iter()
                        .enumerate()
                        .map(|(i, (k, v))| format!("\"{k}{i}\": {v}"))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        })
    }
}
