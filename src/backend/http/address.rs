//! Where a server is, and whether a redirect still leads to it.

use http::Uri;
use std::fmt;
use url::Url;

/// An absolute `http` or `https` URL, in the two forms that are needed of it. Credentials and fragment are left out.
#[derive(Clone)]
pub struct Address {
    url: Url,
    uri: Uri,
}

/// Why a URL is no address of a server, or a redirect is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("not an http or https URL")]
    NotHttp,
    #[error("a redirect without a usable Location")]
    NoLocation,
    #[error("a redirect to another origin, which is not followed")]
    OtherOrigin,
    #[error("too many redirects")]
    TooMany,
}

impl Address {
    pub fn new(mut url: Url) -> Result<Self, Unusable> {
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(Unusable::NotHttp);
        }
        url.set_fragment(None);
        // Both can only fail for URLs without a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let uri = url.as_str().parse().map_err(|_| Unusable::NotHttp)?;
        Ok(Self { url, uri })
    }

    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether the host is this machine by name or number: no proxy is ever asked for it.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.uri)
    }

    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// `Host` as HTTP/1.1 has it, without the scheme's own port.
    pub fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// Where a redirect to `location` leads, if it stays at scheme, host and port: headers may carry credentials of this origin.
    pub fn redirected(&self, location: Option<&[u8]>) -> Result<Self, Unusable> {
        let text = location.and_then(|l| std::str::from_utf8(l).ok());
        let text = text.ok_or(Unusable::NoLocation)?;
        let url = self.url.join(text).map_err(|_| Unusable::NoLocation)?;
        if url.origin() != self.url.origin() {
            return Err(Unusable::OtherOrigin);
        }
        Self::new(url)
    }
}

/// Whether a URI's host is this machine by name or number.
pub(super) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<std::net::IpAddr>() {
        return ip.is_loopback();
    }
    let name = bare.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Scheme, host and path only: a query may hold a key.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.url.path();
        write!(f, "{}{path}", self.url.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::new(Url::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn a_redirect_stays_at_scheme_host_and_port() {
        let at = address("http://a.example:8080/mcp");
        let to = |l: &str| at.redirected(Some(l.as_bytes())).map(|a| a.uri.to_string());
        assert_eq!(to("/mcp/").unwrap(), "http://a.example:8080/mcp/");
        assert_eq!(to("x?y=1").unwrap(), "http://a.example:8080/x?y=1");
        for other in [
            "https://a.example:8080/mcp",
            "http://a.example/mcp",
            "//b.example:8080/mcp",
            "http://b.example:8080/mcp",
        ] {
            assert_eq!(to(other), Err(Unusable::OtherOrigin), "{other}");
        }
        assert_eq!(at.redirected(None).unwrap_err(), Unusable::NoLocation);
    }

    #[test]
    fn what_could_be_secret_is_not_printed() {
        let at = address("https://user:pass@a.example/mcp?key=abc#x");
        assert_eq!(format!("{at:?}"), "https://a.example/mcp");
        assert_eq!(at.uri().to_string(), "https://a.example/mcp?key=abc");
        assert_eq!(at.host(), "a.example");
    }

    #[test]
    fn loopback_is_known_by_name_and_number() {
        for text in ["http://127.0.0.1:1/", "http://[::1]/", "http://LOCALHOST/"] {
            assert!(address(text).is_loopback(), "{text}");
        }
        assert!(!address("http://localhost.example/").is_loopback());
    }
}
