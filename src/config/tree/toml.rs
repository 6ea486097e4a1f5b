//! TOML.

use toml_edit::{Document, Item, TableLike, Value};

use super::{Data, Entry, Node};
use crate::config::fault::{Lines, Path, Position, Quoted, Report};

pub(super) fn parse(source: &str, report: &mut Report) -> Option<Node> {
    let lines = Lines::new(source);
    match Document::parse(source) {
        Ok(document) => {
            let top = Position { line: 1, column: 1 };
            Some(
                Reader {
                    text: source,
                    lines,
                }
                .table(document.as_table(), top),
            )
        }
        Err(error) => {
            let span = error.span().unwrap_or_default();
            let text = match source.get(span.clone()) {
                Some(key) if error.message() == "duplicate key" => {
                    format!("the key {} stands here twice", Quoted(key, '`'))
                }
                _ => format!("is not valid TOML here: {}", error.message()),
            };
            report.fault(lines.position(span.start), &Path::default(), text);
            None
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    lines: Lines<'a>,
}

impl Reader<'_> {
    fn table(&self, table: &dyn TableLike, at: Position) -> Node {
        let entries = table.iter().map(|(name, item)| {
            let key = table.key(name).and_then(|key| key.span());
            let at = self.position(key.or_else(|| item.span()), at);
            Entry::new(at, name.to_owned(), self.item(item, at))
        });
        Node {
            at,
            data: Data::Map(entries.collect()),
        }
    }

    /// A table has the place of its key: it may be spread over the file.
    fn item(&self, item: &Item, at: Position) -> Node {
        match item {
            Item::None => Node {
                at,
                data: Data::Null,
            },
            Item::Value(value) => self.value(value, at),
            Item::Table(table) => self.table(table, at),
            Item::ArrayOfTables(tables) => {
                let items = tables
                    .iter()
                    .map(|table| self.table(table, self.position(table.span(), at)));
                Node {
                    at,
                    data: Data::List(items.collect()),
                }
            }
        }
    }

    fn value(&self, value: &Value, near: Position) -> Node {
        let at = self.position(value.span(), near);
        let written = |span: Option<std::ops::Range<usize>>| {
            span.and_then(|span| self.text.get(span))
                .unwrap_or_default()
                .to_owned()
        };
        let data = match value {
            Value::String(text) => return Node::text(at, text.value().clone()),
            Value::Datetime(moment) => return Node::text(at, moment.value().to_string()),
            Value::Boolean(boolean) => Data::Bool(*boolean.value()),
            Value::Integer(number) => {
                Data::Number(number.value().to_string(), Some(*number.value()))
            }
            Value::Float(_) => Data::Number(written(value.span()), None),
            Value::Array(array) => {
                Data::List(array.iter().map(|item| self.value(item, at)).collect())
            }
            Value::InlineTable(table) => return self.table(table, at),
        };
        Node { at, data }
    }

    fn position(&self, span: Option<std::ops::Range<usize>>, near: Position) -> Position {
        span.map_or(near, |span| self.lines.position(span.start))
    }
}
