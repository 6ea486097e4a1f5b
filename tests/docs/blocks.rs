//! Pages, and the blocks of code in them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A page of the project.
pub struct Page {
    /// Its path, from the project's folder.
    pub name: String,
    pub text: String,
}

/// A fenced block of code.
pub struct Block<'a> {
    pub language: &'a str,
    pub text: String,
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The files in a folder of the project, in order.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    files.sort();
    files
}

/// The README, the change log and what is in `docs/`.
pub fn pages() -> Vec<Page> {
    let mut names = vec!["README.md".to_owned(), "CHANGELOG.md".to_owned()];
    for file in files("docs") {
        let name = file
            .file_name()
            .expect("a file has a name")
            .to_string_lossy();
        names.push(format!("docs/{name}"));
    }
    let page = |name: String| Page {
        text: read(&name),
        name,
    };
    names.into_iter().map(page).collect()
}

impl Page {
    /// Its blocks of code, in order.
    pub fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        let mut open: Option<Block<'_>> = None;
        for line in self.text.lines() {
            match (line.strip_prefix("```"), &mut open) {
                (Some(language), None) => {
                    let text = String::new();
                    open = Some(Block { language, text });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (None, Some(block)) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block of code has no end", self.name);
        blocks
    }

    /// The targets of its links.
    pub fn links(&self) -> Vec<&str> {
        let ends = self
            .text
            .match_indices("](")
            .map(|(at, found)| at + found.len());
        let link = |start: usize| Some(&self.text[start..start + self.text[start..].find(')')?]);
        ends.filter_map(link).collect()
    }

    /// The blocks of one language.
    pub fn blocks_of(&self, language: &str) -> Vec<String> {
        let blocks = self.blocks().into_iter();
        blocks
            .filter(|b| b.language == language)
            .map(|b| b.text)
            .collect()
    }
}

/// A line of a shell as words; a comment ends it.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn a_line_becomes_words() {
    assert_eq!(
        words(r#"a --b "c d" '{"e": 1}'  # f"#),
        ["a", "--b", "c d", r#"{"e": 1}"#]
    );
}
