//! `${VAR}` and `${VAR:-default}` in texts, after parsing, so that a value cannot change the shape of the file.
//!
//! `${env:VAR}` and `${input:id}` are how desktop clients write it; `$${` stands for `${`. A variable that is not set
//! is never passed on as it stands: inside a server it takes that server out, anywhere else it is a fault.

use super::{
    fault::{Path, Quoted, Report},
    tree::{Data, Node, Origin},
};

/// Looks up an environment variable.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A default may hold another expansion, and so on, up to this depth.
const DEEPEST: usize = 8;

/// Why a text cannot be expanded.
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    /// These variables are not set.
    Unset(Vec<String>),
    /// This input of a desktop file, to be read from this variable, which is not set.
    Input(String, String),
    /// It is not an expansion.
    Malformed,
}

/// Expands every text of a file in place.
pub(crate) fn expand(top: &mut Node, lookup: Lookup<'_>, report: &mut Report) {
    let mut walk = Walk { lookup, report };
    walk.node(top, &Path::default(), Place::Top);
}

/// Where in the file a value stands, as far as it matters for a variable that is not set.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Top,
    Servers,
    Server,
    Elsewhere,
}

struct Walk<'a, 'r> {
    lookup: Lookup<'a>,
    report: &'r mut Report,
}

impl Walk<'_, '_> {
    fn node(&mut self, node: &mut Node, path: &Path, place: Place) {
        let at = node.at;
        match &mut node.data {
            Data::Text(text) => match expanded(&text.text, self.lookup, 0) {
                Ok(None) => {}
                Ok(Some(Expanded { text: new, foreign })) => {
                    text.text = new;
                    text.origin = if foreign {
                        Origin::Elsewhere
                    } else {
                        Origin::File
                    };
                }
                Err(problem) => {
                    let (reason, advice) = problem.texts();
                    if place != Place::Server || !matches!(problem, Problem::Unset(_)) {
                        self.report.fault(at, path, format!("{reason}; {advice}"));
                    }
                    text.origin = Origin::Missing(reason);
                }
            },
            Data::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.node(item, &path.item(index), place);
                }
            }
            Data::Map(entries) => {
                for entry in entries {
                    let place = match place {
                        Place::Top if entry.key == "servers" => Place::Servers,
                        Place::Top => Place::Elsewhere,
                        Place::Servers => Place::Server,
                        place => place,
                    };
                    self.node(&mut entry.value, &path.key(&entry.written), place);
                }
            }
            Data::Null | Data::Bool(_) | Data::Number(..) => {}
        }
    }
}

impl Problem {
    /// What is wrong, and what to do.
    fn texts(&self) -> (String, String) {
        match self {
            Problem::Unset(names) => {
                let quoted: Vec<_> = names
                    .iter()
                    .map(|name| Quoted(name, '`').to_string())
                    .collect();
                let (noun, verb) = if names.len() == 1 {
                    ("variable", "is")
                } else {
                    ("variables", "are")
                };
                let reason = format!(
                    "the environment {noun} {} {verb} not set",
                    quoted.join(", ")
                );
                let name = names.first().map_or("NAME", String::as_str);
                (
                    reason,
                    format!("set it, or write a default, as in `${{{name}:-default}}`"),
                )
            }
            Problem::Input(id, variable) => (
                format!(
                    "the input {} would be asked of a person, and there is none",
                    Quoted(id, '`')
                ),
                format!("set the environment variable `{variable}` to its value"),
            ),
            Problem::Malformed => (
                "has a `${` that begins no variable".into(),
                "write `${NAME}` or `${NAME:-default}`, or `$${` for the characters themselves"
                    .into(),
            ),
        }
    }
}

/// A text that has changed, and whether anything of it came from the environment.
#[derive(Debug, PartialEq, Eq)]
struct Expanded {
    text: String,
    foreign: bool,
}

