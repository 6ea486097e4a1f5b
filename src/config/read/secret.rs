//! Secrets: a text, or where to find it.

use std::{
    fs::File,
    io::{self, Read},
};

use serde_json::{Value, json};

use super::Reader;
use crate::config::{
    fault::{Path, Quoted},
    tree::{Data, Entry, Node, Origin},
};

/// Longer than any key or certificate in a header.
const LONGEST: u64 = 64 * 1024;

impl Reader<'_> {
    pub(super) fn secret(&mut self, node: &Node, path: &Path) -> Option<Value> {
        match &node.data {
            Data::Text(text) => match &text.origin {
                Origin::Missing(reason) => self.lack(reason, path),
                _ => Some(Value::String(text.text.clone())),
            },
            Data::Number(written, _) => Some(Value::String(written.clone())),
            Data::Bool(boolean) => Some(Value::String(boolean.to_string())),
            Data::Map(entries) => match &entries[..] {
                [entry] if matches!(&*entry.key, "env" | "file") => {
                    self.elsewhere(node, entry, path)
                }
                _ => self.no_secret(node, path),
            },
            Data::Null | Data::List(_) => self.no_secret(node, path),
        }
    }

    fn no_secret(&mut self, node: &Node, path: &Path) -> Option<Value> {
        let text = format!(
            "is {}; write a text, `{{ env: NAME }}` or `{{ file: PATH }}`",
            node.noun()
        );
        self.report.fault(node.at, path, text);
        None
    }

    /// A secret that stands in a variable or a file.
    fn elsewhere(&mut self, node: &Node, entry: &Entry, path: &Path) -> Option<Value> {
        let place = self.read(
            &entry.value,
            &json!({ "type": "string", "minLength": 1 }),
            &path.key(&entry.key),
        )?;
        let place = place.as_str().unwrap_or_default();
        let shown = match entry.value.is_shown() {
            true => format!(" {}", Quoted(place, '`')),
            false => String::new(),
        };
        let found = match &*entry.key {
            "env" => (self.lookup)(place)
                .ok_or_else(|| format!("the environment variable{shown} is not set")),
            _ => read_file(&self.folder.join(place))
                .map_err(|error| format!("the file{shown} cannot be read: {error}")),
        };
        match found {
            Ok(text) => Some(Value::String(text)),
            Err(reason) if self.in_server => self.lack(&reason, path),
            Err(reason) => {
                self.report.fault(node.at, path, reason);
                None
            }
        }
    }
}

/// The text of a file, without its last line break.
fn read_file(path: &std::path::Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(LONGEST + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is longer than 64 KiB",
        ));
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}
