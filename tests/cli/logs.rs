//! What goes to standard error, and what happens when nobody reads it.

use crate::support::{Started, command, get, start, wait};
use std::{
    io::Read,
    process::Stdio,
    time::{Duration, Instant},
};

/// Ends a gateway and gives all that it logged.
fn log_of(mut gateway: Started) -> String {
    let mut stderr = gateway.child.stderr.take().unwrap();
    gateway.terminate();
    let mut log = String::new();
    stderr.read_to_string(&mut log).unwrap();
    assert_eq!(wait(&mut gateway.child).code(), Some(0));
    log
}

#[test]
fn a_log_of_json_is_json_to_its_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(command(
        folder.path(),
        &["--log-format", "json", "--log-level", "debug"],
    ));
    gateway.initialize(&[]);
    let log = log_of(gateway);
    assert!(!log.is_empty());
    for line in log.lines() {
        let value: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(value["message"].is_string(), "{line}");
    }
    assert!(log.contains("shutting down"), "{log}");
}

#[test]
fn no_token_and_no_argument_is_in_any_log() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--log-level", "trace", "--token", "canary-token"];
    let gateway = start(command(folder.path(), &args));
    let key = ("Authorization", "Bearer canary-token");
    let wrong = ("Authorization", "Bearer canary-wrong");
    assert_eq!(gateway.initialize(&[wrong]).status, 401);
    let id = gateway
        .initialize(&[key])
        .header("Mcp-Session-Id")
        .unwrap()
        .to_owned();
    let session = ("Mcp-Session-Id", id.as_str());
    for name in ["weather__checkWeather", "nope__nope"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"{name}","arguments":{{"city":"canary-city"}}}}}}"#
        );
        gateway.rpc(&[key, session, ("Cookie", "canary-cookie")], &body);
    }
    gateway.rpc(&[key, session], r#"{"canary-broken""#);
    let log = log_of(gateway);
    assert!(log.contains("DEBUG") || log.contains("TRACE"), "{log}");
    assert!(!log.contains("canary"), "{log}");
    assert!(!log.contains(&id), "{log}");
}

#[test]
fn a_reader_that_stalls_stops_neither_the_work_nor_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = start(command(folder.path(), &["--log-level", "debug"]));
    // Far more than a pipe holds: each refused request is a line.
    for _ in 0..700 {
        let refused = gateway.rpc(&[("Mcp-Session-Id", "nobody's")], "{}");
        assert_ne!(refused.status, 200);
    }
    let metrics = get(&format!("{}/metrics", gateway.admin)).body;
    assert!(metrics.contains("drawbridge_log_lines_dropped_total"));
    assert_eq!(gateway.initialize(&[]).status, 200);
    let told = Instant::now();
    gateway.terminate();
    assert_eq!(wait(&mut gateway.child).code(), Some(0));
    assert!(
        told.elapsed() < Duration::from_secs(20),
        "{:?}",
        told.elapsed()
    );
    let mut kept = Vec::new();
    let mut stderr = gateway.child.stderr.take().unwrap();
    stderr.read_to_end(&mut kept).unwrap();
    assert!(
        kept.len() > 60_000,
        "the pipe was never full: {}",
        kept.len()
    );
}

#[test]
fn closed_outputs_stop_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), &["--log-level", "debug"]);
    command.stderr(Stdio::piped());
    let mut gateway = start(command);
    // `start` has read standard output and closed it.
    drop(gateway.child.stderr.take());
    assert_eq!(gateway.initialize(&[]).status, 200);
    gateway.terminate();
    assert_eq!(wait(&mut gateway.child).code(), Some(0));
}
