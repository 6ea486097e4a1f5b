//! Addresses of the web: URLs of servers, origins of browsers, names in `Host`.

use std::{fmt, str::FromStr};

use url::Url;

use super::{Written, Wrong};

/// An absolute `http` or `https` URL without credentials and without a fragment.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HttpUrl(Url);

/// The origin of a browser page, or `*` for any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Every origin.
    Any,
    /// This one, as browsers write it in `Origin`: lower case, without a default port.
    Exact(Box<str>),
}

/// A value of `Host`: a name or address, with a port or without (then with any).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostName {
    host: Box<str>,
    port: Option<u16>,
}

impl HttpUrl {
    /// The URL.
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

/// Without the query: people put keys into it.
impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().split('?').next().unwrap_or_default())
    }
}

impl Written for HttpUrl {
    const KIND: &'static str = "url";
    const NOUN: &'static str = "a URL";
    const EXAMPLE: &'static str = "https://tickets.example.com/mcp";
}

impl FromStr for HttpUrl {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let wrong = || {
            Wrong::new(
                "not a URL",
                "one with `http://` or `https://`, such as `https://tickets.example.com/mcp`",
            )
        };
        // The standard lets a parser skip white space; here it is more likely a slip.
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(wrong());
        }
        let url = Url::parse(text).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Wrong::new(
                "a URL with credentials in it",
                "the URL without them, and put them into `headers`",
            ));
        }
        if url.fragment().is_some() {
            return Err(Wrong::new(
                "a URL with a fragment",
                "it without the part from `#` on",
            ));
        }
        Ok(HttpUrl(url))
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Written for Origin {
    const KIND: &'static str = "origin";
    const NOUN: &'static str = "an origin";
    const EXAMPLE: &'static str = "https://app.example.com";
}

impl FromStr for Origin {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        if text == "*" {
            return Ok(Origin::Any);
        }
        let wrong = || {
            Wrong::new(
                "not an origin",
                "scheme, host and port only, such as `https://app.example.com`, or `*` for any",
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let scheme_fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
        let odd = |c: char| {
            matches!(c, '/' | '?' | '#' | '@' | '*' | '\\') || c.is_whitespace() || c.is_control()
        };
        if !scheme_fits || rest.is_empty() || rest.contains(odd) {
            return Err(wrong());
        }
        let scheme = scheme.to_ascii_lowercase();
        if !matches!(&*scheme, "http" | "https") {
            // Extensions and embedded views: `vscode-webview://…`.
            return Ok(Origin::Exact(
                format!("{scheme}://{}", rest.to_ascii_lowercase()).into(),
            ));
        }
        let url = Url::parse(text).map_err(|_| wrong())?;
        Ok(Origin::Exact(url.origin().ascii_serialization().into()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Any => f.write_str("*"),
            Origin::Exact(origin) => f.write_str(origin),
        }
    }
}

impl HostName {
    /// The name or address, in lower case, IPv6 in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, if only that one is meant.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

impl Written for HostName {
    const KIND: &'static str = "host";
    const NOUN: &'static str = "a host";
    const EXAMPLE: &'static str = "mcp.example.com";
}

impl FromStr for HostName {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let wrong = || {
            Wrong::new(
                "not a host",
                "a name with or without a port, such as `mcp.example.com` or `mcp.example.com:8443`",
            )
        };
        // An authority may carry user information, and any text for a port; a `Host` may not.
        let authority = text.parse::<http::uri::Authority>().map_err(|_| wrong())?;
        let host = authority.host();
        if host.is_empty() || text.contains(['@', '*']) {
            return Err(wrong());
        }
        let port = match text[host.len()..].strip_prefix(':') {
            None => None,
            Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => {
                Some(port.parse().map_err(|_| wrong())?)
            }
            Some(_) => return Err(wrong()),
        };
        Ok(HostName {
            host: host.to_ascii_lowercase().into(),
            port,
        })
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_absolute_and_carry_no_credentials() {
        assert_eq!(
            "http://127.0.0.1:1/mcp?x=1"
                .parse::<HttpUrl>()
                .unwrap()
                .to_string(),
            "http://127.0.0.1:1/mcp?x=1"
        );
        for text in [
            "",
            "a",
            "/mcp",
            "ftp://a/",
            "http://",
            "https://a b/",
            "https://u:p@a/",
            "https://u@a/",
            "https://a/#x",
            " https://a/",
        ] {
            assert!(text.parse::<HttpUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn origins_are_kept_as_browsers_write_them() {
        for (text, origin) in [
            ("*", "*"),
            ("https://App.example.com:443", "https://app.example.com"),
            ("http://localhost:5173", "http://localhost:5173"),
            ("vscode-webview://0abc", "vscode-webview://0abc"),
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), origin);
        }
        for text in [
            "",
            "null",
            "app.example.com",
            "https://a/",
            "https://a/x",
            "https://*.a",
            "https://",
            "https://u@a",
            "://a",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_have_a_port_or_none() {
        for (text, host, port) in [
            ("MCP.example.com", "mcp.example.com", None),
            ("a:8443", "a", Some(8443)),
            ("[::1]:80", "[::1]", Some(80)),
        ] {
            let name: HostName = text.parse().unwrap();
            assert_eq!((name.host(), name.port()), (host, port));
        }
        for text in [
            "",
            "https://a",
            "a/b",
            "a:",
            "a:99999",
            "u@a",
            "*",
            "*.a",
            "a b",
        ] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }
}
