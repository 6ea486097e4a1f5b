//! The commands that end by themselves.

use crate::support::{DRAWBRIDGE, run, run_with};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    time::{Duration, Instant},
};

#[test]
fn the_version_and_the_help_are_there() {
    let version = run(&["--version"]);
    assert_eq!(version.code, 0);
    assert_eq!(
        version.out,
        format!("drawbridge {}\n", env!("CARGO_PKG_VERSION"))
    );
    for command in [
        "serve", "run", "check", "tools", "call", "key", "schema", "example",
    ] {
        let help = run(&[command, "--help"]);
        assert_eq!(help.code, 0, "{command}");
        assert!(help.out.contains("Usage: drawbridge"), "{}", help.out);
    }
    assert_eq!(run(&["tool"]).code, 2);
}

#[test]
fn a_token_in_the_environment_is_not_in_the_help() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = crate::support::command(folder.path(), &["--help"]);
    let out = command.env("DRAWBRIDGE_TOKEN", "canary").output().unwrap();
    let help = String::from_utf8(out.stdout).unwrap();
    assert!(
        help.contains("DRAWBRIDGE_TOKEN") && !help.contains("canary"),
        "{help}"
    );
}

#[test]
fn check_tells_every_fault_with_its_place() {
    let file = "listen: 127.0.0.1:99999\nservers:\n  files:\n    comand: npx\n    start: { timeout: soon }\n";
    let said = run_with(&[("bad.yaml", file)], &["check", "--config", "bad.yaml"]);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    for place in [
        "bad.yaml:1:9: listen: ",
        "bad.yaml:4:5: servers.files.comand: ",
        "bad.yaml:5:",
    ] {
        assert!(said.out.contains(place), "{place} in {}", said.out);
    }
    assert!(said.out.contains("`command`"), "{}", said.out);
    let said = run_with(
        &[("bad.yaml", file)],
        &["check", "-c", "bad.yaml", "--json"],
    );
    assert_eq!(said.code, 1);
    let json: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(json["ok"], false);
    let first = &json["faults"][0];
    assert_eq!(
        (&first["line"], &first["path"]),
        (&1.into(), &"listen".into())
    );
    assert!(json["faults"].as_array().unwrap().len() >= 3);
}

#[test]
fn a_faulty_file_starts_nothing() {
    let file = [("drawbridge.yaml", "servers: { files: { comand: npx } }")];
    for args in [&[][..], &["serve"], &["tools"], &["call", "x"]] {
        let said = run_with(&file, args);
        assert_eq!(said.code, 1);
        assert!(said.out.is_empty(), "{}", said.out);
        assert!(
            said.err
                .contains("drawbridge.yaml:1:21: servers.files.comand"),
            "{}",
            said.err
        );
    }
}

