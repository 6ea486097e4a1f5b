//! JSON with comments and trailing commas, as editors keep it.

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{ObjectPropName, Value},
    common::Ranged,
};

use super::{Data, Entry, Node};
use crate::config::fault::{Lines, Path, Report};

/// Comments and trailing commas; nothing else of what JSON5 allows.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn parse(text: &str, report: &mut Report) -> Option<Node> {
    let lines = Lines::new(text);
    match jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &OPTIONS) {
        Ok(ast) => Some(ast.value.map_or_else(super::empty, |value| {
            Reader { lines, report }.node(value, &Path::default())
        })),
        Err(error) => {
            let at = lines.position(error.range().start);
            let problem = error.kind().to_string().to_lowercase();
            report.fault(
                at,
                &Path::default(),
                format!("is not valid JSON here: {problem}"),
            );
            None
        }
    }
}

struct Reader<'a> {
    lines: Lines<'a>,
    report: &'a mut Report,
}

impl Reader<'_> {
    fn node(&mut self, value: Value<'_>, path: &Path) -> Node {
        let at = self.lines.position(value.start());
        let data = match value {
            Value::NullKeyword(_) => Data::Null,
            Value::BooleanLit(boolean) => Data::Bool(boolean.value),
            Value::NumberLit(number) => {
                Data::Number(number.value.to_owned(), number.value.parse().ok())
            }
            Value::StringLit(text) => return Node::text(at, text.value.into_owned()),
            Value::Array(array) => {
                let items = array.elements.into_iter().enumerate();
                Data::List(
                    items
                        .map(|(index, item)| self.node(item, &path.item(index)))
                        .collect(),
                )
            }
            Value::Object(object) => {
                let mut entries = Vec::new();
                for property in object.properties {
                    let at = self.lines.position(property.range.start);
                    let key = match property.name {
                        ObjectPropName::String(text) => text.value.into_owned(),
                        ObjectPropName::Word(word) => word.value.to_owned(),
                    };
                    let value = self.node(property.value, &path.key(&key));
                    super::insert(&mut entries, Entry::new(at, key, value), path, self.report);
                }
                Data::Map(entries)
            }
        };
        Node { at, data }
    }
}
