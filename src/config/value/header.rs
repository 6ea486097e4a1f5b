//! Names of HTTP headers that an operator may set.

use std::{fmt, str::FromStr};

use super::{Written, Wrong};

/// The name of a header that is sent to a server, in lower case, and none that the transport itself sets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderName(Box<str>);

/// What the transport sets itself: a second value would break framing or the protocol.
const RESERVED: [&str; 15] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl HeaderName {
    /// The name, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as the HTTP library has it.
    pub fn to_http(&self) -> http::HeaderName {
        self.0.parse().expect("checked by the only constructor")
    }
}

impl Written for HeaderName {
    const KIND: &'static str = "header";
    const NOUN: &'static str = "the name of a header";
    const EXAMPLE: &'static str = "Authorization";
}

impl FromStr for HeaderName {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let Ok(name) = text.parse::<http::HeaderName>() else {
            return Err(Wrong::new(
                "not the name of a header",
                "letters, digits and `-`, such as `X-Team`",
            ));
        };
        if RESERVED.contains(&name.as_str()) {
            return Err(Wrong::new(
                "a header that the gateway sets itself",
                "other headers only, and leave this one out",
            ));
        }
        Ok(HeaderName(name.as_str().into()))
    }
}

impl fmt::Display for HeaderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_token_that_the_transport_does_not_set() {
        assert_eq!(
            "X-Team".parse::<HeaderName>().unwrap().to_http().as_str(),
            "x-team"
        );
        for text in [
            "",
            "a b",
            "a:b",
            "é",
            "Host",
            "Mcp-Session-Id",
            "content-length",
        ] {
            assert!(text.parse::<HeaderName>().is_err(), "{text}");
        }
    }
}
