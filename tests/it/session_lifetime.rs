//! Sessions: who finds them, how long they live, and what ends with them.

use crate::support::{
    Client, TestGateway, Wire, echoing, gateway,
    hb::{Gate, Hb, Reply},
    keys::keys,
    sb, text, until,
    wait::{half_closed, lives},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

async fn over(hb: &Hb, more: &str) -> TestGateway {
    gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{more}",
        hb.url()
    ))
    .await
}

fn call(id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {}}})
}

fn initialize(id: u64) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}).to_string()
}

#[tokio::test]
async fn an_unknown_session_is_404_whatever_else_is_wrong_with_the_request() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { body: 1KiB }\n").await;
    let json_type = ("content-type", "application/json");
    let large = "x".repeat(4096);
    let ids = [
        "0",
        "",
        " ",
        "a b",
        "..",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        &large,
    ];
    for path in ["/mcp", "/mcp/", "/mcp/one"] {
        let client = gw.client(path);
        for id in ids {
            let session = ("mcp-session-id", id);
            let cases: [(Method, Vec<(&str, &str)>, &str); 14] = [
                (
                    Method::POST,
                    vec![json_type],
                    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
                ),
                (
                    Method::POST,
                    vec![json_type],
                    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
                ),
                (
                    Method::POST,
                    vec![json_type],
                    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                ),
                (
                    Method::POST,
                    vec![json_type],
                    r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
                ),
                (
                    Method::POST,
                    vec![json_type],
                    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                ),
                (Method::POST, vec![json_type], "{nonsense"),
                (Method::POST, vec![json_type], &large),
                (Method::POST, vec![], "{}"),
                (Method::POST, vec![json_type, ("accept", "image/png")], "{}"),
                (
                    Method::POST,
                    vec![json_type, ("mcp-protocol-version", "1999-01-01")],
                    "{}",
                ),
                (Method::GET, vec![("accept", "text/event-stream")], ""),
                (Method::GET, vec![("last-event-id", "0-1")], ""),
                (Method::DELETE, vec![], ""),
                (Method::PUT, vec![], ""),
            ];
            for (method, mut headers, body) in cases {
                headers.push(session);
                let shown = format!(
                    "{method} {path} {headers:?} {}",
                    &body[..body.len().min(60)]
                );
                let response = client.raw(method, &headers, body.to_owned()).await;
                assert_eq!(response.status, StatusCode::NOT_FOUND, "{shown}");
                let error = response.json().await;
                assert_eq!(error["error"]["code"], -32600, "{shown}: {error}");
            }
        }
    }
    assert_eq!(hb.count("tools/call"), 0);
}

#[tokio::test]
async fn after_a_restart_the_old_id_is_404_and_a_new_session_opens() {
    let hb = echoing().start().await;
    let gw = over(&hb, "").await;
    let mut client = gw.client("/mcp").connected().await;
    assert!(client.tools().await.contains(&"one__echo".to_owned()));
    gw.stop().await;
    let gw = over(&hb, "").await;
    client.url = gw.url("/mcp");
    let refused = client.post(&call(json!(7))).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert!(
        refused.json().await["error"]["message"]
            .as_str()
            .unwrap()
            .contains("initialize")
    );
    client.session = None;
    client.initialize(json!({})).await;
    assert_eq!(client.text("one__echo", json!({})).await, "{}");
    gw.stop().await;
}

#[tokio::test]
async fn an_expired_session_is_404_for_every_verb_and_its_streams_have_ended() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { session_idle: 1s }\n").await;
    let client = gw.client("/mcp").connected().await;
    client.text("one__echo", json!({})).await;
    until("the session is reaped", || gw.router.sessions.is_empty()).await;
    assert_eq!(
        client.post(&call(json!(1))).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        client
            .notify("notifications/initialized", json!({}))
            .await
            .status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        client.send(Method::GET, &[], "").await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(client.delete().await.status, StatusCode::NOT_FOUND);
    hb.wait_for(|seen| seen.verb == "DELETE").await;
}

