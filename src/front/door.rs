//! Which names and origins may come in: the guard against DNS rebinding.
//!
//! Answers "Security Warning" of the transport pages: a page from elsewhere must
//! not reach a gateway on this machine through a name that it controls.

use http::{HeaderMap, HeaderValue, header};
use url::Url;

/// Hosts and origins that are allowed besides loopback.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// Host names, each with the port it must have, if any.
    pub hosts: Vec<(String, Option<u16>)>,
    /// Origins, as `scheme://host[:port]`.
    pub origins: Vec<String>,
    pub any_origin: bool,
}

/// What is wrong with a request at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barred {
    Host,
    Origin,
}

impl Door {
    /// Checks `Host` (or the authority of HTTP/2) and `Origin`.
    pub fn check(&self, authority: Option<&str>, headers: &HeaderMap) -> Result<(), Barred> {
        let host = match authority {
            Some(authority) => Some(authority),
            None => headers.get(header::HOST).and_then(|h| h.to_str().ok()),
        };
        if !host.is_some_and(|h| self.admits_host(h)) {
            return Err(Barred::Host);
        }
        match headers.get(header::ORIGIN) {
            Some(origin) if !self.admits_origin(origin) => Err(Barred::Origin),
            _ => Ok(()),
        }
    }

    fn admits_host(&self, host: &str) -> bool {
        let (name, port) = split(host);
        if is_loopback(name) {
            return true;
        }
        let fits = |(allowed, only): &(String, Option<u16>)| {
            allowed.eq_ignore_ascii_case(name) && only.is_none_or(|p| Some(p) == port)
        };
        self.hosts.iter().any(fits)
    }

    pub fn admits_origin(&self, origin: &HeaderValue) -> bool {
        if self.any_origin {
            return true;
        }
        let Ok(text) = origin.to_str() else {
            return false;
        };
        if self.origins.iter().any(|o| o.eq_ignore_ascii_case(text)) {
            return true;
        }
        let url = Url::parse(text).ok();
        let web = |u: &Url| matches!(u.scheme(), "http" | "https");
        let host = url.as_ref().filter(|u| web(u)).and_then(Url::host_str);
        host.is_some_and(is_loopback)
    }
}

/// Name and port; an IPv6 address keeps its brackets out.
fn split(host: &str) -> (&str, Option<u16>) {
    if let Some(rest) = host.strip_prefix('[') {
        let (name, after) = rest.split_once(']').unwrap_or((rest, ""));
        return (name, after.strip_prefix(':').and_then(|p| p.parse().ok()));
    }
    match host.split_once(':') {
        Some((name, port)) => (name, port.parse().ok()),
        None => (host, None),
    }
}

fn is_loopback(name: &str) -> bool {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let address = name.parse::<std::net::IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|a| a.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(door: &Door, host: &'static str, origin: Option<&'static str>) -> Result<(), Barred> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        }
        door.check(None, &headers)
    }

    #[test]
    fn loopback_and_what_is_listed_come_in() {
        let door = Door {
            hosts: vec![("mcp.example.com".into(), None), ("other".into(), Some(81))],
            origins: vec!["https://app.example.com".into()],
            any_origin: false,
        };
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "[::1]:80",
            "MCP.example.com",
            "mcp.example.com:443",
            "other:81",
        ] {
            assert_eq!(check(&door, host, None), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "other:82",
            "other",
            "127.0.0.1.evil.example",
            "[::2]",
        ] {
            assert_eq!(check(&door, host, None), Err(Barred::Host), "{host}");
        }
        for origin in [
            "http://localhost:3000",
            "https://app.example.com",
            "http://[::1]:1",
        ] {
            assert_eq!(check(&door, "localhost", Some(origin)), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "https://evil.example",
            "https://app.example.com.evil",
            "file://localhost",
            "",
        ] {
            assert_eq!(
                check(&door, "localhost", Some(origin)),
                Err(Barred::Origin),
                "{origin}"
            );
        }
    }

    #[test]
    fn a_request_without_a_host_stays_out() {
        assert_eq!(
            Door::default().check(None, &HeaderMap::new()),
            Err(Barred::Host)
        );
        assert_eq!(
            Door::default().check(Some("localhost"), &HeaderMap::new()),
            Ok(())
        );
    }
}
