//! What is wrong with a file: where, what, and what to write instead.
//!
//! A text here never repeats a secret nor anything that came from the environment; keys are repeated, escaped.

use std::{fmt, sync::Arc};

/// A place in a file, both counted from 1; columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Where the lines of a text begin.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(end, _)| end + 1));
        Lines {
            text,
            starts: starts.collect(),
        }
    }

    /// The place of a byte.
    pub fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        let before = &self.text[start..self.text.floor_char_boundary(offset)];
        Position {
            line,
            column: before.chars().count() + 1,
        }
    }
}

/// The way from the top of a file to a value: `servers.files.args[1]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(String);

impl Path {
    /// One key further. A key that is not a plain word stands in brackets and quotes.
    pub(crate) fn key(&self, key: &str) -> Path {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        match (!key.is_empty() && key.bytes().all(plain), self.0.is_empty()) {
            (true, true) => Path(key.to_owned()),
            (true, false) => Path(format!("{}.{key}", self.0)),
            (false, _) => Path(format!("{}[{}]", self.0, Quoted(key, '"'))),
        }
    }

    /// One item further.
    pub(crate) fn item(&self, index: usize) -> Path {
        Path(format!("{}[{index}]", self.0))
    }

    /// The path as text; empty for the whole file.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key or a harmless value between quotes, escaped and cut, so that it cannot disturb a terminal.
pub(crate) struct Quoted<'a>(pub &'a str, pub char);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 60;
        let Quoted(text, quote) = *self;
        let shown = text
            .char_indices()
            .nth(LONGEST)
            .map_or(text, |(end, _)| &text[..end]);
        write!(f, "{quote}")?;
        for c in shown.chars() {
            match c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
                true => write!(f, "{}", c.escape_unicode())?,
                false => write!(f, "{c}")?,
            }
        }
        f.write_str(if shown.len() < text.len() { "…" } else { "" })?;
        write!(f, "{quote}")
    }
}

/// One thing that is wrong, or, as a warning, doubtful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the file.
    pub file: Arc<str>,
    /// Where in the file, if it is at one place.
    pub at: Option<Position>,
    /// The way to the value; empty for the whole file.
    pub path: Path,
    /// What is wrong, and what to write instead.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(Position { line, column }) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        if !self.path.0.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Everything that is wrong with a file, in its order: at least one fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl Faults {
    /// One fault by itself.
    pub(crate) fn one(fault: Fault) -> Faults {
        Faults {
            faults: vec![fault],
            warnings: Vec::new(),
        }
    }

    /// The faults, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.faults.iter()
    }

    /// What is doubtful besides, in the order of the file.
    pub fn warnings(&self) -> &[Fault] {
        &self.warnings
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            f.write_str(if index > 0 { "\n" } else { "" })?;
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Collects faults and warnings of one file.
#[derive(Debug)]
pub(crate) struct Report {
    file: Arc<str>,
    pub faults: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

impl Report {
    pub fn new(file: &str) -> Self {
        Report {
            file: file.into(),
            faults: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The warnings in the order of the file, or, if there is any fault, all of both.
    pub fn finish(self) -> Result<Vec<Fault>, Faults> {
        let in_order = |mut faults: Vec<Fault>| {
            faults.sort_by_key(|fault| fault.at);
            faults.dedup();
            faults
        };
        let (faults, warnings) = (in_order(self.faults), in_order(self.warnings));
        match faults.is_empty() {
            true => Ok(warnings),
            false => Err(Faults { faults, warnings }),
        }
    }

    /// A fault of this file, not yet reported.
    pub fn fault_at(&self, at: Option<Position>, path: &Path, text: impl Into<String>) -> Fault {
        Fault {
            file: self.file.clone(),
            at,
            path: path.clone(),
            text: text.into(),
        }
    }

    /// Reports a fault.
    pub fn fault(&mut self, at: Position, path: &Path, text: impl Into<String>) {
        let fault = self.fault_at(Some(at), path, text);
        self.faults.push(fault);
    }

    /// Reports a warning.
    pub fn warn(&mut self, at: Position, path: &Path, text: impl Into<String>) {
        let fault = self.fault_at(Some(at), path, text);
        self.warnings.push(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_quotes_what_is_no_plain_word() {
        let path = Path::default()
            .key("endpoints")
            .key("/mcp")
            .key("servers")
            .item(1);
        assert_eq!(path.as_str(), "endpoints[\"/mcp\"].servers[1]");
    }

    #[test]
    fn what_is_quoted_cannot_disturb_a_terminal() {
        assert_eq!(Quoted("a\u{1b}[31mé", '`').to_string(), "`a\\u{1b}[31mé`");
        assert_eq!(
            Quoted(&"x".repeat(100), '`').to_string(),
            format!("`{}…`", "x".repeat(60))
        );
    }

    #[test]
    fn positions_count_characters_from_one() {
        let text = "é\nxé: y";
        let lines = Lines::new(text);
        assert_eq!(lines.position(0), Position { line: 1, column: 1 });
        assert_eq!(
            lines.position(text.find('y').unwrap()),
            Position { line: 2, column: 5 }
        );
        assert_eq!(lines.position(1_000), Position { line: 2, column: 6 });
    }
}
