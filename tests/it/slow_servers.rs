//! K21: servers that start slowly, answer slowly or hang: nobody waits for them but who wants something of theirs.

use crate::support::{
    gateway,
    hb::{Gate, Hb, Reply},
    health::{QUICK, lists_hold, missing},
    sb,
    stock::{Stock, at, servers},
};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn with_the_standard_settings_a_hanging_server_delays_nothing_much() {
    let gate = Gate::new();
    let held = gate.clone();
    let bad = Hb::bare()
        .otherwise(move |_| Reply::status(200).gate_head(&held))
        .start()
        .await;
    let good = Stock::of_all("good").legacy().start().await;
    let gw = gateway(&servers(&[("bad", at(&bad, "")), ("good", at(&good, ""))])).await;
    let began = Instant::now();
    let client = gw.client("/mcp").connected().await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    let began = Instant::now();
    client.text("good__good-tool", json!({})).await;
    client
        .request("resources/read", json!({"uri": "good://thing"}))
        .await;
    client
        .request("logging/setLevel", json!({"level": "info"}))
        .await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "calls of the other: {:?}",
        began.elapsed()
    );
    let (first, second) = (
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
    );
    // All lists of all sessions together wait no longer than the bound for one list.
    let began = Instant::now();
    for client in [&client, &first, &second] {
        lists_hold(client, "good").await;
    }
    assert!(
        began.elapsed() < Duration::from_secs(7),
        "{:?}",
        began.elapsed()
    );
    gate.open();
    gw.stop().await;
}

#[tokio::test]
async fn a_server_whose_list_hangs_is_waited_for_once_and_works_otherwise() {
    let gate = Gate::new();
    let held = gate.clone();
    let stock = Stock::of_all("bad");
    let bad = stock
        .legacy()
        .on("tools/list", move |seen| {
            Reply::json(seen.result(json!({"tools": [{"name": "late"}]}))).gate_head(&held)
        })
        .start()
        .await;
    let good = Stock::of_all("good").legacy().start().await;
    let wait = "discovery: { wait: 300ms, list_wait: 500ms }\n";
    let gw = gateway(&format!(
        "{wait}{}",
        servers(&[
            ("bad", at(&bad, "timeouts: { call: 5s }")),
            ("good", at(&good, ""))
        ])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    let list = client.request("tools/list", json!({})).await;
    assert_eq!(
        list["result"]["tools"].as_array().map(Vec::len),
        Some(1),
        "{list}"
    );
    assert_eq!(missing(&list), json!(["bad"]));
    let began = Instant::now();
    for _ in 0..5 {
        client.tools().await;
    }
    assert!(
        began.elapsed() < Duration::from_millis(1200),
        "{:?}",
        began.elapsed()
    );
    let asked = bad.count("tools/list");
    assert!(asked <= 3, "a hanging server is asked {asked} times");
    // What hangs is the list of tools, not the server.
    let prompts = client.names("prompts/list", "prompts", "name").await;
    assert_eq!(prompts, ["bad__bad-prompt", "good__good-prompt"]);
    assert!(
        client
            .request("resources/read", json!({"uri": "bad://thing"}))
            .await
            .get("result")
            .is_some()
    );
    gate.open();
    events.next_of("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, ["bad__late", "good__good-tool"]);
    gw.stop().await;
}

#[tokio::test]
async fn a_server_that_starts_slowly_appears_in_the_same_session_and_is_announced() {
    let good = Stock::of_all("good").legacy().start().await;
    let quick = "discovery: { wait: 100ms, list_wait: 100ms }\n";
    let gw = gateway(&format!(
        "{quick}{}",
        servers(&[
            ("slow", sb(&["--init-delay=900"], "")),
            ("good", at(&good, ""))
        ])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    let tools = client.tools().await;
    assert_eq!(tools, ["good__good-tool"]);
    events.next_of("notifications/tools/list_changed").await;
    let tools = client.tools().await;
    assert!(tools.contains(&"slow__echo".to_owned()), "{tools:?}");
    assert_eq!(client.text("slow__echo", json!({})).await, "{}");
    gw.stop().await;
}

#[tokio::test]
async fn a_first_start_longer_than_its_limit_is_not_killed_but_finishes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("installed").display().to_string();
    let slow = sb(
        &[&format!("--install={file},1500")],
        "start: { timeout: 300ms }",
    );
    let gw = gateway(&format!("{QUICK}{}", servers(&[("slow", slow)]))).await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    events.next_of("notifications/tools/list_changed").await;
    assert!(client.tools().await.contains(&"slow__echo".to_owned()));
    assert_eq!(client.text("slow__echo", json!({})).await, "{}");
    gw.stop().await;
}

#[tokio::test]
async fn many_servers_that_start_one_after_the_other_all_come_up() {
    let mut all = Vec::new();
    let names: Vec<String> = (0..12).map(|n| format!("s{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        all.push((
            name.as_str(),
            sb(&[&format!("--init-delay={}", n * 80)], ""),
        ));
    }
    let gw = gateway(&format!(
        "discovery: {{ wait: 100ms, list_wait: 100ms }}\n{}",
        servers(&all)
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    let listed = |tools: &[String]| {
        names
            .iter()
            .filter(|n| tools.contains(&format!("{n}__echo")))
            .count()
    };
    let mut tools = client.tools().await;
    while listed(&tools) < names.len() {
        events.next_of("notifications/tools/list_changed").await;
        tools = client.tools().await;
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_gateway_of_dead_servers_only_answers_within_its_bound() {
    let gate = Gate::new();
    let held = gate.clone();
    let dead = Hb::bare()
        .otherwise(move |_| Reply::status(200).gate_head(&held))
        .start()
        .await;
    let gw = gateway(&format!("{QUICK}{}", servers(&[("dead", at(&dead, ""))]))).await;
    for path in ["/mcp", "/mcp/dead"] {
        let began = Instant::now();
        let client = gw.client(path).connected().await;
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{path}: {:?}",
            began.elapsed()
        );
        let began = Instant::now();
        let list = client.request("tools/list", json!({})).await;
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{path}: {:?}",
            began.elapsed()
        );
        let empty = list["result"]["tools"] == json!([]) && missing(&list) == json!(["dead"]);
        assert!(empty || list["error"]["code"] == -31001, "{path}: {list}");
        assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
    }
    gate.open();
    gw.stop().await;
}

#[tokio::test]
async fn a_level_reaches_the_others_where_one_server_does_not_answer() {
    let gate = Gate::new();
    let held = gate.clone();
    let slow = Stock::of_all("slow")
        .legacy()
        .on("logging/setLevel", move |seen| {
            Reply::json(seen.result(json!({}))).gate_head(&held)
        })
        .start()
        .await;
    let good = Stock::of_all("good").legacy().start().await;
    let gw = gateway(&format!(
        "{QUICK}{}",
        servers(&[("slow", at(&slow, "")), ("good", at(&good, ""))])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    client.text("slow__slow-tool", json!({})).await;
    client.text("good__good-tool", json!({})).await;
    let began = Instant::now();
    let answer = client
        .request("logging/setLevel", json!({"level": "error"}))
        .await;
    assert_eq!(answer["result"], json!({}));
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    good.wait_for(|s| s.method() == "logging/setLevel").await;
    gate.open();
    gw.stop().await;
}
