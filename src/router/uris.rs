//! Shared URIs inside results: links, embedded resources and contents get the form that finds their server again.

use crate::{
    catalog::Shared,
    mcp::{
        Edit, ServerId,
        message::{quote, string},
        scan::{MAX_DEPTH, ScanError, Scanner, Span},
    },
};
use bytes::Bytes;

/// Members whose string value is a URI of the server, wherever they stand in a result.
const MEMBERS: [&str; 2] = ["uri", "resourceUri"];

/// Replaces each shared URI in the answer; the other bytes stay.
pub fn expose(shared: &Shared, server: &ServerId, answer: Bytes) -> Bytes {
    let mut edit = Edit::new();
    let mut scanner = Scanner::new(&answer, MAX_DEPTH);
    let walk = walk(&mut scanner, &mut |span: Span| {
        if let Some(uri) = string(span.of(&answer))
            && shared.is_shared(&uri)
        {
            edit.replace(span, quote(&shared.expose(server, &uri)));
        }
    });
    match walk {
        Ok(()) => edit.apply(&answer),
        Err(_) => answer.clone(),
    }
}

/// Visits the URIs of links, embedded resources and contents. Structured content and text are the tool's own data.
fn walk(scanner: &mut Scanner<'_>, found: &mut impl FnMut(Span)) -> Result<(), ScanError> {
    match scanner.peek() {
        Some(b'[') => scanner.array(|s| walk(s, found)).map(drop),
        Some(b'{') => scanner
            .object(|s, key| {
                if MEMBERS.iter().any(|m| key.is(m)) && s.peek() == Some(b'"') {
                    found(s.value()?);
                    return Ok(());
                }
                if key.is("structuredContent") || key.is("arguments") {
                    return s.value().map(drop);
                }
                walk(s, found)
            })
            .map(drop),
        _ => scanner.value().map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_uris_of_links_change() {
        let shared = Shared::default();
        shared.note(0, ["a://x"].into_iter());
        shared.note(1, ["a://x"].into_iter());
        let server = ServerId::new("one").unwrap();
        let text = Bytes::from_static(br#"{"result":{"content":[{"type":"resource_link","uri":"a://x"},{"type":"text","text":"a://x"},{"uri":"a://y"}],"structuredContent":{"uri":"a://x"}}}"#);
        let out = expose(&shared, &server, text);
        assert_eq!(
            out,
            r#"{"result":{"content":[{"type":"resource_link","uri":"one+a://x"},{"type":"text","text":"a://x"},{"uri":"a://y"}],"structuredContent":{"uri":"a://x"}}}"#
        );
    }
}
