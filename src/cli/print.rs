//! Standard output: for what was asked, and for nothing else.

use super::Failure;
use std::io::{self, IsTerminal, Write};

/// Writes to standard output. That its reader has gone (`| head`) is no failure.
pub(super) fn out(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Io {
            what: "cannot write to standard output",
            source,
        }),
        _ => Ok(()),
    }
}

/// Writes JSON, indented, as one text.
pub(super) fn json(value: &serde_json::Value) -> Result<(), Failure> {
    out(&format!("{value:#}\n"))
}

/// Writes a line to standard error, whose reader may have gone.
pub(super) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A text of a server as a terminal may show it: control characters but line ends and tabs become spaces.
pub(super) fn harmless(text: &str) -> String {
    let tame = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
            ' '
        }
        c => c,
    };
    text.chars().map(tame).collect()
}

/// A text of a server as standard output should have it: as it is for a program, tamed for a terminal.
pub(super) fn foreign(text: &str) -> String {
    match io::stdout().is_terminal() {
        true => harmless(text),
        false => text.to_owned(),
    }
}

/// `1 fault`, `2 faults`.
pub(super) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
