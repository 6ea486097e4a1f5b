//! JSON arrays: refused as one unit, save in revision 2025-03-26, where every entry passes every check.

use crate::support::{TestGateway, echoing, gateway, hb::Hb};
use http::{Method, StatusCode};
use serde_json::{Value, json};

async fn start(hb: &Hb, more: &str) -> TestGateway {
    gateway(&format!(
        "servers: {{ one: {{ url: {:?}{more} }} }}\n",
        hb.url()
    ))
    .await
}

fn call(id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "one__echo", "arguments": {"n": id}}})
}

#[tokio::test]
async fn a_batch_is_refused_as_one_and_nothing_of_it_runs() {
    let hb = echoing().start().await;
    let gw = start(&hb, "").await;
    let one = call(json!(1)).to_string();
    let arrays = [
        format!("[{one}]"),
        format!("[{one},{one}]"),
        "[]".to_owned(),
        format!("\n\t  \r\n[{one}]"),
        format!("\u{feff}[{one}]"),
        format!("[[{one}]]"),
        format!("[{one}"),
        json!([{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}]).to_string(),
    ];
    let none = gw.client("/mcp");
    let middle = gw.client("/mcp").revision("2025-06-18").connected().await;
    let newest = gw.client("/mcp").revision("2025-11-25").connected().await;
    let single = gw
        .client("/mcp/one")
        .revision("2025-11-25")
        .connected()
        .await;
    let modern = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "one__echo"),
        ("mcp-session-id", "-"),
    ];
    for text in &arrays {
        let cases = [
            (&none, &[][..], None),
            (&middle, &[][..], Some("null")),
            (&newest, &[][..], None),
            (&single, &[][..], None),
            (&newest, &modern[..], None),
        ];
        for (client, headers, id) in cases {
            let response = client.send(Method::POST, headers, text.clone()).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{text}");
            assert_eq!(response.headers["content-type"], "application/json");
            let body = response.text().await;
            let error: Value = serde_json::from_str(&body).unwrap();
            let code = error["error"]["code"].as_i64().unwrap();
            assert!(
                code == -32600 || (code == -32700 && text.starts_with('\u{feff}')),
                "{text}: {body}"
            );
            assert_eq!(body.contains("\"id\""), id.is_some(), "{text}: {body}");
        }
    }
    assert_eq!(hb.count("tools/call"), 0);
    assert_eq!(gw.router.sessions.len(), 3);
}

#[tokio::test]
async fn a_client_of_2025_03_26_gets_an_answer_to_each_request_of_its_batch() {
    let hb = echoing().start().await;
    let gw = start(&hb, "").await;
    let client = gw.client("/mcp").revision("2025-03-26").connected().await;
    let batch = json!([
        call(json!(1)),
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        call(json!("two")),
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "nobody__knows"}},
        {"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
        {"jsonrpc": "2.0", "id": null, "method": "ping"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "one__echo", "arguments": {"n": "unseen"}}},
        [call(json!(6))],
        "text",
        call(json!(1)),
    ]);
    for accept in [
        "application/json",
        "text/event-stream",
        "application/json, text/event-stream",
    ] {
        let headers = [("accept", accept)];
        let response = client.send(Method::POST, &headers, batch.to_string()).await;
        assert_eq!(response.status, StatusCode::OK);
        let answers = match response.is_stream() {
            true => response.events().next().await.unwrap(),
            false => response.json().await,
        };
        let answers = answers.as_array().expect("an array").clone();
        let of = |id: Value| answers.iter().filter(|a| a["id"] == id).collect::<Vec<_>>();
        assert_eq!(of(json!(1)).len(), 2);
        assert_eq!(
            of(json!("two"))[0]["result"]["content"][0]["text"],
            r#"{"n":"two"}"#
        );
        assert_eq!(of(json!(3))[0]["result"], json!({}));
        assert_eq!(of(json!(4))[0]["error"]["code"], -32602);
        assert_eq!(of(json!(5))[0]["error"]["code"], -32600);
        let bad = of(Value::Null);
        assert_eq!(bad.len(), 4, "{bad:?}");
        assert!(bad.iter().all(|b| b["error"]["code"] == -32600));
        assert_eq!(answers.len(), 10, "{answers:?}");
    }
    assert!(
        !hb.seen()
            .iter()
            .any(|s| s.body.windows(6).any(|w| w == b"unseen"))
    );
}

