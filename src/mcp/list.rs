//! The items of a list result, as bytes, with what tells them apart.

use super::{
    message::string,
    method::ListKind,
    scan::{ScanError, Scanner, Span},
};
use bytes::Bytes;

/// One tool, prompt, resource or template as its server sent it.
#[derive(Clone, Debug)]
pub struct Item {
    /// The whole JSON object.
    pub json: Bytes,
    /// Where the value of the telling member stands in it, quotes included.
    pub key_span: Span,
    /// That member, decoded: `name`, `uri` or `uriTemplate`.
    pub key: String,
}

/// Takes the items out of a list result; one without a usable key is left out and counted.
pub fn items(
    result: &Bytes,
    kind: ListKind,
    max_depth: u32,
) -> Result<(Vec<Item>, usize), ScanError> {
    let mut found = Vec::new();
    let mut unusable = 0;
    let mut scanner = Scanner::new(result, max_depth);
    if scanner.peek() != Some(b'{') {
        return Ok((found, unusable));
    }
    scanner.object(|s, key| {
        if !key.is(kind.member()) || s.peek() != Some(b'[') {
            return s.value().map(drop);
        }
        s.array(|s| {
            let span = s.value()?;
            match item(result.slice(span.range()), kind, max_depth) {
                Some(item) => found.push(item),
                None => unusable += 1,
            }
            Ok(())
        })
        .map(drop)
    })?;
    Ok((found, unusable))
}

fn item(json: Bytes, kind: ListKind, max_depth: u32) -> Option<Item> {
    let mut key_span = None;
    let mut twice = false;
    let mut scanner = Scanner::new(&json, max_depth);
    if scanner.peek() != Some(b'{') {
        return None;
    }
    let walk = scanner.object(|s, key| {
        let span = s.value()?;
        if key.is(kind.key()) {
            twice |= key_span.replace(span).is_some();
        }
        Ok(())
    });
    let key_span = key_span.filter(|_| walk.is_ok() && !twice)?;
    let key = string(key_span.of(&json))?.into_owned();
    Some(Item {
        json,
        key_span,
        key,
    })
}

/// Finds the member `name` of the object in `json`.
pub fn member(json: &[u8], name: &str, max_depth: u32) -> Option<Span> {
    let mut found = None;
    let mut scanner = Scanner::new(json, max_depth);
    if scanner.peek() != Some(b'{') {
        return None;
    }
    let walk = scanner.object(|s, key| {
        let span = s.value()?;
        if key.is(name) {
            found = Some(span);
        }
        Ok(())
    });
    walk.ok()?;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_bytes() {
        let result = Bytes::from_static(br#"{"tools":[{"description":"d","name":"a\u0062", "x":1.0},{"noname":1},7],"nextCursor":"c"}"#);
        let (items, unusable) = items(&result, ListKind::Tools, 16).unwrap();
        assert_eq!(items.len(), 1);
        assert_eq!(unusable, 2);
        assert_eq!(items[0].key, "ab");
        assert_eq!(
            items[0].json,
            r#"{"description":"d","name":"a\u0062", "x":1.0}"#
        );
        assert_eq!(items[0].key_span.of(&items[0].json), br#""a\u0062""#);
        assert_eq!(
            member(&result, "nextCursor", 8).unwrap().of(&result),
            br#""c""#
        );
    }
}
