//! K35: a cancelled call is cancelled at its server, at once, and nowhere else.

use crate::support::{
    TestGateway, gateway,
    hb::{Gate, Hb, Reply},
    sb,
    stock::{Stock, at, servers},
    until,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A server whose `tools/call` waits at a gate.
async fn slow(label: &str, gate: &Gate) -> Hb {
    let gate = gate.clone();
    let stock = Stock::new(label, json!({"tools": ["t"]}));
    stock
        .legacy()
        .on("tools/call", move |seen| {
            Reply::json(seen.result(json!({"content": []}))).gate_head(&gate)
        })
        .start()
        .await
}

fn call(id: Value, name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {}}})
}

async fn running(gw: &TestGateway, count: usize) {
    until("the calls run", || gw.router.calls() == count).await;
}

#[tokio::test]
async fn a_cancel_reaches_the_server_of_the_call_with_that_servers_id() {
    let gate = Gate::new();
    let (one, two) = (slow("one", &gate).await, slow("two", &gate).await);
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    for id in [
        json!("text"),
        json!(1),
        json!(0),
        json!("\u{e9}\u{1f680}"),
        json!(9007199254740993_u64),
    ] {
        let client = gw.client("/mcp").connected().await;
        let before = one.count("notifications/cancelled");
        let (twin, message) = (client.twin(), call(id.clone(), "one__t"));
        let calling = tokio::spawn(async move { twin.post(&message).await.message().await });
        let nth = one.count("tools/call") + 1;
        let sent = one.wait_for_nth(nth, |s| s.method() == "tools/call").await;
        let began = Instant::now();
        let accepted = client
            .notify(
                "notifications/cancelled",
                json!({"requestId": id, "reason": "enough \u{e9}"}),
            )
            .await;
        assert_eq!(accepted.status, 202);
        let cancelled = one
            .wait_for_nth(before + 1, |s| s.method() == "notifications/cancelled")
            .await;
        assert!(
            began.elapsed() < Duration::from_millis(500),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(cancelled.json()["params"]["requestId"], sent.id());
        assert_eq!(cancelled.json()["params"]["reason"], "enough \u{e9}");
        let answer = calling.await.unwrap();
        assert_eq!(
            answer["id"], id,
            "the call is over for the client too: {answer}"
        );
        assert!(answer.get("error").is_some());
    }
    assert_eq!(two.count("notifications/cancelled"), 0);
    gate.open();
    gw.stop().await;
}

#[tokio::test]
async fn a_cancel_frees_a_stdio_call_while_others_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("journal").display().to_string();
    for more in [
        "",
        "isolation: principal",
        "isolation: shared",
        "isolation: request",
    ] {
        let gw = gateway(&servers(&[(
            "one",
            sb(&[&format!("--journal={file}")], more),
        )]))
        .await;
        let client = gw.client("/mcp").connected().await;
        let other = gw.client("/mcp").connected().await;
        let (twin, own) = (client.twin(), other.twin());
        let calling = tokio::spawn(async move {
            twin.post(&call(json!(1), "one__hang"))
                .await
                .message()
                .await
        });
        let staying =
            tokio::spawn(
                async move { own.post(&call(json!(1), "one__hang")).await.message().await },
            );
        let lines = |what: &str| {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            text.lines().filter(|l| l.contains(what)).count()
        };
        until("both calls run", || lines("\"hang\"") == 2).await;
        client
            .notify("notifications/cancelled", json!({"requestId": 1}))
            .await;
        let answer = calling.await.unwrap();
        assert!(answer.get("error").is_some(), "{more}: {answer}");
        if more != "isolation: request" {
            until("the server is told once", || {
                lines("notifications/cancelled") == 1
            })
            .await;
        }
        running(&gw, 1).await;
        assert!(
            !staying.is_finished(),
            "{more}: a call of another session with the same id goes on"
        );
        staying.abort();
        gw.stop().await;
        std::fs::remove_file(&file).unwrap();
    }
}

#[tokio::test]
async fn a_call_that_waits_for_its_server_can_be_cancelled() {
    let gw = gateway(&format!(
        "discovery: {{ wait: 100ms }}\n{}",
        servers(&[("slow", sb(&["--init-delay=3000"], ""))])
    ))
    .await;
    let client = gw.client("/mcp/slow").connected().await;
    let twin = client.twin();
    let calling =
        tokio::spawn(async move { twin.post(&call(json!(1), "echo")).await.message().await });
    running(&gw, 1).await;
    let began = Instant::now();
    // The notification may arrive before the call waits; a client that means it says it again.
    while !calling.is_finished() && began.elapsed() < Duration::from_secs(2) {
        client
            .notify("notifications/cancelled", json!({"requestId": 1}))
            .await;
    }
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(calling.await.unwrap().get("error").is_some());
    gw.stop().await;
}

