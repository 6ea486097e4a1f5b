//! Progress: under the client's own token, on the stream of its own call, and never after the answer.

use crate::support::{
    Standing, arguments, echoing, gateway,
    hb::{Gate, Reply},
    modern_echoing, sb, text,
};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;

const TOKENS: [&str; 8] = [
    "1",
    "0",
    "-7",
    "9007199254740993",
    "123456789012345678901234567890",
    r#""t""#,
    r#""""#,
    r#""ü\u2028\/""#,
];

fn with_token(id: u64, tool: &str, token: &str, arguments: &Value) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"progressToken":{token},"other":1}}}}}}"#
    )
}

fn progress(token: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 99}})
}

#[tokio::test]
async fn every_token_comes_back_exactly_and_before_the_answer() {
    let reporting = |seen: &crate::support::hb::Seen| {
        let mut result = text("done");
        result["resultType"] = "complete".into();
        Reply::events()
            .message(seen.progress(1))
            .message(seen.progress(2))
            .message(seen.result(result))
    };
    let old = echoing().on("tools/call", reporting).start().await;
    let new = modern_echoing().on("tools/call", reporting).start().await;
    let yaml = format!(
        "servers: {{ old: {{ url: {:?} }}, new: {{ url: {:?} }}, local: {} }}\n",
        old.url(),
        new.url(),
        sb(&[], "")
    );
    let gw = gateway(&yaml).await;
    let client = gw.client("/mcp").connected().await;
    for tool in ["old__echo", "new__echo", "local__progress"] {
        for token in TOKENS {
            let call = with_token(5, tool, token, &json!({"count": 2}));
            let body = client.send(Method::POST, &[], call).await.text().await;
            let own = format!(r#""progressToken":{token}"#);
            assert_eq!(body.matches(&own).count(), 2, "{tool} {token}: {body}");
            assert_eq!(
                body.matches("progressToken").count(),
                2,
                "{tool} {token}: {body}"
            );
            assert!(
                body.rfind("progressToken") < body.find(r#""result""#),
                "{body}"
            );
        }
    }
    // What the servers saw was ours, and distinct.
    let tokens = old
        .seen()
        .iter()
        .filter(|s| s.method() == "tools/call")
        .map(|s| s.json()["params"]["_meta"].clone())
        .collect::<Vec<_>>();
    assert_eq!(tokens.len(), TOKENS.len());
    for (n, meta) in tokens.iter().enumerate() {
        assert!(meta["progressToken"].is_u64(), "{meta}");
        assert_eq!(meta["other"], 1);
        assert!(
            tokens
                .iter()
                .skip(n + 1)
                .all(|m| m["progressToken"] != meta["progressToken"])
        );
    }
}

#[tokio::test]
async fn a_modern_client_gets_progress_on_its_calls_own_stream() {
    let reporting = |seen: &crate::support::hb::Seen| {
        Reply::events()
            .message(seen.progress(1))
            .message(seen.result(text("done")))
    };
    let old = echoing().on("tools/call", reporting).start().await;
    let gw = gateway(&format!(
        "servers: {{ old: {{ url: {:?} }}, local: {} }}\n",
        old.url(),
        sb(&[], "")
    ))
    .await;
    let client = gw.client("/mcp");
    for tool in ["old__echo", "local__progress"] {
        for token in [json!("mine"), json!(0), json!(-3)] {
            let params =
                json!({"name": tool, "arguments": {"count": 1}, "_meta": {"progressToken": token}});
            let mut stream = client.modern("tools/call", params).await.events();
            assert_eq!(
                stream.next().await.unwrap()["params"]["progressToken"],
                token
            );
            assert_eq!(
                stream.next().await.unwrap()["result"]["resultType"],
                "complete"
            );
            assert_eq!(stream.next().await, None);
        }
    }
}

#[tokio::test]
async fn without_a_token_no_progress_comes_whatever_the_server_makes_up() {
    let hb = echoing().on("tools/call", |seen| {
        let made_up = [
            seen.id(),
            json!(0),
            json!(1),
            json!("1"),
            Value::Null,
            json!({}),
        ];
        let reply = made_up.into_iter().fold(Reply::events(), |reply, token| {
            reply.message(progress(token))
        });
        reply
            .message(json!({"jsonrpc": "2.0", "method": "notifications/progress"}))
            .message(seen.result(text("done")))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    let standing = client.listen();
    let mut standing = standing.await;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo"}})
            .to_string();
    let body = client.send(Method::POST, &[], call).await.text().await;
    assert!(!body.contains("progress"), "{body}");
    let modern = client
        .modern("tools/call", json!({"name": "one__echo"}))
        .await
        .text()
        .await;
    assert!(!modern.contains("progress"), "{modern}");
    assert!(standing.is_silent_for(Duration::from_millis(100)).await);
    assert!(gw.router.servers[0].metrics.dropped.get() >= 14);
}

#[tokio::test]
async fn progress_after_the_answer_is_dropped() {
    let (script, standing) = Standing::on(echoing());
    // In the same write as the answer, on the call's own stream.
    let hb = script.on("tools/call", |seen| {
        let late = format!(
            "data: {}\n\ndata: {}\n\n",
            seen.result(text("done")),
            seen.progress(100)
        );
        Reply::events().message(seen.progress(1)).raw(late)
    });
    let hb = hb.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }}, local: {} }}\n",
        hb.url(),
        sb(&[], "isolation: shared")
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let mut stream = client
        .send(
            Method::POST,
            &[],
            with_token(1, "one__echo", "7", &json!({})),
        )
        .await
        .events();
    assert_eq!(stream.next().await.unwrap()["params"]["progress"], 1);
    assert_eq!(stream.next().await.unwrap()["id"], 1);
    assert_eq!(stream.next().await, None);
    // Later, on the server's standing stream.
    let mut own = client.listen().await;
    let seen = hb.wait_for(|s| s.method() == "tools/call").await;
    let session = seen.header("mcp-session-id").unwrap();
    standing.say(session, &seen.progress(100));
    standing.say(session, &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "end"}}));
    assert_eq!(own.next().await.unwrap()["params"]["data"], "end");
    // And on a process, where late progress shares the pipe with everything else.
    let body = client
        .send(
            Method::POST,
            &[],
            with_token(2, "local__progress", "7", &json!({"count": 1})),
        )
        .await
        .text()
        .await;
    assert_eq!(body.matches("progressToken").count(), 1);
    for token in 0..40 {
        let line = progress(json!(token)).to_string();
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "local__raw", "arguments": {"text": line}}});
        let body = client
            .send(Method::POST, &[], call.to_string())
            .await
            .text()
            .await;
        assert!(!body.contains("progressToken"), "{body}");
    }
    assert!(own.is_silent_for(Duration::from_millis(100)).await);
}

