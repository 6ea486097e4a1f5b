//! The protocol's own HTTP headers, and the encoding of values in them.
//!
//! Answers "Request Metadata" and "Value Encoding" of the streamable HTTP page of
//! revision 2026-07-28. Names are lower-case as HTTP/2 has them.

use base64::{Engine, engine::general_purpose::STANDARD};
use std::borrow::Cow;

pub const SESSION_ID: &str = "mcp-session-id";
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
pub const METHOD: &str = "mcp-method";
pub const NAME: &str = "mcp-name";
/// What the name of a parameter's header starts with.
pub const PARAM_PREFIX: &str = "mcp-param-";
pub const LAST_EVENT_ID: &str = "last-event-id";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// A value as a header carries it: as it is where that is safe, else in the base64 form.
pub fn encode(value: &str) -> Cow<'_, str> {
    let plain = value
        .bytes()
        .all(|b| b == b'\t' || (0x20..0x7f).contains(&b));
    let trimmed = value.trim_matches([' ', '\t']).len() == value.len();
    let sentinel = value.starts_with(OPEN) && value.ends_with(CLOSE);
    if plain && trimmed && !sentinel && !value.is_empty() {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(value)))
}

/// The value that a header carries; `None` if its base64 form is broken.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(inside) = value.strip_prefix(OPEN).and_then(|v| v.strip_suffix(CLOSE)) else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = STANDARD.decode(inside).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_specification() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(value), header);
            assert_eq!(decode(header).unwrap(), value);
        }
        assert_eq!(decode("=?base64?%%?="), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_and_safe(value in "\\PC{0,40}|[ -~\\t\\r\\n]{0,40}") {
            let header = encode(&value);
            prop_assert!(http::HeaderValue::from_str(&header).is_ok());
            prop_assert_eq!(decode(&header).unwrap(), value.as_str());
        }
    }
}
