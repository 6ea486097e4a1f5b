//! The commands that run until they are told to end.

use crate::support::{DRAWBRIDGE, Started, command, get, http, run, start, wait};
use serde_json::Value;
use std::{
    process::Stdio,
    time::{Duration, Instant},
};

fn quiet(folder: &std::path::Path, args: &[&str]) -> Started {
    let mut command = command(folder, args);
    command.stderr(Stdio::null());
    start(command)
}

fn session(gateway: &Started, headers: &[(&str, &str)]) -> String {
    let greeted = gateway.initialize(headers);
    assert_eq!(greeted.status, 200, "{}", greeted.body);
    greeted.header("Mcp-Session-Id").unwrap().to_owned()
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

#[test]
fn alone_it_serves_the_examples_and_its_lines_work_when_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = quiet(folder.path(), &[]);
    assert!(
        gateway.banner.contains("travel, weather, calendar"),
        "{}",
        gateway.banner
    );
    let line = gateway
        .banner
        .lines()
        .find(|l| l.contains("curl "))
        .unwrap();
    let pasted = std::process::Command::new("sh")
        .args(["-c", line])
        .output()
        .unwrap();
    let answer = String::from_utf8_lossy(&pasted.stdout).into_owned();
    assert!(
        answer.contains("weather__checkWeather"),
        "{answer}{}",
        String::from_utf8_lossy(&pasted.stderr)
    );
    let snippet = &gateway.banner[gateway.banner.find("{\n").unwrap()..];
    let snippet: Value = serde_json::from_str(snippet).unwrap();
    let server = &snippet["mcpServers"]["drawbridge"];
    assert_eq!(
        (&server["type"], &server["url"]),
        (&"http".into(), &format!("{}/mcp", gateway.base).into())
    );
}

#[test]
fn with_a_token_the_lines_take_it_from_the_environment_and_never_show_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), &[]);
    command
        .env("DRAWBRIDGE_TOKEN", "canary-token")
        .stderr(Stdio::null());
    let gateway = start(command);
    assert!(
        !gateway.banner.contains("canary-token"),
        "{}",
        gateway.banner
    );
    assert_eq!(gateway.initialize(&[]).status, 401);
    let line = gateway
        .banner
        .lines()
        .find(|l| l.contains("curl "))
        .unwrap();
    let mut shell = std::process::Command::new("sh");
    let pasted = shell
        .args(["-c", line])
        .env("DRAWBRIDGE_TOKEN", "canary-token")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&pasted.stdout).contains("weather__checkWeather"));
}

#[test]
fn run_serves_one_program_under_its_own_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), &["run"]);
    command.stderr(Stdio::null());
    command.args([
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--name",
        "wx",
        "--",
        DRAWBRIDGE,
        "example",
        "weather",
    ]);
    let gateway = crate::support::start_as_it_is(command);
    let id = session(&gateway, &[]);
    let list = gateway.rpc(&[("Mcp-Session-Id", &id)], LIST);
    assert!(list.body.contains("\"checkWeather\""), "{}", list.body);
    let ready: Value =
        serde_json::from_str(&get(&format!("{}/readyz", gateway.admin)).body).unwrap();
    assert_eq!(ready["servers"]["wx"], "up");
}

#[test]
fn run_serves_a_server_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let inner = quiet(folder.path(), &["--token", "inner"]);
    let url = format!("{}/mcp/weather", inner.base);
    let outer = quiet(
        folder.path(),
        &["run", &url, "--header", "Authorization: Bearer inner"],
    );
    let id = session(&outer, &[]);
    let list = outer.rpc(&[("Mcp-Session-Id", &id)], LIST);
    assert!(list.body.contains("\"checkWeather\""), "{}", list.body);
}

