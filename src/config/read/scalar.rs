//! Texts, numbers, booleans and words.

use serde_json::Value;

use super::{
    Reader,
    expect::{any_of, expectation, range},
    suggest,
};
use crate::config::{
    fault::{Path, Quoted},
    tree::{Data, Node, Origin, Text},
    value::{self, Period, Size},
};

impl Reader<'_> {
    pub(super) fn text(&mut self, node: &Node, schema: &Value, path: &Path) -> Option<Value> {
        let name = schema["x-kind"].as_str().unwrap_or_default();
        let text = match &node.data {
            Data::Text(text) => text.clone(),
            // Bare numbers and booleans where a text is so natural that no one would think of quotes. A hash may
            // consist of digits only.
            Data::Number(written, _) if matches!(name, "plain" | "sha256") => {
                file_text(written.clone())
            }
            Data::Bool(boolean) if name == "plain" => file_text(boolean.to_string()),
            Data::Number(..) if matches!(name, "duration" | "size") => {
                let example = value::kind(name).map_or("30s", |kind| kind.example);
                let text =
                    format!("is a number without a unit; write it with one, such as `{example}`");
                self.report.fault(node.at, path, text);
                return None;
            }
            Data::Number(..) | Data::Bool(_) if name.is_empty() => {
                self.report.fault(
                    node.at,
                    path,
                    format!("is {}; write a text, in quotes", node.noun()),
                );
                return None;
            }
            _ => return self.mismatch(node, schema, path),
        };
        if text.text.is_empty() && schema["minLength"].as_u64().is_some_and(|least| least > 0) {
            self.report.fault(
                node.at,
                path,
                "is empty; write a text, or leave the key out",
            );
            return None;
        }
        if text.text.contains('\0') {
            self.report
                .fault(node.at, path, "has a NUL character; write it without");
            return None;
        }
        let wrong = match value::kind(name).map(|kind| (kind.check)(&text.text)) {
            Some(Err(wrong)) => Some(wrong.to_string()),
            _ => out_of_range(&text.text, name, schema),
        };
        match wrong {
            None => Some(Value::String(text.text)),
            Some(wrong) => {
                self.report
                    .fault(node.at, path, format!("{} {wrong}", shown(&text, name)));
                None
            }
        }
    }

    pub(super) fn integer(&mut self, node: &Node, schema: &Value, path: &Path) -> Option<Value> {
        let number = match &node.data {
            Data::Number(_, Some(number)) => *number,
            Data::Text(text) if text.origin == Origin::Elsewhere => {
                match text.text.trim().parse() {
                    Ok(number) => number,
                    Err(_) => {
                        let text = format!(
                            "what came from the environment is not a number; it must be {}",
                            expectation(self, schema)
                        );
                        self.report.fault(node.at, path, text);
                        return None;
                    }
                }
            }
            Data::Text(text) if text.text.parse::<i64>().is_ok() => {
                self.report
                    .fault(node.at, path, "is a text; write the number without quotes");
                return None;
            }
            _ => return self.mismatch(node, schema, path),
        };
        let least = schema["minimum"].as_i64().unwrap_or(0);
        let most = schema["maximum"].as_i64().unwrap_or(i64::from(i32::MAX));
        if (least..=most).contains(&number) {
            return Some(number.into());
        }
        let written = matches!(node.data, Data::Number(..));
        let is = if written {
            number.to_string()
        } else {
            "what came from the environment".into()
        };
        self.report.fault(
            node.at,
            path,
            format!(
                "{is} is out of range; write a whole number {}",
                range(schema)
            ),
        );
        None
    }

    pub(super) fn boolean(&mut self, node: &Node, path: &Path) -> Option<Value> {
        let word = match &node.data {
            Data::Bool(boolean) => return Some((*boolean).into()),
            Data::Text(text) => &*text.text,
            _ => "",
        };
        let foreign = matches!(&node.data, Data::Text(text) if text.origin == Origin::Elsewhere);
        match word {
            "true" | "false" if foreign => Some((word == "true").into()),
            "true" | "false" => {
                self.report.fault(
                    node.at,
                    path,
                    format!("is a text; write `{word}` without quotes"),
                );
                None
            }
            _ => {
                self.report.fault(
                    node.at,
                    path,
                    format!("is {}; write `true` or `false`", node.noun()),
                );
                None
            }
        }
    }

    /// One of some words.
    pub(super) fn word(&mut self, node: &Node, words: &[&str], path: &Path) -> Option<Value> {
        let Data::Text(text) = &node.data else {
            self.report.fault(
                node.at,
                path,
                format!("is {}; write {}", node.noun(), any_of(words)),
            );
            return None;
        };
        if words.contains(&&*text.text) {
            return Some(Value::String(text.text.clone()));
        }
        let meant = suggest::nearest(&text.text, words.iter().copied())
            .filter(|_| text.origin == Origin::File);
        let advice = match meant {
            Some(word) => format!("did you mean `{word}`? Possible are {}", any_of(words)),
            None => format!("write {}", any_of(words)),
        };
        self.report.fault(
            node.at,
            path,
            format!("{} is not possible here; {advice}", shown(text, "")),
        );
        None
    }
}

fn file_text(text: String) -> Text {
    Text {
        text,
        origin: Origin::File,
    }
}

/// A text as a fault may show it. A mistyped hash might be a key, and a URL may hold one.
fn shown(text: &Text, kind: &str) -> String {
    match text.origin == Origin::File && !matches!(kind, "sha256" | "url" | "plain") {
        true => Quoted(&text.text, '`').to_string(),
        false if text.origin == Origin::File => "the value".into(),
        false => "what came from the environment".into(),
    }
}

/// What is wrong with a duration or a size that is one, but too small or too large.
fn out_of_range(text: &str, kind: &str, schema: &Value) -> Option<String> {
    let (least, most) = (schema["x-min"].as_str()?, schema["x-max"].as_str()?);
    let fits = match kind {
        "duration" => {
            let period = |text: &str| text.parse::<Period>().ok();
            period(least)? <= period(text)? && period(text)? <= period(most)?
        }
        "size" => {
            let size = |text: &str| text.parse::<Size>().ok();
            size(least)? <= size(text)? && size(text)? <= size(most)?
        }
        _ => true,
    };
    (!fits).then(|| format!("is out of range; write one from `{least}` to `{most}`"))
}
