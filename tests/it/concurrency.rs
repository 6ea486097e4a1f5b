//! K36: nothing waits in line behind something slow.

use crate::support::{
    Client, gateway, gateway as start,
    hb::{Gate, Reply},
    sb,
    stock::{Stock, at, servers},
    until,
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[tokio::test]
async fn everything_else_is_answered_while_one_call_runs() {
    let gate = Gate::new();
    let held = gate.clone();
    let slow = Stock::of_all("slow")
        .legacy()
        .on("tools/call", move |seen| {
            let reply =
                Reply::json(seen.result(json!({"content": [{"type": "text", "text": "done"}]})));
            match seen.json()["params"]["arguments"]["wait"] == true {
                true => reply.gate_head(&held),
                false => reply,
            }
        })
        .start()
        .await;
    let other = Stock::of_all("other").legacy().start().await;
    let gw = gateway(&servers(&[
        ("slow", at(&slow, "")),
        ("other", at(&other, "")),
        ("local", sb(&[], "")),
    ]))
    .await;
    let client = gw.client("/mcp").connected().await;
    let (twin, local) = (client.twin(), client.twin());
    let waiting =
        tokio::spawn(async move { twin.text("slow__slow-tool", json!({"wait": true})).await });
    let hanging =
        tokio::spawn(async move { local.text("local__hold", json!({"text": "held"})).await });
    slow.wait_for(|s| s.method() == "tools/call").await;
    until("both calls run", || gw.router.calls() == 2).await;
    let began = Instant::now();
    client.request("ping", json!({})).await;
    client.tools().await;
    client.names("prompts/list", "prompts", "name").await;
    client
        .request("resources/read", json!({"uri": "slow://thing"}))
        .await;
    client
        .request("prompts/get", json!({"name": "slow__slow-prompt"}))
        .await;
    client.text("slow__slow-tool", json!({})).await;
    client.text("other__other-tool", json!({})).await;
    client.text("local__echo", json!({})).await;
    client
        .request("logging/setLevel", json!({"level": "info"}))
        .await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(!waiting.is_finished() && !hanging.is_finished());
    gate.open();
    assert_eq!(waiting.await.unwrap(), "done");
    client.text("local__release", json!({})).await;
    assert_eq!(hanging.await.unwrap(), "held");
    gw.stop().await;
}

#[tokio::test]
async fn calls_of_one_process_may_be_answered_in_any_order() {
    let gw = start(&servers(&[("one", sb(&[], ""))])).await;
    let client = gw.client("/mcp").connected().await;
    client.tools().await;
    let hold = (0..5).map(|n| {
        let twin = client.twin();
        tokio::spawn(async move {
            (
                n,
                twin.text("one__hold", json!({"text": format!("t{n}")}))
                    .await,
            )
        })
    });
    let held: Vec<_> = hold.collect();
    until("all of them run", || gw.router.calls() == 5).await;
    // The last of them reached the server when an answer to a later call is back.
    client.text("one__echo", json!({})).await;
    until("all of them run", || gw.router.calls() == 5).await;
    client.text("one__release", json!({})).await;
    for task in held {
        let (n, text) = task.await.unwrap();
        assert_eq!(text, format!("t{n}"));
    }
    gw.stop().await;
}

#[tokio::test]
async fn large_calls_at_once_arrive_whole_over_one_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("journal").display().to_string();
    let gw = start(&servers(&[(
        "one",
        sb(&[&format!("--journal={file}")], ""),
    )]))
    .await;
    let client = gw.client("/mcp").connected().await;
    client.tools().await;
    let calls = (0..20).map(|n| {
        let client = &client;
        async move {
            let filling = format!("{n}-").repeat(70_000);
            let text = client
                .text("one__echo", json!({"n": n, "f": filling}))
                .await;
            let said: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                (said["n"].as_u64(), said["f"].as_str().map(str::len)),
                (Some(n), Some(filling.len()))
            );
        }
    });
    join_all(calls).await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        !text.lines().any(|l| l.starts_with("bad")),
        "every line was JSON"
    );
    gw.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_nobody() {
    let gw = start(&format!(
        "streams: {{ silence: 10ms }}\n{}",
        servers(&[("one", sb(&[], "isolation: shared"))])
    ))
    .await;
    let lazy = gw.client("/mcp").connected().await;
    let quick = gw.client("/mcp").connected().await;
    let message = |n: u64| json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "one__big", "arguments": {"bytes": 4 << 20}}});
    let mut unread = Vec::new();
    for n in 0..3 {
        unread.push(lazy.post(&message(n)).await);
    }
    let began = Instant::now();
    for n in 0..5 {
        assert_eq!(
            quick.text("one__echo", json!({"n": n})).await,
            json!({"n": n}).to_string()
        );
    }
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    drop(unread);
    gw.stop().await;
}

