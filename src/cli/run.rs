//! `drawbridge run`: one server at `/mcp`, without a file.

use super::{
    Failure,
    flags::{GatewayFlags, word},
    serve,
    source::{Origin, Source},
};
use crate::config::{
    Config, HeaderName, HttpUrl, Isolation, Period, Protocol, Secret, Server, ServerId, Target,
};
use clap::Args;
use std::{path::PathBuf, process::ExitCode};

const ISOLATIONS: &[&str] = &["session", "principal", "request", "shared"];
const PROTOCOLS: &[&str] = &[
    "auto",
    "modern",
    "legacy",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

#[derive(Debug, Args)]
#[command(
    override_usage = "drawbridge run [OPTIONS] -- <COMMAND> [ARGS]...\n       drawbridge run [OPTIONS] <URL>",
    after_help = "\
Examples:
  drawbridge run -- npx -y @modelcontextprotocol/server-filesystem /data
  drawbridge run --env GITHUB_TOKEN -- github-mcp-server stdio
  drawbridge run https://host.example/mcp --header \"Authorization: Bearer $TOKEN\"
  drawbridge run --listen 0.0.0.0:8080 --token \"$TOKEN\" -- uvx mcp-server-git"
)]
pub(super) struct RunArgs {
    /// A server elsewhere, over streamable HTTP
    #[arg(
        value_name = "URL",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    url: Option<String>,

    /// A program and its arguments, behind `--`: a server on standard input and output
    #[arg(last = true, value_name = "COMMAND", num_args = 1..)]
    command: Vec<String>,

    /// A header that every request to the URL carries; may be given several times
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header, conflicts_with = "command")]
    headers: Vec<(HeaderName, Secret)>,

    /// A variable of the program's environment, with its value or as it is here; may be given several times
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = variable, conflicts_with = "url")]
    env: Vec<(String, Option<Secret>)>,

    /// The program's working directory
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cwd: Option<PathBuf>,

    /// The server's name in logs and metrics
    #[arg(long)]
    name: Option<ServerId>,

    /// Who shares a process or a session with the server
    #[arg(long, value_name = "KIND", value_parser = word::<Isolation>(ISOLATIONS))]
    isolation: Option<Isolation>,

    /// The protocol that the server is spoken to in
    #[arg(long, value_name = "REV", value_parser = word::<Protocol>(PROTOCOLS))]
    protocol: Option<Protocol>,

    /// How long a call may take without any progress, such as 60s
    #[arg(long, value_name = "DURATION", value_parser = period)]
    call_timeout: Option<Period>,

    /// How long the server may take to start, such as 2m
    #[arg(long, value_name = "DURATION", value_parser = period)]
    start_timeout: Option<Period>,

    #[command(flatten)]
    gateway: GatewayFlags,
}

fn header(text: &str) -> Result<(HeaderName, Secret), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("write a name, a colon and a value, such as `X-Team: agents`")?;
    let name: HeaderName = name.trim().parse().map_err(said)?;
    let value = value.trim();
    match http::HeaderValue::try_from(value) {
        Ok(_) => Ok((name, Secret::new(value))),
        Err(_) => Err("a value of a header has no control characters".into()),
    }
}

fn said(wrong: crate::config::Wrong) -> String {
    wrong.to_string()
}

fn variable(text: &str) -> Result<(String, Option<Secret>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(Secret::new(value))),
        None => (text, None),
    };
    match name.is_empty() || name.contains('\0') {
        true => Err("write a name, or a name, `=` and a value".into()),
        false => Ok((name.to_owned(), value)),
    }
}

fn period(text: &str) -> Result<Period, String> {
    let period: Period = text.parse().map_err(said)?;
    match period.get().is_zero() {
        true => Err("no time at all; write a longer one, such as `30s`".into()),
        false => Ok(period),
    }
}

pub(super) async fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let source = Source {
        config: config(&args)?,
        origin: Origin::CommandLine,
    };
    serve::host(source, &args.gateway).await
}

