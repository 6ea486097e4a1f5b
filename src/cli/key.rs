//! `drawbridge key`: API keys, shown once and kept as hashes.

use super::{Failure, print};
use crate::{
    auth::{NewKey, new_key},
    config::{Expiry, KeyName, Scope},
};
use clap::{Args, Subcommand};
use std::{fmt::Write, process::ExitCode, time::SystemTime};

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make an API key: prints the key once, and the entry for the configuration
    #[command(after_help = "\
Example:
  drawbridge key new ci --scope tools:read --expires 2027-01-01")]
    New(NewArgs),
}

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// Whose key it is: the name in logs and limits
    name: KeyName,

    /// What it may be used for; may be given several times
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<Scope>,

    /// When it stops to be valid: a date, or a date and time
    #[arg(long, value_name = "DATE", value_parser = coming)]
    expires: Option<String>,
}

/// A moment that is not over; kept as it was written.
fn coming(text: &str) -> Result<String, String> {
    let expiry: Expiry = text
        .parse()
        .map_err(|wrong: crate::config::Wrong| wrong.to_string())?;
    match expiry.is_past(SystemTime::now()) {
        true => Err("is over already; write a date to come".into()),
        false => Ok(text.to_owned()),
    }
}

pub(super) fn run(command: KeyCommand) -> Result<ExitCode, Failure> {
    let KeyCommand::New(args) = command;
    print::out(&text(&args, &new_key()))?;
    Ok(ExitCode::SUCCESS)
}

fn text(args: &NewArgs, key: &NewKey) -> String {
    let mut text = format!(
        "The key, which is shown only now:\n\n  {}\n\nThe entry for the configuration:\n\n{}",
        key.key,
        entry(args, key)
    );
    text.push_str("\nClients show the key as `Authorization: Bearer KEY`.\n");
    text
}

/// The entry as YAML. Everything is quoted, so that no name is taken for a number or a date.
fn entry(args: &NewArgs, key: &NewKey) -> String {
    let mut yaml = String::from("auth:\n  api_keys:\n");
    let _ = writeln!(yaml, "    - name: \"{}\"", args.name);
    let _ = writeln!(yaml, "      sha256: \"{}\"", key.sha256);
    if !args.scopes.is_empty() {
        let scopes: Vec<String> = args.scopes.iter().map(|s| format!("\"{s}\"")).collect();
        let _ = writeln!(yaml, "      scopes: [{}]", scopes.join(", "));
    }
    if let Some(expires) = &args.expires {
        let _ = writeln!(yaml, "      expires: \"{expires}\"");
    }
    yaml
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Auth, Config, Format};

    #[test]
    fn the_entry_is_what_the_configuration_takes() {
        let args = NewArgs {
            name: "1e3".parse().unwrap(),
            scopes: vec!["tools:read".parse().unwrap(), "#[x]".parse().unwrap()],
            expires: Some("2999-01-01".into()),
        };
        let yaml = entry(&args, &new_key());
        let loaded = Config::parse("x", &yaml, Some(Format::Yaml), &|_| None).unwrap();
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        let Some(Auth::Keys(keys)) = loaded.config.auth else {
            panic!()
        };
        assert_eq!(keys.api_keys[0].name.as_str(), "1e3");
        assert_eq!(keys.api_keys[0].scopes.len(), 2);
    }

    #[test]
    fn a_date_that_is_over_is_refused() {
        assert!(coming("2020-01-01").is_err() && coming("tomorrow").is_err());
        assert!(coming("2999-01-01").is_ok());
    }
}
