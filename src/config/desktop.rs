//! Files as desktop clients and VS Code keep them, taken as they are.
//!
//! Works on the tree, before it is read: another name for `servers`, names that become ids, servers that are switched
//! off, files with more variables. What is known inside a server is in the schema, since our own files take it too.

use std::path::Path as File;

use super::{
    fault::{Path, Position, Quoted, Report},
    tree::{Data, Entry, Format, Node, Origin, Text},
    value::ServerId,
};

/// A server whose name in the file could not be its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name in the file.
    pub name: String,
    /// The id that it became.
    pub id: ServerId,
}

/// Whether a file is a desktop client's: JSON with nothing but servers, and what VS Code asks of a person.
pub(crate) fn is_desktop(top: &Node, format: Format) -> bool {
    let entries = top.entries();
    format == Format::Json
        && entries
            .iter()
            .all(|entry| matches!(&*entry.key, "servers" | "mcpServers" | "inputs"))
        && entries.iter().any(|entry| entry.key != "inputs")
}

/// Gives every file the same shape: `servers` by id.
pub(crate) fn level(top: &mut Node, desktop: bool, report: &mut Report) -> Vec<Renamed> {
    let Data::Map(entries) = &mut top.data else {
        return Vec::new();
    };
    // Editors look there for the schema.
    entries.retain(|entry| entry.key != "$schema" && !(desktop && entry.key == "inputs"));
    let alias = entries.iter().position(|entry| entry.key == "mcpServers");
    if let Some(alias) = alias {
        if let Some(servers) = entries.iter().find(|entry| entry.key == "servers") {
            let text = format!(
                "means the same as `servers` in line {}; write one of them only",
                servers.at.line
            );
            report.fault(entries[alias].at, &Path::default().key("mcpServers"), text);
            entries.remove(alias);
        } else {
            entries[alias].key = "servers".into();
        }
    }
    let servers = entries.iter_mut().find(|entry| entry.key == "servers");
    match servers {
        Some(servers) if desktop || servers.written == "mcpServers" => {
            name_urls(&mut servers.value);
            rename(servers, report)
        }
        _ => Vec::new(),
    }
}

/// Some clients have other names for `url`.
fn name_urls(servers: &mut Node) {
    let Data::Map(servers) = &mut servers.data else {
        return;
    };
    for server in servers {
        let Data::Map(entries) = &mut server.value.data else {
            continue;
        };
        if entries.iter().any(|entry| entry.key == "url") {
            continue;
        }
        if let Some(url) = entries
            .iter_mut()
            .find(|entry| matches!(&*entry.key, "serverUrl" | "httpUrl"))
        {
            url.key = "url".into();
        }
    }
}

/// Turns names into ids.
fn rename(servers: &mut Entry, report: &mut Report) -> Vec<Renamed> {
    let path = Path::default().key(&servers.written);
    let Data::Map(entries) = &mut servers.value.data else {
        return Vec::new();
    };
    let mut renamed = Vec::new();
    for index in 0..entries.len() {
        let (before, entry) = (&entries[..index], &entries[index]);
        let here = path.key(&entry.written);
        let Some(id) = ServerId::from_name(&entry.written) else {
            let text =
                "has no letter or digit that its name could be made of; write one such as `files`";
            report.fault(entry.at, &here, text);
            continue;
        };
        if let Some(other) = before.iter().find(|other| other.key == id.as_str()) {
            let (one, two) = (Quoted(&other.written, '`'), Quoted(&entry.written, '`'));
            report.fault(
                entry.at,
                &here,
                format!("{one} and {two} would both be called `{id}`; rename one of them"),
            );
        }
        if id.as_str() != entry.written {
            renamed.push(Renamed {
                name: entry.written.clone(),
                id: id.clone(),
            });
        }
        entries[index].key = id.as_str().to_owned();
    }
    // What has been reported is not reported again for what follows from it.
    let mut seen = Vec::new();
    entries.retain(|entry| {
        let fresh = ServerId::from_name(&entry.written).is_some() && !seen.contains(&entry.key);
        seen.push(entry.key.clone());
        fresh
    });
    renamed
}