#[test]
fn a_new_key_opens_the_gateway_that_has_its_entry() {
    let said = run(&["key", "new", "ci"]).out;
    let key = said
        .lines()
        .map(str::trim)
        .find(|l| l.starts_with("db_"))
        .unwrap();
    let entry = &said[said.find("auth:").unwrap()..said.find("\nClients").unwrap()];
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("drawbridge.yaml"), entry).unwrap();
    let gateway = quiet(folder.path(), &[]);
    assert_eq!(gateway.initialize(&[]).status, 401);
    let shown = format!("Bearer {key}");
    assert_eq!(gateway.initialize(&[("Authorization", &shown)]).status, 200);
}

#[test]
fn without_any_server_it_is_a_gateway_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("drawbridge.yaml"), "servers: {}\n").unwrap();
    let gateway = quiet(folder.path(), &[]);
    assert_eq!(get(&format!("{}/readyz", gateway.admin)).status, 200);
    let id = session(&gateway, &[]);
    let list = gateway.rpc(&[("Mcp-Session-Id", &id)], LIST);
    assert!(list.body.contains(r#""tools":[]"#), "{}", list.body);
}

#[test]
fn metrics_are_where_the_banner_says_and_ask_for_their_key() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = quiet(folder.path(), &["--admin-key", "s3cret"]);
    let url = format!("{}/metrics", gateway.admin);
    assert_eq!(get(&url).status, 401);
    let metrics = http("GET", &url, &[("Authorization", "Bearer s3cret")], "");
    assert_eq!(metrics.status, 200);
    for name in [
        "drawbridge_build_info",
        "drawbridge_log_lines_dropped_total",
        "drawbridge_server_up",
    ] {
        assert!(metrics.body.contains(name), "{name}");
    }
    assert_eq!(get(&format!("{}/livez", gateway.admin)).status, 200);
}

/// The processes whose parent is, or was, `pid`: its keepers, found by what they hold of its program.
fn children(pid: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let Ok(listed) = listed else {
        return Vec::new();
    };
    listed
        .split_whitespace()
        .map(|p| p.parse().unwrap())
        .collect()
}

#[cfg(target_os = "linux")]
#[test]
fn told_to_end_it_fails_readiness_first_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!(
        "servers: {{ wx: {{ command: \"{DRAWBRIDGE}\", args: [example, weather] }} }}\ndrain: {{ delay: 1s, grace: 10s }}\n"
    );
    std::fs::write(folder.path().join("drawbridge.yaml"), file).unwrap();
    let mut gateway = quiet(folder.path(), &[]);
    let id = session(&gateway, &[]);
    gateway.rpc(&[("Mcp-Session-Id", &id)], LIST);
    let pid = gateway.child.id();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let threads = tasks.map(|t| t.unwrap().file_name().into_string().unwrap());
    let keepers: Vec<u32> = threads
        .flat_map(|thread| {
            let path = format!("/proc/{pid}/task/{thread}/children");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.split_whitespace()
                .map(|p| p.parse().unwrap())
                .collect::<Vec<u32>>()
        })
        .collect();
    assert!(!keepers.is_empty());
    let servers: Vec<u32> = keepers
        .iter()
        .flat_map(|keeper| children(*keeper))
        .collect();
    gateway.terminate();
    let until = Instant::now() + Duration::from_millis(900);
    let ready = format!("{}/readyz", gateway.admin);
    while get(&ready).status != 503 {
        assert!(Instant::now() < until, "readiness did not fail");
    }
    assert_eq!(
        gateway.initialize(&[]).status,
        200,
        "new work is still taken in the delay"
    );
    assert_eq!(wait(&mut gateway.child).code(), Some(0));
    for pid in keepers.iter().chain(&servers) {
        assert!(
            !std::path::Path::new(&format!("/proc/{pid}")).exists(),
            "{pid} is left"
        );
    }
}

#[test]
fn an_interrupt_ends_an_idle_gateway_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = quiet(folder.path(), &[]);
    let pid = rustix::process::Pid::from_child(&gateway.child);
    let told = Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(wait(&mut gateway.child).code(), Some(0));
    assert!(
        told.elapsed() < Duration::from_secs(5),
        "{:?}",
        told.elapsed()
    );
}
