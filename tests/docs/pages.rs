//! What stands on the pages: links, snippets, command lines, error codes.

use super::blocks::{Page, pages, read, root, words};
use clap::Parser;
use drawbridge::{
    cli::Cli,
    config::{Config, Format},
};
use std::{collections::BTreeSet, path::Path, process::Command};

fn readme() -> Page {
    let name = "README.md".to_owned();
    Page {
        text: read(&name),
        name,
    }
}

#[test]
fn links_lead_to_files_that_are_there() {
    for page in pages() {
        let folder = root()
            .join(&page.name)
            .parent()
            .expect("a file is in a folder")
            .to_owned();
        for link in page.links() {
            let path = link.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            assert!(
                folder.join(path).exists(),
                "{}: {link} leads nowhere",
                page.name
            );
        }
    }
}

#[test]
fn json_is_json_and_settings_load() {
    let mut configurations = 0;
    for page in pages() {
        for text in page.blocks_of("json") {
            let json: Result<serde_json::Value, _> = serde_json::from_str(&text);
            assert!(json.is_ok(), "{}: {}\n{text}", page.name, json.unwrap_err());
        }
        for text in page.blocks_of("yaml") {
            let loaded = Config::parse("page.yaml", &text, Some(Format::Yaml), &|_| None);
            let loaded = loaded.unwrap_or_else(|faults| panic!("{}:\n{faults}", page.name));
            assert!(
                loaded.warnings.is_empty(),
                "{}: {:?}",
                page.name,
                loaded.warnings
            );
            configurations += 1;
        }
    }
    assert!(configurations > 1, "the pages show how to configure");
}

#[test]
fn the_snippet_for_clients_is_one_that_clients_read() {
    let snippets = readme().blocks_of("json");
    let snippet: serde_json::Value = serde_json::from_str(&snippets[0]).unwrap();
    let server = &snippet["mcpServers"]["drawbridge"];
    assert_eq!(server["type"], "http");
    assert_eq!(server["url"], "http://127.0.0.1:8080/mcp");
    let address = Config::default().listen.addresses()[0].to_string();
    assert_eq!(
        server["url"].as_str(),
        Some(&*format!("http://{address}/mcp"))
    );
}

/// The lines that start with one of our commands.
fn commands(page: &Page) -> Vec<Vec<String>> {
    let blocks = page.blocks_of("sh").join("");
    let lines = blocks.lines().map(words);
    lines
        .filter(|words| words.first().is_some_and(|w| w == "drawbridge"))
        .collect()
}

#[test]
fn command_lines_are_understood() {
    let mut seen = BTreeSet::new();
    for page in pages() {
        for words in commands(&page) {
            let parsed = Cli::try_parse_from(&words);
            assert!(
                parsed.is_ok(),
                "{}: {words:?}\n{}",
                page.name,
                parsed.unwrap_err()
            );
            seen.extend(words.get(1).cloned());
        }
    }
    for command in ["run", "serve", "check", "tools", "call", "key"] {
        assert!(
            seen.contains(command),
            "no page shows `drawbridge {command}`"
        );
    }
}

/// The tools that the README calls are there, under these names, in the gateway that its first command starts.
#[test]
fn the_tools_that_are_called_exist() {
    let folder = tempfile::tempdir().unwrap();
    let mut tools = Command::new(env!("CARGO_BIN_EXE_drawbridge"));
    let listed = tools
        .args(["tools", "--json"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let listed = String::from_utf8(listed.stdout).unwrap();
    let page = readme();
    let mut called = 0;
    for text in page.blocks().into_iter().map(|b| b.text) {
        for name in text
            .split(['"', '\'', ' '])
            .filter(|word| word.contains("__"))
        {
            assert!(
                listed.contains(&format!("\"{name}\"")),
                "no tool is called {name}"
            );
            called += 1;
        }
    }
    assert!(
        called >= 3,
        "the Python, the TypeScript and the shell call a tool"
    );
}

/// Codes in a table row end the row.
#[test]
fn codes_in_the_table_are_those_of_the_code() {
    let source = read("src/mcp/code.rs");
    let known: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.split("i64 = ").nth(1))
        .collect();
    let known: BTreeSet<i64> = known
        .iter()
        .filter_map(|n| n.trim_end_matches(';').parse().ok())
        .collect();
    assert!(known.contains(&-31001), "{known:?}");
    for page in pages() {
        for code in codes(&page.text) {
            assert!(
                known.contains(&code),
                "{}: nobody answers {code}",
                page.name
            );
        }
    }
    let said: BTreeSet<i64> = codes(&readme().text).into_iter().collect();
    for own in known
        .iter()
        .filter(|code| (-31999..=-31000).contains(*code))
    {
        assert!(said.contains(own), "the README does not tell of {own}");
    }
}

/// The numbers of five digits below zero.
fn codes(text: &str) -> Vec<i64> {
    let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '-');
    let code = |word: &&str| word.len() == 6 && word.starts_with("-3");
    numbers
        .filter(code)
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[test]
fn statuses_in_the_table_are_those_of_the_front() {
    let source = read("src/front/refusal.rs");
    let page = readme();
    let table = page
        .text
        .lines()
        .filter(|line| line.starts_with('|') && line.contains("| -3"));
    for line in table {
        let cell = line
            .trim_end_matches('|')
            .rsplit('|')
            .nth(1)
            .unwrap_or_default();
        for status in cell.split('·').map(str::trim) {
            let number: u16 = status
                .parse()
                .unwrap_or_else(|_| panic!("no status: {line}"));
            let status = http::StatusCode::from_u16(number).unwrap();
            let name = status.canonical_reason().unwrap_or_default();
            let constant = name.to_uppercase().replace([' ', '-'], "_");
            assert!(
                number == 200 || source.contains(&constant),
                "{constant} is never answered"
            );
        }
    }
}

#[test]
fn the_readme_is_short() {
    assert!(readme().text.lines().count() < 200);
}

/// The two commands at the top are real.
#[test]
fn the_first_block_starts_and_tests() {
    let blocks = readme().blocks_of("sh");
    let first: Vec<Vec<String>> = blocks[0].lines().map(words).collect();
    assert_eq!(first[0], ["cargo", "run", "--release"]);
    assert_eq!(first.len(), 2);
    assert!(Path::new(root()).join(&first[1][0]).exists());
}