#[tokio::test]
async fn after_a_cancellation_nothing_more_comes() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = echoing().on("tools/call", move |seen| {
        Reply::events()
            .message(seen.progress(1))
            .gate(&held)
            .message(seen.progress(2))
            .message(seen.result(text("too late")))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }}, local: {} }}\n",
        hb.url(),
        sb(&[], "")
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    for (tool, arguments) in [
        ("one__echo", json!({})),
        ("local__progress", json!({"count": 1000, "ms": 5})),
    ] {
        let mut stream = client
            .send(Method::POST, &[], with_token(4, tool, "\"t\"", &arguments))
            .await
            .events();
        assert_eq!(stream.next().await.unwrap()["params"]["progress"], 1);
        client
            .notify(
                "notifications/cancelled",
                json!({"requestId": 4, "reason": "changed my mind"}),
            )
            .await;
        let mut answer = None;
        while let Some(message) = stream.next().await {
            // Progress that was on its way already may still come, in order, before the end.
            assert!(answer.is_none(), "{message}");
            if message.get("method").is_none() {
                answer = Some(message);
            }
        }
        assert!(answer.is_none_or(|a| a["id"] == 4 && a.get("error").is_some()));
    }
    gate.open();
    let told = hb
        .wait_for(|s| s.method() == "notifications/cancelled")
        .await
        .json();
    assert_eq!(told["params"]["reason"], "changed my mind");
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_burst_of_progress_arrives_whole_and_in_order() {
    let gw = gateway(&format!("servers: {{ local: {} }}\n", sb(&[], ""))).await;
    let client = gw.client("/mcp").connected().await;
    let mut stream = client
        .send(
            Method::POST,
            &[],
            with_token(1, "local__progress", "1", &json!({"count": 2000})),
        )
        .await
        .events();
    for n in 1..=2000 {
        assert_eq!(
            stream.next_of("notifications/progress").await["params"]["progress"],
            n
        );
    }
    assert_eq!(stream.next().await.unwrap()["id"], 1);
}

#[tokio::test]
async fn equal_tokens_of_calls_at_a_time_stay_apart() {
    let gates = [Gate::new(), Gate::new()];
    let held = gates.clone();
    let hb = echoing().on("tools/call", move |seen| {
        let who = arguments(seen)["who"].as_u64().unwrap();
        let gate = &held[who as usize];
        Reply::events()
            .message(seen.progress(10 + who))
            .gate(gate)
            .message(seen.progress(20 + who))
            .message(seen.result(text(who.to_string())))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let (a, b) = (
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
    );
    // Once in one session, once in two.
    for (first, second) in [(&a, &a), (&a, &b)] {
        let mut streams = Vec::new();
        for (client, who) in [(first, 0), (second, 1)] {
            let call = with_token(1, "one__echo", "\"same\"", &json!({"who": who}));
            streams.push(client.send(Method::POST, &[], call).await.events());
        }
        gates[1].open();
        gates[0].open();
        for (who, mut stream) in streams.into_iter().enumerate() {
            for wanted in [10 + who, 20 + who] {
                assert_eq!(stream.next().await.unwrap()["params"]["progress"], wanted);
            }
            assert_eq!(
                stream.next().await.unwrap()["result"]["content"][0]["text"],
                who.to_string()
            );
            assert_eq!(stream.next().await, None);
        }
    }
}
