//! What a gateway says on standard output when it is open: where it is, and how to use it.
//!
//! No token is ever in it: standard output ends up in logs. The lines to paste take
//! it from `DRAWBRIDGE_TOKEN`.

use super::source::Origin;
use crate::config::{Auth, Config};
use serde_json::json;
use std::{
    fmt::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Servers named in one line; more are counted.
const NAMED: usize = 8;

/// What the text is made of.
pub(super) struct Facts<'a> {
    pub origin: &'a Origin,
    pub config: &'a Config,
    /// Whether `--token` was given.
    pub token: bool,
    pub public: &'a [SocketAddr],
    pub admin: Option<SocketAddr>,
}

/// The whole text.
pub(super) fn text(facts: &Facts<'_>) -> String {
    let base = base(facts);
    let mut text = format!("Drawbridge {} is open\n\n", env!("CARGO_PKG_VERSION"));
    text.push_str(&super::table::table(&endpoints(facts, &base)));
    text.push('\n');
    text.push_str(&super::table::table(&notes(facts)));
    if let Some(path) = facts.config.endpoints.keys().next() {
        let url = format!("{base}{}", path.as_str());
        let keys = asks(facts);
        let _ = write!(text, "\nTry it:\n\n{}\n", curl(&url, keys));
        let _ = write!(text, "\nFor a client:\n\n{}\n", snippet(&url, keys));
    }
    text
}

/// Where clients find the gateway, without a path.
fn base(facts: &Facts<'_>) -> String {
    if let Some(url) = &facts.config.public_url {
        return url.as_url().as_str().trim_end_matches('/').to_owned();
    }
    let scheme = match facts.config.tls {
        Some(_) => "https",
        None => "http",
    };
    match facts.public.first() {
        Some(address) => format!("{scheme}://{}", reachable(*address)),
        None => String::new(),
    }
}

/// An address that stands for all is none that one can connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn asks(facts: &Facts<'_>) -> bool {
    facts.token || matches!(facts.config.auth, Some(Auth::Keys(_)))
}

fn endpoints(facts: &Facts<'_>, base: &str) -> Vec<Vec<String>> {
    let config = facts.config;
    let mut rows = Vec::new();
    for (path, endpoint) in &config.endpoints {
        let servers = config.servers_of(endpoint);
        let names = servers.iter().map(|(id, _)| id.as_str());
        rows.push((format!("{base}{}", path.as_str()), named(names.collect())));
    }
    if config.single_server && !config.servers.is_empty() {
        let what = "each server alone, its names untouched".to_owned();
        rows.push((format!("{base}/mcp/{{server}}"), what));
    }
    let indented = |(url, what): (String, String)| vec![format!("  {url}"), what];
    rows.into_iter().map(indented).collect()
}

fn named(names: Vec<&str>) -> String {
    match names.len() {
        0 => "no servers".into(),
        n if n > NAMED => format!("{}, … ({n} servers)", names[..NAMED].join(", ")),
        _ => names.join(", "),
    }
}

fn notes(facts: &Facts<'_>) -> Vec<Vec<String>> {
    let config = facts.config;
    let mut rows = Vec::new();
    let mut note = |what: &str, text: String| rows.push(vec![format!("  {what}"), text]);
    match facts.origin {
        Origin::File(path) => note("Configuration", path.display().to_string()),
        Origin::Examples => note(
            "Configuration",
            "none in this folder: these are the built-in example servers".into(),
        ),
        Origin::CommandLine => {}
    }
    let listens: Vec<String> = facts.public.iter().map(SocketAddr::to_string).collect();
    if listens.len() > 1 || config.public_url.is_some() {
        note("Listens on", listens.join(", "));
    }
    let auth = match (asks(facts), config.listen.is_loopback()) {
        (true, _) => {
            "on: clients show `Authorization: Bearer KEY`; below, the key is taken from DRAWBRIDGE_TOKEN"
        }
        (false, true) => "off: everyone on this machine may connect",
        (false, false) => "off: everyone who can reach this address may connect",
    };
    note("Auth", auth.into());
    if !config.listen.is_loopback() && config.public_url.is_none() && config.hosts.is_empty() {
        let text = "only localhost and loopback addresses; add others with --public-url or `hosts`";
        note("Hosts", text.into());
    }
    let metrics = match facts.admin.map(reachable) {
        None => "off".to_owned(),
        Some(address) => {
            let key = match config.admin.key {
                Some(_) => " (with the admin key)",
                None => "",
            };
            format!("http://{address}/metrics{key}; probes at /livez and /readyz")
        }
    };
    note("Metrics", metrics);
    rows
}

/// One line for a shell: opens a session and lists the tools.
fn curl(url: &str, keys: bool) -> String {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": crate::mcp::Revision::NEWEST_LEGACY.as_str(),
            "capabilities": {},
            "clientInfo": {"name": "curl", "version": "1"},
        },
    });
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let key = match keys {
        true => " -H \"Authorization: Bearer $DRAWBRIDGE_TOKEN\"",
        false => "",
    };
    format!(
        "m() {{ curl -sS {url}{key} -H 'Content-Type: application/json' \
         -H 'Accept: application/json, text/event-stream' \"$@\"; }}; \
         s=$(m -o /dev/null -D - -d '{initialize}' | tr -d '\\r' | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p'); \
         m -H \"Mcp-Session-Id: $s\" -d '{list}'"
    )
}

/// The entry as desktop clients keep it.
fn snippet(url: &str, keys: bool) -> String {
    let mut server = json!({"type": "http", "url": url});
    if keys {
        server["headers"] = json!({"Authorization": "Bearer ${DRAWBRIDGE_TOKEN}"});
    }
    format!("{:#}", json!({"mcpServers": {"drawbridge": server}}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn shown(config: &Config, token: bool) -> String {
        text(&Facts {
            origin: &Origin::Examples,
            config,
            token,
            public: &["0.0.0.0:8080".parse().unwrap()],
            admin: Some("127.0.0.1:9090".parse().unwrap()),
        })
    }

    #[test]
    fn an_address_of_all_becomes_one_to_connect_to() {
        let text = shown(&Config::examples(Path::new("/x")), false);
        assert!(text.contains("http://127.0.0.1:8080/mcp "), "{text}");
        assert!(text.contains("travel, weather, calendar"), "{text}");
        assert!(text.contains("http://127.0.0.1:9090/metrics"), "{text}");
    }

    #[test]
    fn the_snippet_is_json_and_asks_for_the_key_where_one_is_needed() {
        let config = Config::examples(Path::new("/x"));
        for token in [false, true] {
            let text = shown(&config, token);
            let json = text.split("For a client:").nth(1).unwrap();
            let json: serde_json::Value = serde_json::from_str(json).unwrap();
            let server = &json["mcpServers"]["drawbridge"];
            assert_eq!(server["url"], "http://127.0.0.1:8080/mcp");
            assert_eq!(server["headers"]["Authorization"].is_string(), token);
        }
    }

    #[test]
    fn the_address_that_clients_know_goes_first() {
        let config = Config {
            public_url: Some("https://mcp.example.com/".parse().unwrap()),
            ..Config::examples(Path::new("/x"))
        };
        let text = shown(&config, true);
        assert!(
            text.contains("curl -sS https://mcp.example.com/mcp -H"),
            "{text}"
        );
    }
}