/// Takes out the servers that are switched off, and says which.
pub(crate) fn take_disabled(top: &mut Node) -> Vec<String> {
    let mut disabled = Vec::new();
    for servers in servers_mut(top) {
        servers.retain(|server| {
            let off = server
                .value
                .get("disabled")
                .is_some_and(|node| match &node.data {
                    Data::Bool(off) => *off,
                    Data::Text(text) => text.origin == Origin::Elsewhere && text.text == "true",
                    _ => false,
                });
            if off {
                disabled.push(server.key.clone());
            }
            !off
        });
    }
    disabled
}

/// Adds the variables of each server's `envFile` to its `env`, which comes first.
pub(crate) fn add_env_files(top: &mut Node, folder: &File) {
    for server in servers_mut(top).flat_map(|servers| servers.iter_mut()) {
        let Data::Map(entries) = &mut server.value.data else {
            continue;
        };
        let Some(file) = entries.iter_mut().find(|entry| entry.key == "envFile") else {
            continue;
        };
        let at = file.at;
        let Data::Text(name) = &mut file.value.data else {
            continue;
        };
        if matches!(name.origin, Origin::Missing(_)) {
            continue;
        }
        match std::fs::read_to_string(folder.join(&name.text)) {
            Ok(text) => add_variables(entries, variables(&text), at),
            Err(error) => {
                name.origin = Origin::Missing(format!("the file cannot be read: {error}"))
            }
        }
    }
}

/// Adds variables to the `env` of a server where it does not have them.
fn add_variables(server: &mut Vec<Entry>, variables: Vec<(String, String)>, at: Position) {
    let entry = |key: String, data: Data| Entry {
        at,
        written: key.clone(),
        key,
        value: Node { at, data },
    };
    server.retain(|entry| entry.key != "env" || !matches!(entry.value.data, Data::Null));
    if !server.iter().any(|entry| entry.key == "env") {
        server.push(entry("env".into(), Data::Map(Vec::new())));
    }
    let env = server.iter_mut().find(|entry| entry.key == "env");
    let Some(Data::Map(env)) = env.map(|env| &mut env.value.data) else {
        return;
    };
    for (name, text) in variables {
        if !env.iter().any(|entry| entry.key == name) {
            env.push(entry(
                name,
                Data::Text(Text {
                    text,
                    origin: Origin::Elsewhere,
                }),
            ));
        }
    }
}

fn servers_mut(top: &mut Node) -> impl Iterator<Item = &mut Vec<Entry>> {
    let entries = match &mut top.data {
        Data::Map(entries) => &mut entries[..],
        _ => &mut [],
    };
    let servers = entries.iter_mut().filter(|entry| entry.key == "servers");
    servers.filter_map(|servers| match &mut servers.value.data {
        Data::Map(servers) => Some(servers),
        _ => None,
    })
}

/// The variables of a `NAME=value` file: comments, `export`, single quotes as they stand, double ones with escapes.
/// Of two lines for one name the later counts.
fn variables(text: &str) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.starts_with('#') {
            continue;
        }
        let quoted = |quote: char| {
            value
                .strip_prefix(quote)
                .and_then(|rest| rest.split_once(quote))
        };
        let value = match (quoted('\''), quoted('"')) {
            (Some((inside, _)), _) => inside.to_owned(),
            (None, Some((inside, _))) => inside.replace("\\n", "\n"),
            (None, None) => value
                .split(" #")
                .next()
                .unwrap_or(value)
                .trim_end()
                .to_owned(),
        };
        variables.retain(|(other, _)| other != name);
        variables.push((name.to_owned(), value));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_variables_is_read_as_shells_read_it() {
        let text =
            "\u{feff}# c\nA=1\nexport B = two # c\nC='x # y' z\nD=\"a\\nb\"\n\nbad\nE=\nA=3\n=x\n";
        let expected = [
            ("B", "two"),
            ("C", "x # y"),
            ("D", "a\nb"),
            ("E", ""),
            ("A", "3"),
        ];
        assert_eq!(
            variables(text),
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}
