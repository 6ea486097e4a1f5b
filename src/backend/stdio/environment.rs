//! The environment of a server: named variables of ours, and what the operator set.
//!
//! A server gets what programs need to find their parts, their user and the network,
//! and nothing else of the gateway's environment: keys and tokens stay here. What
//! more it needs stands in `env`, or by name in `inherit_env`.

use std::ffi::OsString;

/// Variables that every server gets, if they are set.
const NAMES: &[&str] = &[
    // finding programs, the user, the place
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    // reaching the network as the gateway does
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    // trusting the same certificates
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    // where package runners keep what they fetched; registry addresses often hold a
    // token and are passed by `inherit_env` only
    "npm_config_cache",
    "NPM_CONFIG_CACHE",
    "UV_CACHE_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR",
];

/// Beginnings of names that every server gets.
const PREFIXES: &[&str] = &["LC_"];

/// The whole environment of a server. `ours` is the gateway's.
pub(super) fn of_server(
    ours: impl Iterator<Item = (OsString, OsString)>,
    inherited: &[String],
    set: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsString| {
        let Some(name) = name.to_str() else {
            return false;
        };
        NAMES.contains(&name)
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || inherited.iter().any(|wanted| wanted == name)
    };
    let is_set = |name: &OsString| set.iter().any(|(own, _)| name == own.as_str());
    let mut all: Vec<_> = ours
        .filter(|(name, _)| passes(name) && !is_set(name))
        .collect();
    all.extend(set.iter().map(|(name, value)| (name.into(), value.into())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_gets_what_is_named_and_no_secret() {
        let ours = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("https_proxy", "http://proxy"),
            ("NODE_EXTRA_CA_CERTS", "/ca.pem"),
            ("DRAWBRIDGE_KEY", "secret"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("WANTED", "yes"),
            ("HOME", "/root"),
        ];
        let ours = ours.map(|(k, v)| (OsString::from(k), OsString::from(v)));
        let set = [("HOME".to_owned(), "/srv".to_owned())];
        let mut got = of_server(ours.into_iter(), &["WANTED".to_owned()], &set);
        got.sort();
        let names: Vec<_> = got.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "HOME",
                "LC_ALL",
                "NODE_EXTRA_CA_CERTS",
                "PATH",
                "WANTED",
                "https_proxy"
            ]
        );
        assert_eq!(got[0].1, "/srv");
    }
}