#[test]
fn check_tells_what_became_of_a_desktop_file() {
    let file = r#"{"mcpServers": {"Brave Search": {"command": "npx"}, "off": {"command": "x", "disabled": true}}}"#;
    let said = run_with(&[("d.json", file)], &["check", "--config", "d.json"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(
        said.out.contains("`Brave Search` is called `brave-search`"),
        "{}",
        said.out
    );
    assert!(said.out.contains("`off` is switched off"), "{}", said.out);
    assert!(
        said.out.contains("is right: 1 server, 1 endpoint"),
        "{}",
        said.out
    );
}

fn examples(more: &str) -> String {
    format!(
        "servers:\n  travel: {{ command: \"{DRAWBRIDGE}\", args: [example, travel] }}\n  old: {{ command: \"{DRAWBRIDGE}\", args: [example, weather, --protocol, 2025-03-26] }}\n{more}"
    )
}

#[test]
fn check_connect_tells_what_each_server_offers() {
    let file = examples("");
    let said = run_with(
        &[("x.yaml", &file)],
        &["check", "-c", "x.yaml", "--connect"],
    );
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("2026-07-28 (modern)"), "{}", said.out);
    assert!(said.out.contains("2025-03-26 (legacy)"), "{}", said.out);
    assert!(
        said.out.contains("drawbridge-example-travel"),
        "{}",
        said.out
    );
}

#[test]
fn check_connect_fails_if_one_server_is_down() {
    let file = examples("  dead: { command: /does/not/exist }\n");
    let args = ["check", "-c", "x.yaml", "--connect", "--json"];
    let said = run_with(&[("x.yaml", &file)], &args);
    assert_eq!(said.code, 1);
    let json: Value = serde_json::from_str(&said.out).unwrap();
    let servers = &json["servers"];
    assert_eq!(
        (&json["ok"], &servers[0]["ok"]),
        (&false.into(), &true.into())
    );
    assert_eq!(
        (&servers[0]["tools"], &servers[0]["era"]),
        (&3.into(), &"modern".into())
    );
    assert_eq!(
        (&servers[2]["name"], &servers[2]["ok"]),
        (&"dead".into(), &false.into())
    );
    let error = servers[2]["error"].as_str().unwrap();
    assert!(error.contains("/does/not/exist"), "{error}");
    let said = run_with(
        &[("x.yaml", &file)],
        &["check", "-c", "x.yaml", "--connect"],
    );
    assert_eq!(said.code, 1);
    assert!(
        said.out.contains("the server `dead` cannot be reached"),
        "{}",
        said.out
    );
}

#[test]
fn the_schema_is_the_one_that_is_checked_in() {
    let said = run(&["schema"]);
    assert_eq!(said.code, 0);
    let checked_in = include_str!("../../config/schema.json");
    assert_eq!(said.out, checked_in);
}

#[test]
fn a_new_key_is_shown_once_and_its_entry_is_a_configuration() {
    let args = [
        "key",
        "new",
        "ci",
        "--scope",
        "tools:read",
        "--scope",
        "x",
        "--expires",
        "2999-01-01",
    ];
    let said = run(&args);
    assert_eq!(said.code, 0, "{}", said.err);
    let key = said
        .out
        .lines()
        .map(str::trim)
        .find(|l| l.starts_with("db_"))
        .unwrap();
    assert_eq!(said.out.matches(key).count(), 1);
    let entry = &said.out[said.out.find("auth:").unwrap()..said.out.find("\nClients").unwrap()];
    let checked = run_with(&[("drawbridge.yaml", entry)], &["check"]);
    assert_eq!(checked.code, 0, "{}{}", checked.out, checked.err);
    assert!(checked.out.contains("1 API key"), "{}", checked.out);
    assert_eq!(run(&["key", "new", "a b"]).code, 2);
    assert_eq!(
        run(&["key", "new", "ci", "--expires", "2001-01-01"]).code,
        2
    );
}

#[test]
fn tools_lists_the_merged_catalog() {
    let said = run(&["tools"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.starts_with("NAME"), "{}", said.out);
    let line = said
        .out
        .lines()
        .find(|l| l.starts_with("weather__checkWeather "))
        .unwrap();
    assert!(
        line.contains("  weather  ") && line.ends_with("The weather in a city now"),
        "{line}"
    );
    let file = examples("");
    let args = [
        "tools",
        "-c",
        "x.yaml",
        "--json",
        "--endpoint",
        "/mcp/travel",
    ];
    let said = run_with(&[("x.yaml", &file)], &args);
    let json: Value = serde_json::from_str(&said.out).unwrap();
    let first = &json["tools"][0];
    assert_eq!(
        (&first["name"], &first["server"]),
        (&"searchFlights".into(), &"travel".into())
    );
    assert!(first["tool"]["inputSchema"].is_object());
}

#[test]
fn tools_goes_without_a_server_that_is_down_and_says_so() {
    let file = examples("  dead: { command: /does/not/exist }\n");
    let said = run_with(&[("x.yaml", &file)], &["tools", "-c", "x.yaml"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("travel__searchFlights"), "{}", said.out);
    assert!(
        said.err.contains("could not be reached: dead"),
        "{}",
        said.err
    );
}

#[test]
fn call_prints_what_the_tool_says() {
    let said = run(&["call", "weather__checkWeather", r#"{"city":"Paris"}"#]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("Paris") && said.err.is_empty(),
        "{}{}",
        said.out,
        said.err
    );
    let args = [
        "call",
        "weather__checkWeather",
        r#"{"city":"Paris"}"#,
        "--json",
    ];
    let said = run(&args);
    let json: Value = serde_json::from_str(&said.out).unwrap();
    assert!(json["structuredContent"].is_object() && json["content"].is_array());
}

#[test]
fn call_shows_progress_beside_the_result() {
    let said = run(&["call", "weather__wait", r#"{"seconds":1}"#]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.err.contains("progress "), "{}", said.err);
    assert!(!said.out.contains("progress "), "{}", said.out);
}

#[test]
fn call_fails_where_the_tool_or_the_way_to_it_does() {
    let tool = run(&["call", "weather__checkWeather", "{}"]);
    assert_eq!((tool.code, tool.err.as_str()), (1, ""));
    assert!(tool.out.contains("city"), "{}", tool.out);
    let unknown = run(&["call", "nope"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (1, ""));
    assert!(
        unknown.err.contains("Unknown tool: nope"),
        "{}",
        unknown.err
    );
    let file = examples("  dead: { command: /does/not/exist }\n");
    let dead = run_with(&[("x.yaml", &file)], &["call", "dead__x", "-c", "x.yaml"]);
    assert_eq!(dead.code, 1);
    assert!(
        dead.err.contains("server `dead` cannot be reached"),
        "{}",
        dead.err
    );
    assert_eq!(dead.err.lines().count(), 2, "{}", dead.err);
    let endpoint = run(&["call", "x", "--endpoint", "/nope"]);
    assert!(endpoint.err.contains("/mcp/travel"), "{}", endpoint.err);
    for arguments in ["[]", "{"] {
        assert_eq!(run(&["call", "x", arguments]).code, 1);
    }
}

#[test]
fn a_tool_that_wants_to_ask_is_told_that_nobody_is_there() {
    let said = run(&["call", "calendar__listWorkspaces"]);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert!(said.out.contains("roots"), "{}{}", said.out, said.err);
}

#[test]
fn an_interrupted_call_ends_everything() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["call", "weather__wait", r#"{"seconds":30,"steps":60}"#];
    let mut child = crate::support::command(folder.path(), &args)
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    lines.read_line(&mut first).unwrap();
    assert!(first.starts_with("progress "), "{first}");
    let told = Instant::now();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(crate::support::wait(&mut child).code(), Some(130));
    assert!(told.elapsed() < Duration::from_secs(15));
    assert_eq!(
        lines.lines().last().unwrap().unwrap(),
        "drawbridge: interrupted"
    );
}

#[test]
fn nobody_listens_to_everyone_without_a_key() {
    for args in [
        &["run", "--listen", "0.0.0.0:0", "--", "cat"][..],
        &["--listen", "0.0.0.0:0"],
    ] {
        let said = run(args);
        assert_eq!(said.code, 1);
        assert!(said.out.is_empty(), "{}", said.out);
        assert!(
            said.err.contains("refusing to listen on 0.0.0.0:0"),
            "{}",
            said.err
        );
        assert!(
            said.err.contains("--token") && said.err.contains("drawbridge key new"),
            "{}",
            said.err
        );
    }
    let file = [("x.yaml", "listen: 0.0.0.0:0\n")];
    let said = run_with(&file, &["serve", "-c", "x.yaml"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("x.yaml:1:") && said.err.contains("auth"),
        "{}",
        said.err
    );
    let said = run(&["--listen", "127.0.0.1:0", "--admin-listen", "0.0.0.0:0"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("--admin-key"), "{}", said.err);
}

#[test]
fn what_cannot_start_says_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = run(&["--listen", &address, "--admin-listen", "off"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains(&format!("cannot listen on {address}")),
        "{}",
        said.err
    );
    assert_eq!(said.err.lines().count(), 2, "{}", said.err);
    let program = run(&["run", "npx"]);
    assert!(
        program.err.contains("drawbridge run -- npx"),
        "{}",
        program.err
    );
    let none = run(&["serve"]);
    assert!(none.err.contains("--config FILE"), "{}", none.err);
    let missing = run(&["serve", "-c", "nope.yaml"]);
    assert!(
        missing.err.contains("nope.yaml: cannot be read"),
        "{}",
        missing.err
    );
}