#[tokio::test]
async fn cancels_of_nothing_are_taken_and_mean_nothing() {
    let gate = Gate::new();
    gate.open();
    let hb = slow("one", &gate).await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    client
        .post(&call(json!(77), "one__t"))
        .await
        .message()
        .await;
    for params in [
        json!({"requestId": 77}),
        json!({"requestId": 5}),
        json!({"requestId": "x"}),
        json!({}),
        json!({"requestId": null}),
        json!({"requestId": {}}),
    ] {
        assert_eq!(
            client
                .notify("notifications/cancelled", params)
                .await
                .status,
            202
        );
    }
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
    assert_eq!(hb.count("notifications/cancelled"), 0);
    gw.stop().await;
}

#[tokio::test]
async fn another_sessions_calls_cannot_be_cancelled() {
    let gate = Gate::new();
    let hb = slow("one", &gate).await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let (owner, stranger) = (
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
    );
    let twin = owner.twin();
    let calling =
        tokio::spawn(async move { twin.post(&call(json!(1), "one__t")).await.message().await });
    let sent = hb.wait_for(|s| s.method() == "tools/call").await;
    for id in [json!(1), sent.id()] {
        stranger
            .notify("notifications/cancelled", json!({"requestId": id}))
            .await;
    }
    stranger.request("ping", json!({})).await;
    gate.open();
    let answer = calling.await.unwrap();
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(hb.count("notifications/cancelled"), 0);
    gw.stop().await;
}

#[tokio::test]
async fn a_dropped_connection_cancels_a_modern_call_and_no_legacy_one() {
    let gate = Gate::new();
    let hb = slow("one", &gate).await;
    let gw = gateway(&format!(
        "streams: {{ silence: 50ms }}\n{}",
        servers(&[("one", at(&hb, ""))])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let response = client.post(&call(json!(1), "one__t")).await;
    drop((response, client));
    hb.wait_for(|s| s.method() == "tools/call").await;
    let response = gw
        .client("/mcp")
        .modern("tools/call", json!({"name": "one__t"}))
        .await;
    let second = hb.wait_for_nth(2, |s| s.method() == "tools/call").await;
    drop(response);
    let cancelled = hb
        .wait_for(|s| s.method() == "notifications/cancelled")
        .await;
    assert_eq!(
        cancelled.json()["params"]["requestId"],
        second.id(),
        "only the modern call"
    );
    running(&gw, 1).await;
    gate.open();
    running(&gw, 0).await;
    assert_eq!(hb.count("notifications/cancelled"), 1);
    gw.stop().await;
}

#[tokio::test]
async fn a_cancel_of_a_legacy_client_closes_the_stream_at_a_modern_server() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = Stock::new("one", json!({"tools": ["t"]}))
        .modern()
        .on("tools/call", move |seen| {
            Reply::events()
                .gate(&held)
                .message(seen.result(json!({"resultType": "complete", "content": []})))
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let twin = client.twin();
    let calling =
        tokio::spawn(async move { twin.post(&call(json!(1), "one__t")).await.message().await });
    hb.wait_for(|s| s.method() == "tools/call").await;
    client
        .notify("notifications/cancelled", json!({"requestId": 1}))
        .await;
    assert!(calling.await.unwrap().get("error").is_some());
    hb.wait_until_open(1).await;
    assert_eq!(
        hb.count("notifications/cancelled"),
        0,
        "that era has no such message over HTTP"
    );
    gate.open();
    gw.stop().await;
}

#[tokio::test]
async fn prompts_and_reads_are_cancelled_too() {
    let gate = Gate::new();
    let hb = Stock::of_all("one").legacy();
    let hb = ["prompts/get", "resources/read", "completion/complete"]
        .into_iter()
        .fold(hb, |hb, method| {
            let gate = gate.clone();
            hb.on(method, move |seen| {
                Reply::json(seen.result(json!({}))).gate_head(&gate)
            })
        });
    let hb = hb.start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    for (n, (method, params)) in [
        ("prompts/get", json!({"name": "one__one-prompt"})),
        ("resources/read", json!({"uri": "one://thing"})),
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "one__one-prompt"}, "argument": {"name": "a", "value": ""}})),
    ]
    .into_iter()
    .enumerate()
    {
        let (twin, message) = (client.twin(), json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
        let calling = tokio::spawn(async move { twin.post(&message).await.message().await });
        let sent = hb.wait_for(|s| s.method() == method).await;
        client.notify("notifications/cancelled", json!({"requestId": method})).await;
        let cancelled = hb.wait_for_nth(n + 1, |s| s.method() == "notifications/cancelled").await;
        assert_eq!(cancelled.json()["params"]["requestId"], sent.id());
        assert!(calling.await.unwrap().get("error").is_some());
    }
    gate.open();
    gw.stop().await;
}
