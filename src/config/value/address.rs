//! Addresses to listen on.

use std::{borrow::Cow, fmt, net::IpAddr, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::{Written, Wrong};

/// A host and a port to listen on. Port 0 takes a free one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    host: Box<str>,
    port: u16,
}

/// One or more addresses to listen on, in the order written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen(Vec<Address>);

/// An address, or `off`; only to check it.
pub(super) struct AdminAddress;

impl Address {
    /// The name or IP address, without the brackets of IPv6.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether only this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(ip)) => ip.to_canonical().is_loopback(),
            Ok(ip) => ip.is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// A port of 127.0.0.1; for the defaults.
    pub(crate) fn local(port: u16) -> Self {
        Address {
            host: "127.0.0.1".into(),
            port,
        }
    }
}

impl Written for Address {
    const KIND: &'static str = "address";
    const NOUN: &'static str = "an address";
    const EXAMPLE: &'static str = "127.0.0.1:8080";
}

impl FromStr for Address {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let wrong = || {
            Wrong::new(
                "not an address",
                "a host and a port, such as `127.0.0.1:8080`, `[::1]:8080` or `0.0.0.0:8080`",
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        // `u16::from_str` would also take a plus sign.
        if !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        let port = port.parse().map_err(|_| wrong())?;
        let host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
            Some(ip) if ip.parse::<std::net::Ipv6Addr>().is_ok() => ip,
            None if is_name(host) => host,
            _ => return Err(wrong()),
        };
        Ok(Address {
            host: host.into(),
            port,
        })
    }
}

/// A DNS name or IPv4 address. An IPv6 address without brackets has a `:` too many.
fn is_name(host: &str) -> bool {
    !host.is_empty()
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl serde::Serialize for Address {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Written for AdminAddress {
    const KIND: &'static str = "address-or-off";
    const NOUN: &'static str = "an address or `off`";
    const EXAMPLE: &'static str = "127.0.0.1:9090";
}

impl FromStr for AdminAddress {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let address = if text == "off" {
            Ok(())
        } else {
            text.parse::<Address>().map(drop)
        };
        address.map(|()| AdminAddress).map_err(|_| {
            Wrong::new(
                "not an address",
                "a host and a port, such as `127.0.0.1:9090`, or `off`",
            )
        })
    }
}

/// `None` for `off`. Used by the admin listener's field.
pub(crate) fn address_or_off<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Address>, D::Error> {
    let text = String::deserialize(from)?;
    if text == "off" {
        Ok(None)
    } else {
        text.parse().map(Some).map_err(serde::de::Error::custom)
    }
}

/// The schema of an address or `off`.
pub(crate) fn address_or_off_schema(_: &mut SchemaGenerator) -> Schema {
    super::schema_of::<AdminAddress>()
}

impl Listen {
    /// The addresses; at least one.
    pub fn addresses(&self) -> &[Address] {
        &self.0
    }

    /// Whether only this machine can reach all of them.
    pub fn is_loopback(&self) -> bool {
        self.0.iter().all(Address::is_loopback)
    }

    /// One address.
    pub fn one(address: Address) -> Self {
        Listen(vec![address])
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Shape {
            One(Address),
            Several(Vec<Address>),
        }
        match Shape::deserialize(from)? {
            Shape::One(address) => Ok(Listen(vec![address])),
            Shape::Several(addresses) if addresses.is_empty() => {
                Err(serde::de::Error::custom("is empty"))
            }
            Shape::Several(addresses) => Ok(Listen(addresses)),
        }
    }
}

impl serde::Serialize for Listen {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(to),
            several => several.serialize(to),
        }
    }
}

impl JsonSchema for Listen {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let address = super::schema_of::<Address>();
        json_schema!({ "anyOf": [address, { "type": "array", "items": address, "minItems": 1 }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (text, host, port, loopback) in [
            ("127.0.0.1:8080", "127.0.0.1", 8080, true),
            ("127.9.9.9:1", "127.9.9.9", 1, true),
            ("[::1]:0", "::1", 0, true),
            ("[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1", 1, true),
            ("localhost:80", "localhost", 80, true),
            ("0.0.0.0:80", "0.0.0.0", 80, false),
            ("[::]:80", "::", 80, false),
            ("gw.example.com:80", "gw.example.com", 80, false),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(
                (address.host(), address.port(), address.is_loopback()),
                (host, port, loopback)
            );
            assert_eq!(address.to_string(), text);
        }
        for text in [
            "",
            "8080",
            ":8080",
            "127.0.0.1",
            "127.0.0.1:",
            "a:+1",
            "a:65536",
            "::1:80",
            "http://a:80",
            "[a]:80",
            "a b:80",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
