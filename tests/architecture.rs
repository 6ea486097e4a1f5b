//! The drawing in `src/lib.rs` is true: a room imports only rooms below it, and each outside library stays in its rooms.
//!
//! The floors are read from the table in `lib.rs` itself, so that drawing and code cannot part.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Libraries that belong to some rooms only. `example` may use what it likes of them: it is a program of its own.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("axum", &["front", "admin"]),
    ("clap", &["cli"]),
    ("hyper_rustls", &["backend"]),
    ("prometheus", &["telemetry"]),
    ("tokio_rustls", &["front"]),
    ("tower_http", &["front"]),
    ("anyhow", &[]),
];

/// Rooms that are pure: no I/O, no waiting, no clock of their own.
const PURE: &[&str] = &["mcp", "bridge"];
const IMPURE: &[&str] = &[
    "tokio",
    "tracing",
    "Instant",
    "SystemTime",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
];

struct Source {
    room: String,
    path: PathBuf,
    /// Modules between the crate and this one.
    depth: usize,
    /// Without comments and the contents of strings.
    code: String,
}

#[test]
fn a_room_imports_only_rooms_below() {
    let floors = floors();
    let mut wrong = Vec::new();
    for source in sources() {
        for room in imports(&source) {
            let allowed = match (floors.get(&source.room), floors.get(&room)) {
                _ if room == source.room => true,
                (Some(own), Some(other)) => other < own,
                // The commands start the examples; nothing else knows of them, nor they of anything.
                (Some(_), None) => room == "example" && source.room == "cli",
                (None, _) => false,
            };
            if !allowed {
                wrong.push(format!("{} imports crate::{room}", source.path.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "against the staircase of src/lib.rs:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn nobody_leaves_a_room_by_its_back_door() {
    let mut wrong = Vec::new();
    for source in sources() {
        let tests = source
            .code
            .find("#[cfg(test)]")
            .unwrap_or(source.code.len());
        for (at, length) in supers(&source.code) {
            // A module of tests inside the file stands one step lower.
            let depth = source.depth + usize::from(at > tests);
            if length >= depth && source.room != "lib" {
                wrong.push(format!(
                    "{}: {}",
                    source.path.display(),
                    "super::".repeat(length)
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "`super` out of a room; write crate::room:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_room_is_in_the_drawing() {
    let mut drawn: BTreeSet<String> = floors().into_keys().collect();
    drawn.insert("example".into());
    let built: BTreeSet<String> = sources()
        .into_iter()
        .map(|s| s.room)
        .filter(|r| r != "lib" && r != "main")
        .collect();
    assert_eq!(drawn, built);
}

#[test]
fn outside_libraries_stay_in_their_rooms() {
    let mut wrong = Vec::new();
    for source in sources()
        .iter()
        .filter(|s| s.room != "example" && s.room != "main")
    {
        for (library, rooms) in LIBRARIES {
            if has_word(&source.code, library) && !rooms.contains(&source.room.as_str()) {
                wrong.push(format!("{} uses {library}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_are_pure() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|s| PURE.contains(&s.room.as_str())) {
        for word in IMPURE {
            if has_word(&source.code, word) {
                wrong.push(format!("{} uses {word}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    let without = sources().into_iter().filter(|source| {
        let text = fs::read_to_string(&source.path).expect("it was read before");
        !text.starts_with("//!")
    });
    let without: Vec<String> = without.map(|s| s.path.display().to_string()).collect();
    assert!(
        without.is_empty(),
        "without a `//!` at their top:\n{}",
        without.join("\n")
    );
}

/// The rows `| floor | [room] · [room] | … |` of the table in `lib.rs`.
fn floors() -> BTreeMap<String, u32> {
    let text = fs::read_to_string(root().join("lib.rs")).expect("there is a library");
    let mut floors = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let mut cells = line.split('|').map(str::trim);
        let (Some(floor), Some(rooms)) = (cells.next(), cells.next()) else {
            continue;
        };
        let Ok(floor) = floor.parse() else {
            continue;
        };
        for room in rooms.split('·') {
            let room = room.trim().trim_matches(['[', ']', '`']);
            floors.insert(room.to_owned(), floor);
        }
    }
    assert!(
        floors.len() > 8,
        "the table of floors was not found: {floors:?}"
    );
    floors
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    walk(&root(), &mut files);
    files.sort();
    files.into_iter().map(source).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources can be read") {
        let path = entry.expect("the sources can be read").path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

fn source(path: PathBuf) -> Source {
    let text = fs::read_to_string(&path).expect("the sources can be read");
    let inside = path
        .strip_prefix(root())
        .expect("it was found there")
        .with_extension("");
    let mut modules: Vec<String> = inside
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let room = modules[0].clone();
    modules.retain(|module| module != "mod");
    Source {
        room,
        depth: modules.len(),
        code: bare(&text),
        path,
    }
}

/// The rooms that a file names: `crate::room…` and `crate::{room…, room…}`.
fn imports(source: &Source) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (at, found) in source.code.match_indices("crate::") {
        let before = source.code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &source.code[at + found.len()..];
        match rest.strip_prefix('{') {
            Some(group) => rooms.extend(heads(group)),
            None => rooms.extend(word(rest)),
        }
    }
    rooms
}

/// The first words of the entries of a group, up to its closing brace.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut all) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                all.extend(word(group[start..at].trim_start()));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    all
}

fn word(text: &str) -> Option<String> {
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// Where `super::` chains begin, and how long they are.
fn supers(code: &str) -> Vec<(usize, usize)> {
    let mut chains: Vec<(usize, usize)> = Vec::new();
    let mut next = None;
    for (at, found) in code.match_indices("super::") {
        match (next == Some(at), chains.last_mut()) {
            (true, Some(last)) => last.1 += 1,
            _ => chains.push((at, 1)),
        }
        next = Some(at + found.len());
    }
    chains
}

fn has_word(code: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// The code without comments, strings and characters, so that no word of theirs counts.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string(rest),
            'r' if rest.starts_with("r\"") || rest.starts_with("r#") => {
                raw_string(rest).unwrap_or(0)
            }
            '\'' => character(rest).unwrap_or(0),
            _ => 0,
        };
        if skipped == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            rest = &rest[skipped..];
        }
    }
    out
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn raw_string(text: &str) -> Option<usize> {
    let hashes = text[1..].bytes().take_while(|b| *b == b'#').count();
    let inside = text[1 + hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end)?;
    Some(2 + hashes + length + end.len())
}

/// A character, not a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    match chars.next()?.1 {
        '\\' => {
            let end = text[3..].find('\'')?;
            Some(3 + end + 1)
        }
        _ => match chars.next()? {
            (at, '\'') => Some(at + 1),
            _ => None,
        },
    }
}

#[test]
fn the_reader_of_sources_reads() {
    let text = r##"use crate::{a::{B, c}, d}; // crate::e
        let s = "crate::f \" "; let c = '"'; let r = r#"crate::g"#; let l: &'a str = x; $crate::h; crate::i::J"##;
    let source = Source {
        room: "x".into(),
        path: PathBuf::new(),
        depth: 1,
        code: bare(text),
    };
    let found: Vec<String> = imports(&source).into_iter().collect();
    assert_eq!(found, ["a", "d", "i"]);
    assert_eq!(
        supers("super::super::a; super::b")
            .iter()
            .map(|c| c.1)
            .collect::<Vec<_>>(),
        [2, 1]
    );
}
