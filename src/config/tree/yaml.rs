//! YAML 1.2, from the parser's events.
//!
//! The events and not a ready tree: a tree has lost duplicate keys and the text of a number, and copies whatever an
//! alias repeats without a bound.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::{Data, Entry, Node};
use crate::config::fault::{Path, Position, Report};

/// Values in one file, with everything that aliases repeat: a few lines of aliases can mean billions.
const MOST_NODES: usize = 100_000;
/// A configuration is some six levels deep.
const DEEPEST: usize = 64;

pub(super) fn parse(text: &str, report: &mut Report) -> Option<Node> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        report,
        anchors: HashMap::new(),
        nodes: 0,
    };
    match reader.document() {
        Ok(node) => Some(node),
        Err(Stop { at, text }) => {
            reader.report.fault(at, &Path::default(), text);
            None
        }
    }
}

/// Why a text cannot be read any further.
struct Stop {
    at: Position,
    text: String,
}

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Self {
        let text = format!("is not valid YAML here: {}", error.info());
        Stop {
            at: position(*error.marker()),
            text,
        }
    }
}

fn position(marker: Marker) -> Position {
    Position {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}

struct Reader<'a, 'r> {
    parser: Parser<'a, StrInput<'a>>,
    report: &'r mut Report,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'a> Reader<'a, '_> {
    fn next(&mut self) -> Result<(Event<'a>, Position), Stop> {
        match self.parser.next_event() {
            Some(event) => {
                let (event, span) = event?;
                Ok((event, position(span.start)))
            }
            None => Ok((Event::StreamEnd, Position { line: 1, column: 1 })),
        }
    }

    fn document(&mut self) -> Result<Node, Stop> {
        let mut top = None;
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(top.unwrap_or_else(super::empty)),
                Event::DocumentStart(_) if top.is_some() => {
                    return Err(Stop {
                        at,
                        text: "begins a second document; write one document into a file".into(),
                    });
                }
                Event::StreamStart
                | Event::DocumentStart(_)
                | Event::DocumentEnd
                | Event::Nothing => {}
                event => top = Some(self.node(event, at, &Path::default(), 0)?),
            }
        }
    }

    fn node(
        &mut self,
        event: Event<'a>,
        at: Position,
        path: &Path,
        depth: usize,
    ) -> Result<Node, Stop> {
        self.count(1, at)?;
        if depth > DEEPEST {
            return Err(Stop {
                at,
                text: format!("is nested more than {DEEPEST} levels deep"),
            });
        }
        let (node, anchor) = match event {
            Event::Alias(anchor) => return self.alias(anchor, at),
            Event::Scalar(text, style, anchor, tag) => (
                Node {
                    at,
                    data: scalar(text, style, tag.as_deref()),
                },
                anchor,
            ),
            Event::SequenceStart(anchor, _) => (
                Node {
                    at,
                    data: self.list(path, depth)?,
                },
                anchor,
            ),
            Event::MappingStart(anchor, _) => (
                Node {
                    at,
                    data: self.map(path, depth)?,
                },
                anchor,
            ),
            _ => {
                return Err(Stop {
                    at,
                    text: "is not valid YAML here".into(),
                });
            }
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// An alias has its own place, and what is inside it the place where it was written.
    fn alias(&mut self, anchor: usize, at: Position) -> Result<Node, Stop> {
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(Stop {
                at,
                text: "repeats a value that contains it".into(),
            });
        };
        let size = size_of(node);
        let node = Node {
            at,
            data: node.data.clone(),
        };
        self.count(size, at)?;
        Ok(node)
    }

    fn count(&mut self, nodes: usize, at: Position) -> Result<(), Stop> {
        self.nodes += nodes;
        match self.nodes > MOST_NODES {
            true => Err(Stop {
                at,
                text: format!("makes more than {MOST_NODES} values of the file"),
            }),
            false => Ok(()),
        }
    }

    fn list(&mut self, path: &Path, depth: usize) -> Result<Data, Stop> {
        let mut items = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(Data::List(items));
            }
            items.push(self.node(event, at, &path.item(items.len()), depth + 1)?);
        }
    }

    fn map(&mut self, path: &Path, depth: usize) -> Result<Data, Stop> {
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        loop {
            let (event, at) = self.next()?;
            let (key, plain) = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, style, ..) => (text.into_owned(), style == ScalarStyle::Plain),
                _ => {
                    return Err(Stop {
                        at,
                        text: "is not a key; write a text before the `:`".into(),
                    });
                }
            };
            let (event, value_at) = self.next()?;
            let value = self.node(event, value_at, &path.key(&key), depth + 1)?;
            match plain && key == "<<" {
                true => merged.extend(merge(value)?),
                false => super::insert(&mut entries, Entry::new(at, key, value), path, self.report),
            }
        }
        // What is written here comes before what is merged, and what is merged first before the rest.
        for entry in merged {
            if !entries.iter().any(|other| other.key == entry.key) {
                entries.push(entry);
            }
        }
        Ok(Data::Map(entries))
    }
}

/// The entries that `<<` takes over from a map or a list of maps.
fn merge(value: Node) -> Result<Vec<Entry>, Stop> {
    match value.data {
        Data::Map(entries) => Ok(entries),
        Data::List(items) if items.iter().all(|item| matches!(item.data, Data::Map(_))) => {
            Ok(items
                .into_iter()
                .flat_map(|item| merge(item).unwrap_or_default())
                .collect())
        }
        _ => Err(Stop {
            at: value.at,
            text: "cannot be merged; write an alias of a map after `<<:`".into(),
        }),
    }
}

fn size_of(node: &Node) -> usize {
    1 + match &node.data {
        Data::List(items) => items.iter().map(size_of).sum(),
        Data::Map(entries) => entries
            .iter()
            .map(|entry| size_of(&entry.value))
            .sum::<usize>(),
        _ => 0,
    }
}

/// The core schema of YAML 1.2: `no` and `0777` are texts and a number, not `false` and octal.
fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Data {
    let is_text = style != ScalarStyle::Plain
        || tag.is_some_and(|tag| tag.suffix == "str" || !tag.is_yaml_core_schema());
    let data = match &*text {
        _ if is_text => None,
        "" | "~" | "null" | "Null" | "NULL" => Some(Data::Null),
        "true" | "True" | "TRUE" => Some(Data::Bool(true)),
        "false" | "False" | "FALSE" => Some(Data::Bool(false)),
        number => integer(number)
            .or_else(|| is_float(number).then_some(None))
            .map(|int| Data::Number(number.into(), int)),
    };
    data.unwrap_or_else(|| Node::text(Position { line: 1, column: 1 }, text.into_owned()).data)
}

/// Whether it is an integer, and which, if it is a small one.
fn integer(text: &str) -> Option<Option<i64>> {
    let radix = |digits: &str, radix: u32| {
        (!digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)))
            .then(|| i64::from_str_radix(digits, radix).ok())
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    radix(digits, 10).map(|_| text.parse().ok())
}

fn is_float(text: &str) -> bool {
    let starts = text.strip_prefix(['+', '-']).unwrap_or(text).bytes().next();
    starts.is_some_and(|b| b.is_ascii_digit() || b == b'.')
        && text.bytes().any(|b| b.is_ascii_digit())
        && text.parse::<f64>().is_ok()
}