/// Calls with equal ids from many sessions, held by one server and released in an order of its own: each gets its own answer.
async fn barrier(gw: &crate::support::TestGateway, tool: &str, release: impl Future<Output = ()>) {
    const SESSIONS: usize = 16;
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..SESSIONS {
        clients.push(gw.client("/mcp").connected().await);
    }
    let calls: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(n, client)| {
            let twin = client.twin();
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"text": format!("secret-{n}")}}});
            tokio::spawn(async move { twin.post(&message).await.message().await })
        })
        .collect();
    until("all calls run", || gw.router.calls() == SESSIONS).await;
    release.await;
    for (n, call) in calls.into_iter().enumerate() {
        let answer = call.await.unwrap();
        assert_eq!(
            answer["result"]["content"][0]["text"],
            format!("secret-{n}"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn equal_ids_of_many_sessions_never_cross_on_one_shared_process() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("journal").display().to_string();
    let gw = start(&servers(&[(
        "one",
        sb(&[&format!("--journal={file}")], "isolation: shared"),
    )]))
    .await;
    let helper = gw.client("/mcp").connected().await;
    helper.tools().await;
    let release = async {
        let held = || {
            std::fs::read_to_string(&file)
                .unwrap_or_default()
                .matches("secret-")
                .count()
        };
        until("all are held", || held() == 16).await;
        helper.text("one__release", json!({})).await;
    };
    barrier(&gw, "one__hold", release).await;
    gw.stop().await;
}

#[tokio::test]
async fn equal_ids_of_many_sessions_never_cross_on_one_http_server() {
    let gates: Vec<Gate> = (0..16).map(|_| Gate::new()).collect();
    let held = gates.clone();
    let hb = Stock::new("one", json!({"tools": ["t"]}))
        .legacy()
        .on("tools/call", move |seen| {
            let text = seen.json()["params"]["arguments"]["text"]
                .as_str()
                .unwrap()
                .to_owned();
            let n: usize = text.rsplit('-').next().unwrap().parse().unwrap();
            Reply::json(seen.result(json!({"content": [{"type": "text", "text": text}]})))
                .gate_head(&held[n])
        })
        .start()
        .await;
    let gw = start(&servers(&[("one", at(&hb, ""))])).await;
    let release = async {
        hb.wait_for_nth(16, |s| s.method() == "tools/call").await;
        for n in [7, 0, 15, 3, 8, 1, 2, 14, 13, 4, 5, 12, 6, 11, 9, 10] {
            gates[n].open();
        }
    };
    barrier(&gw, "one__t", release).await;
    gw.stop().await;
}

#[tokio::test]
async fn too_many_calls_of_a_session_at_once_are_refused_and_answered() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = Stock::new("one", json!({"tools": ["t"]}))
        .legacy()
        .on("tools/call", move |seen| {
            Reply::json(seen.result(json!({"content": []}))).gate_head(&held)
        })
        .start()
        .await;
    let gw = start(&format!(
        "limits: {{ concurrent_calls_per_session: 3 }}\n{}",
        servers(&[("one", at(&hb, ""))])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let running: Vec<_> = (0..3)
        .map(|_| {
            let twin = client.twin();
            tokio::spawn(async move { twin.call("one__t", json!({})).await })
        })
        .collect();
    hb.wait_for_nth(3, |s| s.method() == "tools/call").await;
    let answer = client.call("one__t", json!({})).await;
    assert_eq!(answer["error"]["code"], -31003, "{answer}");
    gate.open();
    for call in running {
        assert!(call.await.unwrap().get("result").is_some());
    }
    gw.stop().await;
}
