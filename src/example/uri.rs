//! Reads and writes the few URIs of the example servers, where a name may hold a space or an accent.

/// The segments of `uri` after `prefix`, with their escapes undone.
pub fn segments(uri: &str, prefix: &str) -> Option<Vec<String>> {
    uri.strip_prefix(prefix)?.split('/').map(unescape).collect()
}

fn unescape(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let (digits, tail) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.is_empty())
}

/// `segment` as it stands in a URI.
pub fn escape(segment: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string never fails.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_reads_back() {
        let uri = format!("a://{}/{}", escape("Park City"), escape("Reykjavík"));
        assert_eq!(uri, "a://Park%20City/Reykjav%C3%ADk");
        let names = vec!["Park City".to_owned(), "Reykjavík".to_owned()];
        assert_eq!(segments(&uri, "a://"), Some(names));
    }

    #[test]
    fn broken_escapes_and_empty_segments_are_no_uri() {
        for broken in ["a://x%2", "a://x%zz", "a://x%FF", "a://x/", "b://x"] {
            assert_eq!(segments(broken, "a://"), None, "{broken}");
        }
    }
}