/// The expanded text, or nothing if there is nothing to expand.
fn expanded(text: &str, lookup: Lookup<'_>, depth: usize) -> Result<Option<Expanded>, Problem> {
    if !text.contains("${") {
        return Ok(None);
    }
    if depth > DEEPEST {
        return Err(Problem::Malformed);
    }
    let (mut out, mut rest, mut foreign, mut unset) = (String::new(), text, false, Vec::new());
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        rest = &rest[dollar..];
        if let Some(after) = rest.strip_prefix("$${") {
            out.push_str("${");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let end = closing_brace(after).ok_or(Problem::Malformed)?;
            match value_of(&after[..end], lookup, depth) {
                Ok(value) => out.push_str(&value),
                Err(Problem::Unset(names)) => unset.extend(names),
                Err(problem) => return Err(problem),
            }
            foreign = true;
            rest = &after[end + 1..];
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    match unset.is_empty() {
        true => Ok(Some(Expanded { text: out, foreign })),
        false => Err(Problem::Unset(unset)),
    }
}

/// Where the `}` stands that belongs to a `${` just before the text.
fn closing_brace(text: &str) -> Option<usize> {
    let (mut at, mut open) = (0, 1);
    loop {
        let rest = text.get(at..)?;
        let step = rest.find(['$', '}'])?;
        let rest = &rest[step..];
        at += step;
        if rest.starts_with('}') {
            open -= 1;
            if open == 0 {
                return Some(at);
            }
            at += 1;
        } else if rest.starts_with("$${") {
            at += 3;
        } else if rest.starts_with("${") {
            open += 1;
            at += 2;
        } else {
            at += 1;
        }
    }
}

/// The value of what stands between the braces. As in a shell, a default also replaces an empty value.
fn value_of(inside: &str, lookup: Lookup<'_>, depth: usize) -> Result<String, Problem> {
    if let Some(id) = inside.strip_prefix("input:") {
        let variable = input_variable(id);
        return lookup(&variable).ok_or_else(|| Problem::Input(id.to_owned(), variable));
    }
    let inside = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_variable(name) {
        return Err(Problem::Malformed);
    }
    match (lookup(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(expanded(default, lookup, depth + 1)?
            .map_or_else(|| default.to_owned(), |new| new.text)),
        (None, None) => Err(Problem::Unset(vec![name.to_owned()])),
    }
}

/// Whether a text can be the name of an environment variable.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The variable from which an input is read: `github-token` from `INPUT_GITHUB_TOKEN`.
fn input_variable(id: &str) -> String {
    let word = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    format!("INPUT_{}", id.chars().map(word).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".into()),
            "EMPTY" => Some(String::new()),
            "WILD" => Some("${A} }: \"".into()),
            "INPUT_GITHUB_TOKEN" => Some("t".into()),
            _ => None,
        }
    }

    fn of(text: &str) -> Result<String, Problem> {
        expanded(text, &env, 0).map(|new| new.map_or_else(|| text.to_owned(), |new| new.text))
    }

    #[test]
    fn variables_and_defaults_expand_once() {
        for (text, result) in [
            ("plain $A $ {A}", "plain $A $ {A}"),
            ("x${A}y${A}", "xoneyone"),
            ("${B:-two}", "two"),
            ("${B:-}", ""),
            ("${EMPTY}", ""),
            ("${EMPTY:-d}", "d"),
            ("${B:-${A}}!", "one!"),
            ("${B:-a:-b}", "a:-b"),
            ("${WILD}", "${A} }: \""),
            ("$${A}", "${A}"),
            ("$$A", "$$A"),
            ("${B:-$${x}", "${x"),
            ("${env:A}", "one"),
            ("${input:github-token}", "t"),
            ("é${A}é", "éoneé"),
        ] {
            assert_eq!(of(text).as_deref(), Ok(result), "{text}");
        }
    }

    #[test]
    fn what_cannot_expand_is_told_apart() {
        assert_eq!(
            of("${B}${A}${C:-${D}}"),
            Err(Problem::Unset(vec!["B".into(), "D".into()]))
        );
        assert_eq!(
            of("${input:my key}"),
            Err(Problem::Input("my key".into(), "INPUT_MY_KEY".into()))
        );
        for text in [
            "${",
            "${A",
            "${}",
            "${1A}",
            "${A-b}",
            "${A:b}",
            "${é}",
            "${ A }",
            "${file:/x}",
        ] {
            assert_eq!(of(text), Err(Problem::Malformed), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_without_a_dollar_is_itself(text in "[^$]{0,40}") {
            prop_assert_eq!(of(&text), Ok(text));
        }

        #[test]
        fn an_escaped_text_is_itself(text in "\\PC{0,40}") {
            prop_assume!(!text.contains("$$"));
            prop_assert_eq!(of(&text.replace("${", "$${")), Ok(text));
        }

        #[test]
        fn any_text_expands_or_is_refused(text in "[${}A:\\-é]{0,30}") {
            let _ = of(&text);
        }
    }
}
