//! Who may read what is not a probe.

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{Digest, SHA256, digest},
};
use http::{HeaderMap, Uri, header};
use std::net::IpAddr;

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barred {
    /// The key is missing or not ours.
    Key,
    /// Without a key, only names that no page from elsewhere can take are good.
    Host,
}

/// The key that is asked for, known by its hash so that a comparison does not tell its length either.
pub(super) struct Guard(Option<Digest>);

impl Guard {
    pub fn new(key: Option<&str>) -> Self {
        Self(key.map(|key| digest(&SHA256, key.as_bytes())))
    }

    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Barred> {
        let Some(key) = &self.0 else {
            return is_direct(uri, headers).then_some(()).ok_or(Barred::Host);
        };
        let shown = bearer(headers).unwrap_or_default();
        let shown = digest(&SHA256, shown.as_bytes());
        verify_slices_are_equal(key.as_ref(), shown.as_ref()).map_err(|_| Barred::Key)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether the request was made to an address or to `localhost`: any other name might be one that
/// a browser's page has turned to this machine (DNS rebinding).
fn is_direct(uri: &Uri, headers: &HeaderMap) -> bool {
    let header = headers.get(header::HOST).and_then(|h| h.to_str().ok());
    let authority = match (uri.authority(), header.map(str::parse)) {
        (Some(authority), _) => authority.clone(),
        (None, Some(Ok(authority))) => authority,
        _ => return false,
    };
    let name: http::uri::Authority = authority;
    let host = name.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, http::HeaderValue::from_static(value))])
    }

    #[test]
    fn the_key_and_nothing_else_opens() {
        let guard = Guard::new(Some("s3cret"));
        let check =
            |value| guard.check(&Uri::from_static("/"), &with(header::AUTHORIZATION, value));
        assert_eq!(check("Bearer s3cret"), Ok(()));
        assert_eq!(check("bearer s3cret"), Ok(()));
        for wrong in [
            "Bearer s3cre",
            "Bearer",
            "Bearer ",
            "Basic s3cret",
            "s3cret",
        ] {
            assert_eq!(check(wrong), Err(Barred::Key), "{wrong}");
        }
        let none = guard.check(&Uri::from_static("/"), &HeaderMap::new());
        assert_eq!(none, Err(Barred::Key));
    }

    #[test]
    fn without_a_key_only_addresses_and_localhost_are_good() {
        let guard = Guard::new(None);
        let check = |host| guard.check(&Uri::from_static("/"), &with(header::HOST, host));
        for host in ["127.0.0.1:9090", "[::1]:9090", "localhost:9090", "10.0.0.7"] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
        for host in ["evil.example:9090", "", "localhost.evil.example"] {
            assert_eq!(check(host), Err(Barred::Host), "{host}");
        }
        let h2 = Uri::from_static("http://127.0.0.1:9090/metrics");
        assert_eq!(guard.check(&h2, &HeaderMap::new()), Ok(()));
    }
}