#[tokio::test]
async fn without_a_session_id_only_initialize_is_served() {
    let hb = echoing().start().await;
    let gw = over(&hb, "").await;
    for path in ["/mcp", "/mcp/one"] {
        let client = gw.client(path);
        for message in [
            call(json!(1)),
            json!({"jsonrpc": "2.0", "id": "x", "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "no/such"}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 3, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "m"}}),
        ] {
            let response = client.post(&message).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{message}");
            let error = response.json().await;
            assert_eq!(error["error"]["code"], -32600, "{message}: {error}");
            if message.get("method").is_some() && message.get("id").is_some() {
                assert_eq!(error["id"], message["id"]);
            }
        }
        assert_eq!(client.delete().await.status, StatusCode::BAD_REQUEST);
        let get = client.send(Method::GET, &[], "").await;
        assert_eq!(get.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(get.headers["allow"], "POST");
    }
    assert_eq!(gw.router.sessions.len(), 0);
}

#[tokio::test]
async fn a_session_is_known_at_its_own_endpoint_and_to_its_own_caller_only() {
    let hb = echoing().start().await;
    let (auth, keys) = keys(&["ann", "bob"]);
    let gw = over(&hb, &auth).await;
    let ann = gw.client("/mcp").key(&keys[0]).connected().await;
    let mut elsewhere = ann.twin();
    elsewhere.url = gw.url("/mcp/one");
    let mut bob = ann.twin();
    bob.headers = vec![("authorization".into(), format!("Bearer {}", keys[1]))];
    let mut nobody = ann.twin();
    nobody.headers.clear();
    for (other, status) in [(&elsewhere, 404), (&bob, 404), (&nobody, 401)] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let response = other.send(method, &[], call(json!(1)).to_string()).await;
            assert_eq!(response.status.as_u16(), status);
        }
    }
    assert_eq!(
        ann.text("one__echo", json!({"still": "here"})).await,
        r#"{"still":"here"}"#
    );
}

#[tokio::test]
async fn a_session_outlives_every_connection_of_its_client() {
    let hb = echoing().start().await;
    let gw = over(&hb, "").await;
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let mut first = Wire::to(gw.address).await;
    first
        .request("POST", "/mcp", &headers, &initialize(0))
        .await;
    let head = first.head().await;
    let session = head
        .lines()
        .find_map(|l| l.strip_prefix("mcp-session-id: "))
        .unwrap()
        .to_owned();
    drop(first);
    let mut headers = headers.to_vec();
    headers.push(("mcp-session-id", &session));
    // Every message on a connection of its own: one closed in order, one reset, one that asks to be closed.
    let mut second = Wire::to(gw.address).await;
    second
        .request(
            "POST",
            "/mcp",
            &headers,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        )
        .await;
    assert_eq!(second.status().await, 202);
    second.reset();
    headers.push(("connection", "close"));
    let mut third = Wire::to(gw.address).await;
    third
        .request(
            "POST",
            "/mcp",
            &headers,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        )
        .await;
    assert_eq!(third.status().await, 200);
    assert!(third.end().await);
    let mut fourth = Wire::to(gw.address).await;
    fourth.request("POST", "/mcp", &headers, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__echo","arguments":{}}}"#).await;
    assert_eq!(fourth.status().await, 200);
    assert_eq!(hb.count("DELETE"), 0);
}

#[tokio::test]
async fn losing_its_stream_ends_neither_session_nor_calls() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = echoing()
        .on("tools/call", move |seen| {
            Reply::json(seen.result(text("done"))).gate_head(&held)
        })
        .start()
        .await;
    let gw = over(&hb, "").await;
    let client = gw.client("/mcp").connected().await;
    let stream = client.listen().await;
    let (answer, ()) = tokio::join!(client.call("one__echo", json!({})), async {
        hb.wait_for(|seen| seen.method() == "tools/call").await;
        drop(stream);
        until("the stream is gone", || {
            gw.router.metrics.streams.get() == 0
        })
        .await;
        assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
        gate.open();
    });
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    let _again = client.listen().await;
}

#[tokio::test]
async fn a_running_call_or_an_open_stream_keeps_a_session_while_idle_ones_end() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = echoing()
        .on("tools/call", move |seen| {
            Reply::json(seen.result(text("late"))).gate_head(&held)
        })
        .start()
        .await;
    let gw = over(
        &hb,
        "limits: { session_idle: 1s }\nstreams: { keep_alive: 100ms }\n",
    )
    .await;
    let calling = gw.client("/mcp").connected().await;
    let left = gw.client("/mcp").connected().await;
    let message = call(json!(1)).to_string().replace("echo", "one__echo");
    let (answer, ()) = tokio::join!(calling.send(Method::POST, &[], message), async {
        hb.wait_for(|seen| seen.method() == "tools/call").await;
        // Its client goes away in the middle of a call.
        let mut gone = Wire::to(gw.address).await;
        let session = left.session.clone().unwrap();
        let headers = [
            ("content-type", "application/json"),
            ("mcp-session-id", &*session),
            ("accept", "application/json"),
        ];
        gone.request(
            "POST",
            "/mcp",
            &headers,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        )
        .await;
        gone.reset();
        let watching = gw.client("/mcp").connected().await;
        let mut stream = watching.listen().await;
        let _abandoned = gw.client("/mcp").connected().await;
        until("the two idle ones are reaped", || {
            gw.router.sessions.len() == 2
        })
        .await;
        assert!(
            stream
                .is_silent_for(std::time::Duration::from_millis(50))
                .await
        );
        assert_eq!(
            watching.request("ping", json!({})).await["result"],
            json!({})
        );
        gate.open();
    });
    assert_eq!(
        answer.message().await["result"]["content"][0]["text"],
        "late"
    );
}

