//! K15, K16, K18: processes that are many, that crash, that babble on stderr.

use crate::support::{TestGateway, gateway, sb, until, wait::lives};
use http::Method;
use serde_json::{Value, json};
use std::{
    path::Path,
    time::{Duration, Instant},
};

fn one(options: &[&str], more: &str) -> String {
    format!("servers: {{ one: {} }}\n", sb(options, more))
}

/// Processes of the first server that are left.
fn running(gw: &TestGateway) -> i64 {
    gw.router.servers[0].metrics.processes.get()
}

async fn none_left(gw: &TestGateway) {
    until("no process is left", || running(gw) == 0).await;
}

fn journal(directory: &Path) -> (String, String) {
    let file = directory.join("journal").display().to_string();
    (format!("--journal={file}"), file)
}

/// Lines of a journal that start with `what`.
fn noted(file: &str, what: &str) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .filter(|l| l.starts_with(what))
        .map(str::to_owned)
        .collect()
}

async fn modern_text(client: &crate::support::Client, tool: &str) -> String {
    let params = json!({"name": tool, "arguments": {}});
    let answer = client.modern("tools/call", params).await.message().await;
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

#[tokio::test]
async fn stateless_calls_use_one_process_again_and_again() {
    let directory = tempfile::tempdir().unwrap();
    let (option, file) = journal(directory.path());
    let gw = gateway(&one(&[&option], "")).await;
    let client = gw.client("/mcp");
    let first = modern_text(&client, "one__pid").await;
    for _ in 0..20 {
        assert_eq!(modern_text(&client, "one__pid").await, first);
    }
    let starts = noted(&file, "start").len();
    assert!(starts <= 3, "{starts} starts: one to look, one to work");
    gw.stop().await;
    assert!(!lives(first.parse().unwrap()));
}

#[tokio::test]
async fn a_process_for_each_request_is_gone_after_it() {
    let gw = gateway(&one(&[], "isolation: request")).await;
    let client = gw.client("/mcp");
    let session = gw.client("/mcp").connected().await;
    let mut pids = Vec::new();
    for _ in 0..4 {
        pids.push(modern_text(&client, "one__pid").await);
        pids.push(session.text("one__pid", json!({})).await);
    }
    pids.sort();
    pids.dedup();
    assert_eq!(pids.len(), 8, "each request had its own");
    for pid in &pids {
        let pid: u32 = pid.parse().unwrap();
        until("each is gone", || !lives(pid)).await;
    }
    none_left(&gw).await;
    gw.stop().await;
}

#[tokio::test]
async fn an_idle_session_takes_its_process_with_it() {
    let gw = gateway(&format!("limits: {{ session_idle: 1s }}\n{}", one(&[], ""))).await;
    let client = gw.client("/mcp").connected().await;
    let pid: u32 = client.text("one__pid", json!({})).await.parse().unwrap();
    assert!(lives(pid));
    until("the idle session's process is gone", || !lives(pid)).await;
    let answer = client
        .post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        .await;
    assert_eq!(answer.status, 404);
    gw.stop().await;
}

#[tokio::test]
async fn a_session_ended_in_the_middle_of_a_call_leaves_nothing() {
    let gw = gateway(&one(&[], "")).await;
    let client = gw.client("/mcp").connected().await;
    let pid: u32 = client.text("one__pid", json!({})).await.parse().unwrap();
    let child: u32 = client
        .text("one__spawn", json!({"detach": true}))
        .await
        .parse()
        .unwrap();
    let twin = client.twin();
    let hanging = tokio::spawn(async move { twin.call("one__hang", json!({})).await });
    until("the call runs", || gw.router.calls() > 0).await;
    assert!(client.delete().await.status.is_success());
    until("the process is gone", || !lives(pid)).await;
    until("what it started is gone", || !lives(child)).await;
    let answer = hanging.await.unwrap();
    assert!(
        answer.get("error").is_some(),
        "the call is answered: {answer}"
    );
    none_left(&gw).await;
    gw.stop().await;
}

#[tokio::test]
async fn sessions_that_nobody_ends_have_a_bounded_number_of_processes() {
    let gw = gateway(&one(&[], "limits: { processes: 4, per_principal: 3 }")).await;
    let mut clients = Vec::new();
    for _ in 0..12 {
        let client = gw.client("/mcp").connected().await;
        client.text("one__pid", json!({})).await;
        assert!(running(&gw) <= 5, "{} processes", running(&gw));
        clients.push(client);
    }
    // A session whose process made room gets a new one when it comes back.
    assert!(!clients[0].text("one__pid", json!({})).await.is_empty());
    until("no more than the bound", || running(&gw) <= 3).await;
    gw.stop().await;
}

#[tokio::test]
async fn a_call_of_a_server_that_exits_at_once_fails_and_starts_it_few_times() {
    let directory = tempfile::tempdir().unwrap();
    let (option, file) = journal(directory.path());
    let start = "start: { restarts: 2, backoff: 50ms..100ms }";
    let wait = "discovery: { wait: 1s, list_wait: 300ms }\n";
    let gw = gateway(&format!(
        "{wait}{}",
        one(&["--exit-at-start=1", &option], start)
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let answer = client.call("one__echo", json!({})).await;
    assert_eq!(answer["error"]["code"], -31001, "{answer}");
    let more = (0..10).map(|_| client.call("one__echo", json!({})));
    for answer in futures_util::future::join_all(more).await {
        assert_eq!(answer["error"]["code"], -31001, "{answer}");
    }
    let starts = noted(&file, "start").len();
    assert!(starts <= 8, "{starts} starts");
    gw.stop().await;
}

#[tokio::test]
async fn a_crash_fails_its_call_at_once_and_the_next_one_works() {
    let start = "start: { backoff: 10ms..50ms }";
    let gw = gateway(&one(&[], start)).await;
    for path in ["/mcp", "/mcp/one"] {
        let prefix = if path == "/mcp" { "one__" } else { "" };
        let client = gw.client(path).connected().await;
        let before = client.tools().await;
        let (hang, crash) = (format!("{prefix}hang"), format!("{prefix}crash"));
        let twin = client.twin();
        let hanging = tokio::spawn(async move { twin.call(&hang, json!({})).await });
        until("the call runs", || gw.router.calls() > 0).await;
        let began = Instant::now();
        let answer = client.call(&crash, json!({})).await;
        let other = hanging.await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(2));
        for answer in [answer, other] {
            assert_eq!(answer["error"]["code"], -31001, "{answer}");
            assert_eq!(
                answer["error"]["data"],
                json!({"server": "one", "retrySafe": false})
            );
        }
        assert_eq!(client.tools().await, before, "the tools stay listed");
        assert!(
            !client
                .text(&format!("{prefix}pid"), json!({}))
                .await
                .is_empty()
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_process_that_ends_after_its_answer_is_replaced_and_none_is_left_over() {
    let gw = gateway(&one(&[], "start: { backoff: 10ms..50ms }")).await;
    let client = gw.client("/mcp").connected().await;
    for _ in 0..3 {
        assert_eq!(client.text("one__exit", json!({})).await, "bye");
        none_left(&gw).await;
        let first = client.text("one__pid", json!({})).await;
        assert_eq!(client.text("one__pid", json!({})).await, first);
    }
    until("one process is left", || running(&gw) == 1).await;
    gw.stop().await;
}

#[tokio::test]
async fn a_new_process_is_told_the_level_before_it_is_called() {
    let directory = tempfile::tempdir().unwrap();
    let (option, file) = journal(directory.path());
    let gw = gateway(&one(&[&option], "start: { backoff: 10ms..50ms }")).await;
    let client = gw.client("/mcp").connected().await;
    client
        .request("logging/setLevel", json!({"level": "debug"}))
        .await;
    assert_eq!(client.text("one__exit", json!({})).await, "bye");
    none_left(&gw).await;
    client.text("one__pid", json!({})).await;
    let lines = noted(&file, "in ");
    let methods: Vec<String> = lines
        .iter()
        .filter_map(|l| serde_json::from_str::<Value>(&l[3..]).ok())
        .filter_map(|m| m["method"].as_str().map(str::to_owned))
        .collect();
    let last = methods.iter().rposition(|m| m == "initialize").unwrap();
    let after: Vec<&str> = methods[last..].iter().map(String::as_str).collect();
    assert_eq!(
        after,
        [
            "initialize",
            "notifications/initialized",
            "logging/setLevel",
            "tools/call"
        ]
    );
    gw.stop().await;
}

#[tokio::test]
async fn a_crash_is_one_callers_own() {
    let gw = gateway(&one(&[], "start: { backoff: 10ms..50ms }")).await;
    let (first, second) = (
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
    );
    let pid = second.text("one__pid", json!({})).await;
    let answer = first.call("one__crash", json!({})).await;
    assert_eq!(answer["error"]["code"], -31001);
    assert_eq!(second.text("one__pid", json!({})).await, pid);
    gw.stop().await;
}

#[tokio::test]
async fn a_shared_process_that_crashed_is_there_again_for_everyone() {
    let gw = gateway(&one(
        &[],
        "isolation: shared, start: { backoff: 10ms..50ms }",
    ))
    .await;
    let (first, second) = (
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
    );
    let pid = first.text("one__pid", json!({})).await;
    assert_eq!(second.text("one__pid", json!({})).await, pid);
    assert_eq!(
        first.call("one__crash", json!({})).await["error"]["code"],
        -31001
    );
    let next = second.text("one__pid", json!({})).await;
    assert_ne!(next, pid);
    assert_eq!(first.text("one__pid", json!({})).await, next);
    gw.stop().await;
}

#[tokio::test]
async fn the_end_of_the_gateway_is_the_end_of_all_it_started() {
    let gw = gateway(&one(&["--ignore-eof"], "")).await;
    let client = gw.client("/mcp").connected().await;
    let pid: u32 = client.text("one__pid", json!({})).await.parse().unwrap();
    let child: u32 = client
        .text("one__spawn", json!({"detach": true}))
        .await
        .parse()
        .unwrap();
    gw.stop().await;
    assert!(!lives(pid) && !lives(child));
}

#[tokio::test]
async fn stderr_without_end_holds_up_nothing() {
    let gw = gateway(&one(&["--banner=hello"], "")).await;
    let client = gw.client("/mcp").connected().await;
    for _ in 0..3 {
        assert_eq!(
            client.text("one__stderr", json!({"bytes": 2 << 20})).await,
            "written"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_legacy_server_that_spews_stderr_when_it_is_probed_is_reached_all_the_same() {
    let gw = gateway(&one(&["--unknown=flood"], "")).await;
    let client = gw.client("/mcp");
    let params = json!({"name": "one__echo", "arguments": {"a": 1}});
    let modern = client.modern("tools/call", params).await.message().await;
    assert!(
        modern.get("result").is_some() || modern["error"]["code"] == -31001,
        "{modern}"
    );
    let client = gw.client("/mcp").connected().await;
    assert!(
        client
            .text("one__echo", json!({"a": 1}))
            .await
            .contains('1')
    );
    gw.stop().await;
}

#[tokio::test]
async fn a_client_that_vanished_holds_no_process() {
    let gw = gateway(&format!("limits: {{ session_idle: 1s }}\n{}", one(&[], ""))).await;
    let client = gw.client("/mcp").connected().await;
    let pid: u32 = client.text("one__pid", json!({})).await.parse().unwrap();
    let stream = client.listen().await;
    let open = client.send(Method::GET, &[], "").await;
    drop((stream, open));
    drop(client);
    until("its process is gone", || !lives(pid)).await;
    gw.stop().await;
}
