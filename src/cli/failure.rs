//! Why a command failed: one line says what, one says what to do.

use crate::{config::Faults, gateway::StartError, mcp::RpcError, mcp::code, telemetry::LogError};
use std::{borrow::Cow, fmt::Write as _, io, path::PathBuf};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{faults}")]
    Config { file: String, faults: Faults },
    #[error("there is no configuration in this folder")]
    NoConfig,
    #[error("there are several configurations in this folder: {}", names(.0))]
    SeveralConfigs(Vec<PathBuf>),
    #[error(transparent)]
    Start(StartError),
    #[error(
        "refusing to listen on {0}: other machines can reach it, and nobody would be asked for a key"
    )]
    Unguarded(String),
    #[error(
        "refusing to listen on {0} for metrics: other machines can reach it, and it has no key"
    )]
    UnguardedAdmin(String),
    #[error("`{0}` is not a URL")]
    NotAUrl(String),
    #[error("the arguments of a tool are a JSON object")]
    NotAnObject,
    #[error("the arguments are not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("there is no endpoint `{path}`")]
    NoEndpoint { path: String, known: Vec<String> },
    #[error("{}", text_of(.0))]
    Answered(RpcError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{what}: {source}")]
    Io {
        what: &'static str,
        source: io::Error,
    },
    #[error("interrupted")]
    Interrupted,
}

fn names(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    shown.join(", ")
}

fn text_of(error: &RpcError) -> String {
    super::print::harmless(&format!("{} ({})", error.message, error.code))
}

impl Failure {
    /// What to do about it.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Config { .. } | Self::Interrupted | Self::Io { .. } => return None,
            Self::NoConfig => "name one with --config FILE, or run `drawbridge` alone to try the built-in examples".into(),
            Self::SeveralConfigs(_) => "say which with `drawbridge serve --config FILE`".into(),
            Self::Start(error) => return start_hint(error),
            Self::Unguarded(_) => "set a token with --token or DRAWBRIDGE_TOKEN, or add `auth.api_keys` to the configuration (`drawbridge key new NAME` makes one); to let everyone in, write `auth: none` in a configuration".into(),
            Self::UnguardedAdmin(_) => "set a key with --admin-key or DRAWBRIDGE_ADMIN_KEY, or listen on 127.0.0.1, or use --admin-listen off".into(),
            Self::NotAUrl(word) => format!("for a program write `drawbridge run -- {word} …`, for a remote server a URL such as https://host.example/mcp").into(),
            Self::NotAnObject | Self::NotJson(_) => "write them like '{\"city\":\"Paris\"}', or `-` to read them from standard input".into(),
            Self::NoEndpoint { known, .. } => format!("choose one with --endpoint: {}", known.join(", ")).into(),
            Self::Answered(error) => return answer_hint(error),
            Self::Log(LogError::Filter) => "set RUST_LOG to a level such as `debug`, or to targets such as `drawbridge=debug,hyper=info`".into(),
            Self::Log(LogError::Thread(_)) => return None,
        })
    }

    /// The code that the process ends with.
    pub fn code(&self) -> u8 {
        match self {
            // As shells have it for SIGINT.
            Self::Interrupted => 130,
            _ => 1,
        }
    }

    /// All that is said of it on standard error.
    pub fn report(&self) -> String {
        let mut text = match self {
            Self::Config { file, faults } => {
                let mut text = String::new();
                for fault in faults.iter() {
                    let _ = writeln!(text, "{fault}");
                }
                let count = super::print::count(faults.iter().len(), "fault");
                let _ = writeln!(text, "drawbridge: {file} has {count}");
                text
            }
            other => format!("drawbridge: {other}\n"),
        };
        if let Some(hint) = self.hint() {
            let _ = writeln!(text, "  {hint}");
        }
        text
    }
}

fn start_hint(error: &StartError) -> Option<Cow<'static, str>> {
    let StartError::Listen { source, .. } = error else {
        return None;
    };
    Some(match source.kind() {
        io::ErrorKind::AddrInUse => "another program has that port: end it, or choose another with --listen (or --admin-listen, for metrics and probes)".into(),
        io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege: choose a higher one with --listen".into(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address: use 127.0.0.1, or 0.0.0.0 for all of them".into(),
        _ => return None,
    })
}

fn answer_hint(error: &RpcError) -> Option<Cow<'static, str>> {
    Some(match error.code {
        code::UNREACHABLE => "`drawbridge check --connect` tells more about the server".into(),
        code::TIMED_OUT => {
            "give it longer with `timeouts.call`, or see what it does with --log-level debug".into()
        }
        code::REFUSED => "see the server's `headers` in the configuration".into(),
        code::INVALID_PARAMS => {
            "`drawbridge tools` lists the names, `drawbridge tools --json` the arguments".into()
        }
        code::NOT_CARRIED => "call it from a client that speaks the server's own revision".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_and_what_to_do() {
        let source = io::Error::from(io::ErrorKind::AddrInUse);
        let failure = Failure::Start(StartError::Listen {
            address: "127.0.0.1:8080".into(),
            source,
        });
        let report = failure.report();
        let lines: Vec<&str> = report.lines().collect();
        assert_eq!(lines.len(), 2, "{report}");
        assert!(lines[0].starts_with("drawbridge: cannot listen on 127.0.0.1:8080"));
        assert!(lines[1].contains("--listen"));
    }

    #[test]
    fn what_a_server_says_cannot_disturb_a_terminal() {
        let error = RpcError::new(code::INVALID_PARAMS, "no\u{1b}[2J");
        let report = Failure::Answered(error).report();
        assert!(!report.contains('\u{1b}'), "{report}");
    }
}