/// The configuration that was said in flags.
fn config(args: &RunArgs) -> Result<Config, Failure> {
    let mut config = match &args.command[..] {
        [program, rest @ ..] => Config::for_command(program, rest.iter().cloned()),
        [] => Config::for_url(url(args.url.as_deref().unwrap_or_default())?),
    };
    config.single_server = false;
    let (id, mut server) = config
        .servers
        .shift_remove_index(0)
        .expect("there is one server");
    apply(args, &mut server);
    let id = args.name.clone().unwrap_or(id);
    config.servers.insert(id, server);
    Ok(config)
}

fn url(text: &str) -> Result<HttpUrl, Failure> {
    text.parse().map_err(|_| {
        let shown = text.split('?').next().unwrap_or_default();
        Failure::NotAUrl(super::print::harmless(shown))
    })
}

fn apply(args: &RunArgs, server: &mut Server) {
    match &mut server.target {
        Target::Process(process) => {
            process.cwd = args.cwd.clone();
            for (name, value) in &args.env {
                match value {
                    Some(value) => drop(process.env.insert(name.clone(), value.clone())),
                    None => process.inherit_env.push(name.clone()),
                }
            }
        }
        Target::Remote(remote) => remote.headers.extend(args.headers.iter().cloned()),
        Target::Unavailable(_) => {}
    }
    server.isolation = args.isolation.unwrap_or(server.isolation);
    server.protocol = args.protocol.unwrap_or(server.protocol);
    server.start.timeout = args.start_timeout.unwrap_or(server.start.timeout);
    server.timeouts.call = args.call_timeout.unwrap_or(server.timeouts.call);
    // What progress may extend a call to is never less than what it may take without.
    server.timeouts.call_max = server.timeouts.call_max.max(server.timeouts.call);
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArgs,
    }

    fn said_by(args: &[&str]) -> Option<Config> {
        let line = Line::try_parse_from(["x"].iter().chain(args)).ok()?;
        config(&line.run).ok()
    }

    #[test]
    fn a_program_has_its_own_flags() {
        let config = said_by(&[
            "--env", "A=b=c", "--env", "HOME", "--name", "git", "--", "uvx", "-y", "--env", "x",
        ])
        .unwrap();
        let (id, server) = config.servers.first().unwrap();
        let Target::Process(process) = &server.target else {
            panic!()
        };
        assert_eq!((id.as_str(), &*process.command), ("git", "uvx"));
        assert_eq!(process.args, ["-y", "--env", "x"]);
        assert_eq!(process.env["A"].expose(), "b=c");
        assert_eq!(process.inherit_env, ["HOME"]);
    }

    #[test]
    fn a_url_has_headers_and_time() {
        let config = said_by(&[
            "https://host.example/mcp",
            "--header",
            "X-Team: a:b",
            "--call-timeout",
            "1h",
            "--isolation",
            "shared",
            "--protocol",
            "2025-06-18",
        ])
        .unwrap();
        let server = &config.servers["server"];
        let Target::Remote(remote) = &server.target else {
            panic!()
        };
        assert_eq!(remote.headers[0].expose(), "a:b");
        assert_eq!(server.timeouts.call_max, server.timeouts.call);
        assert_eq!(server.isolation, Isolation::Shared);
        assert_eq!(server.protocol, Protocol::V2025_06_18);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for args in [
            &[][..],
            &["npx"],
            &["ftp://host.example"],
            &["https://host.example/mcp", "--", "npx"],
            &["https://host.example/mcp", "--env", "A=b"],
            &["--header", "A: b", "--", "npx"],
            &["https://host.example/mcp", "--header", "no colon"],
            &["https://host.example/mcp", "--call-timeout", "0s"],
            &["https://host.example/mcp", "--isolation", "none"],
        ] {
            assert!(said_by(args).is_none(), "{args:?}");
        }
    }
}
