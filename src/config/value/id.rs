//! Names of servers and paths of endpoints.

use std::{fmt, str::FromStr};

use super::{Written, Wrong};

/// A server's name: `[a-z][a-z0-9-]{0,30}`, so that the first `__` of an exposed name always ends it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(Box<str>);

const LONGEST_ID: usize = 31;

impl ServerId {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id that a name of a desktop client's file becomes: lower case, everything else to single `-`, cut to
    /// 31 characters. Nothing if no letter or digit is left.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut id = String::new();
        for c in name.chars().flat_map(char::to_lowercase) {
            match c {
                'a'..='z' => id.push(c),
                '0'..='9' if id.is_empty() => id.extend(['s', c]),
                '0'..='9' => id.push(c),
                _ if id.is_empty() || id.ends_with('-') => {}
                _ => id.push('-'),
            }
        }
        id.truncate(LONGEST_ID);
        let id = id.trim_end_matches('-');
        (!id.is_empty()).then(|| ServerId(id.into()))
    }
}

impl Written for ServerId {
    const KIND: &'static str = "server-id";
    const NOUN: &'static str = "the name of a server";
    const EXAMPLE: &'static str = "files";
    const PATTERN: Option<&'static str> = Some("^[a-z][a-z0-9-]{0,30}$");
}

impl FromStr for ServerId {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let fits = text.len() <= LONGEST_ID
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if fits {
            return Ok(ServerId(text.into()));
        }
        let shape = "up to 31 lower-case letters, digits and `-`, beginning with a letter";
        let write = match ServerId::from_name(text) {
            Some(id) => format!("{shape}, such as `{id}`"),
            None => format!("{shape}, such as `files`"),
        };
        Err(Wrong::new("not a name for a server", write))
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ServerId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl serde::Serialize for ServerId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

/// The path of an endpoint: begins with `/`, without a `/` at the end, and none of the gateway's own paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointPath(Box<str>);

impl EndpointPath {
    /// The path, without a `/` at the end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `/mcp`, where everything is found if nothing else is said.
    pub(crate) fn standard() -> Self {
        EndpointPath("/mcp".into())
    }
}

impl Written for EndpointPath {
    const KIND: &'static str = "endpoint-path";
    const NOUN: &'static str = "the path of an endpoint";
    const EXAMPLE: &'static str = "/mcp";
    const PATTERN: Option<&'static str> = Some("^/");
}

impl FromStr for EndpointPath {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let example = "a path such as `/mcp` or `/teams/data`";
        let Some(path) = text.strip_prefix('/') else {
            return Err(Wrong::new("a path without a `/` at its start", example));
        };
        let path = path.strip_suffix('/').unwrap_or(path);
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
        let odd =
            |part: &str| part.is_empty() || part == "." || part == ".." || !part.bytes().all(plain);
        if path.split('/').any(odd) {
            return Err(Wrong::new(
                "not a plain path",
                "letters, digits, `-`, `_`, `.` and `~` between single `/`, such as `/mcp`",
            ));
        }
        let first = path.split('/').next().unwrap_or(path);
        if matches!(first, "healthz" | ".well-known") {
            return Err(Wrong::new(
                format!("a path of the gateway's own (`/{first}`)"),
                example,
            ));
        }
        Ok(EndpointPath(format!("/{path}").into()))
    }
}

impl fmt::Display for EndpointPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_desktop_files_become_ids() {
        for (name, id) in [
            ("Brave Search", "brave-search"),
            ("my_server", "my-server"),
            ("@scope/server.x", "scope-server-x"),
            ("  a  ", "a"),
            ("3d-tools", "s3d-tools"),
            ("Ünïcode", "n-code"),
            (
                "a-very-long-name-that-has-more-than-31-characters",
                "a-very-long-name-that-has-more",
            ),
        ] {
            assert_eq!(ServerId::from_name(name).unwrap().as_str(), id);
        }
        assert!(ServerId::from_name("日本").is_none() && ServerId::from_name("").is_none());
    }

    #[test]
    fn a_wrong_id_is_told_what_to_be() {
        let wrong = "My Server".parse::<ServerId>().unwrap_err();
        assert!(wrong.write.ends_with("such as `my-server`"), "{wrong}");
    }

    #[test]
    fn endpoints_have_plain_paths_of_their_own() {
        for (text, path) in [("/mcp", "/mcp"), ("/mcp/", "/mcp"), ("/a/b.c", "/a/b.c")] {
            assert_eq!(text.parse::<EndpointPath>().unwrap().as_str(), path);
        }
        for text in [
            "",
            "/",
            "mcp",
            "//a",
            "/a//b",
            "/a/../b",
            "/healthz",
            "/healthz/x",
            "/.well-known/x",
            "/a?b",
            "/{x}",
            "/a b",
            "/%41",
        ] {
            assert!(text.parse::<EndpointPath>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_id_made_of_a_name_is_an_id_and_stays_itself(name in "\\PC{0,60}") {
            if let Some(id) = ServerId::from_name(&name) {
                prop_assert_eq!(id.as_str().parse::<ServerId>().unwrap(), id.clone());
                prop_assert_eq!(ServerId::from_name(id.as_str()).unwrap(), id);
            }
        }

        #[test]
        fn an_id_without_a_dash_at_its_end_or_doubled_is_its_own_name(id in "[a-z][a-z0-9]{0,10}(-[a-z0-9]{1,9}){0,2}") {
            let made = ServerId::from_name(&id).unwrap();
            prop_assert_eq!(made.as_str(), id.as_str());
        }
    }
}