#[tokio::test]
async fn a_batch_without_requests_is_accepted_with_an_empty_body() {
    let hb = echoing().start().await;
    let gw = start(&hb, "").await;
    let client = gw.client("/mcp").revision("2025-03-26").connected().await;
    let batch = json!([{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}, {"jsonrpc": "2.0", "id": 1, "result": {}}]);
    let response = client.post(&batch).await;
    assert_eq!(response.status, StatusCode::ACCEPTED);
    assert_eq!(response.bytes().await.len(), 0);
}

#[tokio::test]
async fn empty_and_overlong_batches_are_refused_before_anything_runs() {
    let hb = echoing().start().await;
    let gw = start(&hb, "").await;
    let client = gw.client("/mcp").revision("2025-03-26").connected().await;
    let long: Vec<Value> = (0..51).map(|n| call(json!(n))).collect();
    for batch in [json!([]), json!(long)] {
        let response = client.post(&batch).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        let error = response.json().await;
        assert_eq!(
            (&error["error"]["code"], &error["id"]),
            (&json!(-32600), &Value::Null)
        );
    }
    assert_eq!(hb.count("tools/call"), 0);
    let whole: Vec<Value> = (0..50).map(|n| call(json!(n))).collect();
    let answers = client.post(&json!(whole)).await.json().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(50));
}

#[tokio::test]
async fn a_hidden_tool_stays_hidden_inside_a_batch() {
    let hb = echoing()
        .on("tools/list", |seen| {
            crate::support::hb::Reply::json(
                seen.result(crate::support::listing(&["echo", "danger"])),
            )
        })
        .start()
        .await;
    let gw = start(&hb, ", tools: { deny: [danger] }").await;
    let danger = |name: &str| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}});
    for path in ["/mcp", "/mcp/one"] {
        let client = gw.client(path).revision("2025-03-26").connected().await;
        for name in ["one__danger", "danger"] {
            for text in [
                format!("[{}]", danger(name)),
                format!("\n[{}]", danger(name)),
                format!(" [ {} ] ", danger(name)),
            ] {
                let answers = client.send(Method::POST, &[], text).await.json().await;
                assert_eq!(
                    answers[0]["error"]["code"], -32602,
                    "{path} {name}: {answers}"
                );
            }
        }
    }
    assert_eq!(hb.count("tools/call"), 0);
}

#[tokio::test]
async fn a_batch_in_flight_keeps_its_session_and_reports_progress() {
    let hb = echoing()
        .on("tools/call", |seen| {
            crate::support::hb::Reply::events()
                .message(seen.progress(1))
                .message(seen.result(json!({"content": []})))
        })
        .start()
        .await;
    let gw = start(&hb, "").await;
    let client = gw.client("/mcp").revision("2025-03-26").connected().await;
    let with_token = |n: u64| json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "one__echo", "_meta": {"progressToken": n}}});
    let mut stream = client
        .post(&json!([with_token(1), with_token(2)]))
        .await
        .events();
    let mut tokens = Vec::new();
    let answers = loop {
        let message = stream.next().await.unwrap();
        match message["params"]["progressToken"].as_u64() {
            Some(token) => tokens.push(token),
            None => break message,
        }
    };
    tokens.sort_unstable();
    assert_eq!(tokens, [1, 2]);
    assert_eq!(answers.as_array().map(Vec::len), Some(2));
}
