//! Whole files through the whole room.

mod desktop;
mod examples;
mod expansion;
mod faults;
mod settings;

use super::*;

/// The environment of these tests.
fn env(name: &str) -> Option<String> {
    let value = match name {
        "TOKEN" => "s3cret-t0ken",
        "PORT" => "8081",
        "WORKERS" => "7",
        "OFF" => "true",
        "EMPTY" => "",
        "INPUT_GITHUB_TOKEN" => "from-input",
        _ => return None,
    };
    Some(value.to_owned())
}

fn load(name: &str, text: &str) -> Result<Loaded, Faults> {
    Config::parse(name, text, None, &env)
}

/// The faults of a file, a line each.
fn faults(name: &str, text: &str) -> String {
    match load(name, text) {
        Ok(_) => String::new(),
        Err(faults) => faults.to_string(),
    }
}

fn loaded(name: &str, text: &str) -> Loaded {
    load(name, text).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The warnings of a file, a line each.
fn warnings(name: &str, text: &str) -> String {
    let warnings = loaded(name, text).warnings;
    warnings
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
