//! K37: how long calls may take, server by server.

use crate::support::{
    gateway,
    hb::{Gate, Reply},
    sb,
    stock::{Stock, at, example, servers},
};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn each_server_has_its_own_limit_and_a_late_call_is_cancelled_at_its_server() {
    let gate = Gate::new();
    let stock = |label: &str| {
        let gate = gate.clone();
        Stock::new(label, json!({"tools": ["t"]}))
            .legacy()
            .on("tools/call", move |seen| {
                Reply::json(seen.result(json!({"content": [{"type": "text", "text": "late"}]})))
                    .gate_head(&gate)
            })
    };
    let (short, long) = (stock("short").start().await, stock("long").start().await);
    let gw = gateway(&servers(&[
        (
            "short",
            at(&short, "timeouts: { call: 300ms, call_max: 300ms }"),
        ),
        ("long", at(&long, "timeouts: { call: 20s }")),
    ]))
    .await;
    let client = gw.client("/mcp").connected().await;
    let twin = client.twin();
    let patient = tokio::spawn(async move { twin.text("long__t", json!({})).await });
    long.wait_for(|s| s.method() == "tools/call").await;
    for path in ["/mcp", "/mcp/short"] {
        let client = gw.client(path).connected().await;
        let tool = if path == "/mcp" { "short__t" } else { "t" };
        let message = json!({"jsonrpc": "2.0", "id": "mine", "method": "tools/call", "params": {"name": tool}});
        let began = Instant::now();
        let answer = client.post(&message).await.message().await;
        let took = began.elapsed();
        assert!(
            took >= Duration::from_millis(280) && took < Duration::from_secs(2),
            "{took:?}"
        );
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!("mine"), &json!(-31002)),
            "{answer}"
        );
        assert_eq!(
            answer["error"]["data"],
            json!({"server": "short", "retrySafe": false})
        );
    }
    let cancelled = short
        .wait_for_nth(2, |s| s.method() == "notifications/cancelled")
        .await;
    let call = short
        .seen()
        .into_iter()
        .filter(|s| s.method() == "tools/call")
        .nth(1)
        .unwrap();
    assert_eq!(cancelled.json()["params"]["requestId"], call.id());
    let modern = gw
        .client("/mcp")
        .modern("tools/call", json!({"name": "short__t"}))
        .await
        .message()
        .await;
    assert_eq!(modern["error"]["code"], -31002, "{modern}");
    assert_eq!(long.count("notifications/cancelled"), 0);
    gate.open();
    assert_eq!(patient.await.unwrap(), "late");
    gw.stop().await;
}

#[tokio::test]
async fn progress_keeps_a_call_alive_up_to_its_cap() {
    let local = sb(&[], "timeouts: { call: 400ms, call_max: 20s }");
    let capped = sb(&[], "timeouts: { call: 400ms, call_max: 900ms }");
    let gw = gateway(&servers(&[("local", local), ("capped", capped)])).await;
    let client = gw.client("/mcp").connected().await;
    let with = |tool: &str, count: u64| json!({"name": tool, "arguments": {"count": count, "ms": 150}, "_meta": {"progressToken": "p"}});
    let answer = client
        .request("tools/call", with("local__progress", 10))
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    let began = Instant::now();
    let answer = client
        .request("tools/call", with("capped__progress", 100))
        .await;
    assert_eq!(answer["error"]["code"], -31002, "{answer}");
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    // Without progress the shorter limit holds.
    let began = Instant::now();
    let answer = client.call("local__hang", json!({})).await;
    assert_eq!(answer["error"]["code"], -31002, "{answer}");
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(
        client.text("local__echo", json!({})).await,
        "{}",
        "the server is none the worse"
    );
    gw.stop().await;
}

#[tokio::test]
async fn a_slow_start_is_no_slow_call() {
    let slow = sb(
        &["--init-delay=900"],
        "timeouts: { call: 300ms, call_max: 300ms }, start: { timeout: 20s }",
    );
    let gw = gateway(&format!(
        "discovery: {{ wait: 100ms, list_wait: 100ms }}\n{}",
        servers(&[("slow", slow)])
    ))
    .await;
    let client = gw.client("/mcp/slow").connected().await;
    assert_eq!(client.text("echo", json!({})).await, "{}");
    assert_eq!(
        client.call("hang", json!({})).await["error"]["code"],
        -31002
    );
    gw.stop().await;
}

#[tokio::test]
async fn an_example_server_waits_as_long_as_it_reports() {
    let weather = example(&["weather"], "timeouts: { call: 500ms }");
    let gw = gateway(&servers(&[("weather", weather)])).await;
    let client = gw.client("/mcp").connected().await;
    let params = json!({"name": "weather__wait", "arguments": {"seconds": 1.5, "steps": 10}, "_meta": {"progressToken": 7}});
    let answer = client.request("tools/call", params).await;
    assert!(answer.get("result").is_some(), "{answer}");
    let modern = json!({"name": "weather__wait", "arguments": {"seconds": 1.5, "steps": 10}, "_meta": {"progressToken": 7}});
    let answer = gw
        .client("/mcp")
        .modern("tools/call", modern)
        .await
        .message()
        .await;
    assert!(answer.get("result").is_some(), "{answer}");
    gw.stop().await;
}
