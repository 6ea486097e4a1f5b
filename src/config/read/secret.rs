//! Secrets: a text, or where to find it.

use std::{
    fs::File,
    io::{self, Read},
};

use serde_json::Value;

use super::Reader;
use crate::config::{
    fault::{Path, Quoted},
    tree::{Data, Node, Origin},
};

/// Longer than any key or certificate in a header.
const LONGEST: u64 = 64 * 1024;

impl Reader<'_> {
    pub(super) fn secret(&mut self, node: &Node, path: &Path) -> Option<Value> {
        match &node.data {
            Data::Text(text) => match &text.origin {
                Origin::Missing(reason) => self.lack(&reason.clone(), path),
                _ => Some(Value::String(text.text.clone())),
            },
            Data::Number(written, _) => Some(Value::String(written.clone())),
            Data::Bool(boolean) => Some(Value::String(boolean.to_string())),
            Data::Map(entries)
                if entries.len() == 1 && matches!(&*entries[0].key, "env" | "file") =>
            {
                let here = path.key(&entries[0].key);
                let from = self.text(
                    &entries[0].value,
                    &serde_json::json!({ "minLength": 1 }),
                    &here,
                )?;
                let from = from.as_str().unwrap_or_default();
                let origin = match &entries[0].value.data {
                    Data::Text(text) => text.origin.clone(),
                    _ => Origin::File,
                };
                let found = match (origin, &*entries[0].key) {
                    (Origin::Missing(reason), _) => return self.lack(&reason, path),
                    (_, "env") => (self.lookup)(from).ok_or_else(|| {
                        format!("the environment variable {} is not set", Quoted(from, '`'))
                    }),
                    (_, _) => read_file(&self.folder.join(from)).map_err(|error| {
                        format!("the file {} cannot be read: {error}", Quoted(from, '`'))
                    }),
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
            Data::Map(_) => {
                self.report.fault(
                    node.at,
                    path,
                    "is a map; write a text, `{ env: NAME }` or `{ file: PATH }`",
                );
                None
            }
            Data::Null | Data::List(_) => {
                let text = format!(
                    "is {}; write a text, `{{ env: NAME }}` or `{{ file: PATH }}`",
                    node.noun()
                );
                self.report.fault(node.at, path, text);
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