#[tokio::test]
async fn sessions_that_never_got_past_initialize_are_reaped() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { session_idle: 1s }\n").await;
    let client = gw.client("/mcp");
    for n in 0..50 {
        let accept = [
            ("accept", "application/json"),
            ("content-type", "application/json"),
        ];
        assert_eq!(
            client
                .raw(Method::POST, &accept, initialize(n))
                .await
                .status,
            StatusCode::OK
        );
    }
    assert_eq!(gw.router.sessions.len(), 50);
    until("all are reaped", || gw.router.sessions.is_empty()).await;
    assert_eq!(gw.router.metrics.sessions.get(), 0);
}

#[tokio::test]
async fn at_the_cap_a_callers_longest_idle_session_makes_room_and_others_are_left_alone() {
    let hb = echoing().start().await;
    let (auth, keys) = keys(&["ann", "bob"]);
    let limits = "limits: { sessions: 4, sessions_per_principal: 2 }\n";
    let gw = over(&hb, &format!("{auth}{limits}")).await;
    let bob = gw.client("/mcp").key(&keys[1]).connected().await;
    let first = gw.client("/mcp").key(&keys[0]).connected().await;
    let second = gw.client("/mcp").key(&keys[0]).connected().await;
    assert_eq!(first.request("ping", json!({})).await["result"], json!({}));
    let third = gw.client("/mcp").key(&keys[0]).connected().await;
    assert_eq!(
        second.post(&call(json!(1))).await.status,
        StatusCode::NOT_FOUND
    );
    // Both are in use now: there is no room, and the answer says when to come back.
    let _streams = (first.listen().await, third.listen().await);
    let refused = gw
        .client("/mcp")
        .key(&keys[0])
        .send(Method::POST, &[], initialize(5))
        .await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers.contains_key("retry-after"));
    let error = refused.json().await;
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&json!(5), &json!(-31003))
    );
    assert_eq!(bob.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_thousand_calls_use_few_connections_to_the_server() {
    let hb = echoing().start().await;
    let gw = over(&hb, "").await;
    let client = gw.client("/mcp/one").connected().await;
    for _ in 0..50 {
        let calls = (0..20).map(|_| client.call("echo", json!({})));
        futures_util::future::join_all(calls).await;
    }
    assert_eq!(hb.count("tools/call"), 1000);
    assert!(hb.connections() <= 60, "{} connections", hb.connections());
}

#[tokio::test]
async fn killed_clients_leave_no_half_closed_sockets() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = echoing()
        .on("tools/call", move |seen| {
            Reply::json(seen.result(text("x"))).gate_head(&held)
        })
        .start()
        .await;
    let gw = over(&hb, "streams: { silence: 50ms }\n").await;
    let client = gw.client("/mcp/one").connected().await;
    let session = client.session.clone().unwrap();
    let headers = [
        ("content-type", "application/json"),
        ("mcp-session-id", &*session),
        ("accept", "application/json, text/event-stream"),
    ];
    let mut wires = Vec::new();
    for n in 0..150 {
        let mut wire = Wire::to(gw.address).await;
        match n % 3 {
            0 => {
                wire.request("POST", "/mcp/one", &headers, &call(json!(n)).to_string())
                    .await
            }
            _ => wire.request("GET", "/mcp/one", &headers, "").await,
        }
        assert_eq!(wire.status().await, 200);
        wires.push(wire);
    }
    for (n, wire) in wires.into_iter().enumerate() {
        match n % 2 {
            0 => wire.reset(),
            _ => drop(wire),
        }
    }
    until("all streams are gone", || {
        gw.router.metrics.streams.get() == 0
    })
    .await;
    until("no socket waits to be closed", || {
        half_closed(gw.address.port()) == 0
    })
    .await;
    gate.open();
    assert_eq!(client.text("echo", json!({})).await, "x");
}

#[tokio::test]
async fn delete_ends_streams_backend_sessions_and_processes_and_is_404_from_then_on() {
    let hb = echoing().start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }}, two: {} }}\n",
        hb.url(),
        sb(&[], "")
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    client.text("one__echo", json!({})).await;
    let pid: u32 = client.text("two__pid", json!({})).await.parse().unwrap();
    let mut stream = client.listen().await;
    assert!(lives(pid));
    let deleted = client.delete().await;
    assert!(
        matches!(deleted.status.as_u16(), 200 | 202 | 204),
        "{}",
        deleted.status
    );
    assert_eq!(deleted.bytes().await.len(), 0);
    while let Some(message) = stream.next().await {
        assert_eq!(message["method"], "notifications/tools/list_changed");
    }
    hb.wait_for(|seen| seen.verb == "DELETE").await;
    until("its process has ended", || !lives(pid)).await;
    assert_eq!(
        client.post(&call(json!(1))).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(client.delete().await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn delete_needs_neither_body_nor_content_type_and_takes_both() {
    let hb = echoing().start().await;
    let gw = over(&hb, "").await;
    for (headers, body) in [
        (vec![], ""),
        (vec![("content-type", "application/json")], "{}"),
        (
            vec![("content-type", "text/plain"), ("accept", "image/png")],
            "bye",
        ),
    ] {
        let client = gw.client("/mcp").connected().await;
        let mut headers = headers;
        let session = client.session.clone().unwrap();
        headers.push(("mcp-session-id", &session));
        let deleted = client.raw(Method::DELETE, &headers, body).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{headers:?}");
    }
    assert!(gw.router.sessions.is_empty());
}

#[tokio::test]
async fn delete_during_a_call_answers_it_and_tells_the_server() {
    let hb = echoing()
        .on("tools/call", |_| Reply::events().silence())
        .start()
        .await;
    let gw = over(&hb, "streams: { silence: 50ms }\n").await;
    for (accept, as_stream) in [
        ("application/json", false),
        ("application/json, text/event-stream", false),
        ("application/json, text/event-stream", true),
    ] {
        let client = gw.client("/mcp/one").connected().await;
        let started = hb.count("tools/call");
        let headers = [("accept", accept)];
        let message = call(json!("mine")).to_string();
        let (response, ()) = tokio::join!(client.send(Method::POST, &headers, message), async {
            hb.wait_for_nth(started + 1, |seen| seen.method() == "tools/call")
                .await;
            if as_stream {
                until("it is a stream", || gw.router.metrics.streams.get() == 1).await;
            }
            client.twin().delete().await;
        });
        let answer = response.message().await;
        assert_eq!(answer["id"], "mine", "{accept}: {answer}");
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        hb.wait_for_nth(started + 1, |seen| {
            seen.method() == "notifications/cancelled" || seen.verb == "DELETE"
        })
        .await;
    }
}

#[tokio::test]
async fn shutdown_and_exit_end_a_session_too() {
    let hb = echoing().start().await;
    let gw = over(&hb, "").await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(
        client.request("shutdown", json!({})).await["result"],
        json!({})
    );
    assert_eq!(client.delete().await.status, StatusCode::NOT_FOUND);
    let client = gw.client("/mcp").connected().await;
    assert_eq!(
        client.notify("notifications/exit", json!({})).await.status,
        StatusCode::ACCEPTED
    );
    assert_eq!(client.delete().await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_second_initialize_with_a_session_is_refused_and_changes_nothing() {
    let hb = echoing().start().await;
    let gw = over(&hb, "").await;
    let client: Client = gw.client("/mcp").connected().await;
    let answer = client
        .send(Method::POST, &[], initialize(9))
        .await
        .message()
        .await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(9), &json!(-32600))
    );
    assert_eq!(client.text("one__echo", json!({})).await, "{}");
    assert_eq!(gw.router.sessions.len(), 1);
}
