//! Bounds on what one client may send, and on how long it may take.

use crate::support::{
    TestGateway, Wire, echoing, gateway,
    hb::{Hb, Reply},
    text, until,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

async fn over(hb: &Hb, more: &str) -> TestGateway {
    gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{more}",
        hb.url()
    ))
    .await
}

/// A call whose whole message has exactly so many bytes.
fn call_of(bytes: usize) -> String {
    let around = |filling: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"x":"{filling}"}}}}}}"#
        )
    };
    around(&"x".repeat(bytes - around("").len()))
}

fn session_head(session: &str, more: &str) -> String {
    format!(
        "POST /mcp/one HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\nmcp-session-id: {session}\r\n{more}\r\n"
    )
}

#[tokio::test]
async fn a_body_at_the_limit_passes_and_one_byte_more_is_413() {
    let hb = echoing()
        .on("tools/call", |seen| {
            Reply::json(seen.result(text(seen.body.len().to_string())))
        })
        .start()
        .await;
    let gw = over(&hb, "limits: { body: 64KiB }\n").await;
    let client = gw.client("/mcp/one").connected().await;
    for accept in ["application/json", "text/event-stream"] {
        let headers = [("accept", accept)];
        let fits = client.send(Method::POST, &headers, call_of(65536)).await;
        assert_eq!(fits.status, StatusCode::OK);
        assert!(fits.message().await["result"].is_object());
        let large = client.send(Method::POST, &headers, call_of(65537)).await;
        assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(large.headers["content-type"], "application/json");
        let error = large.json().await;
        assert_eq!(
            (&error["jsonrpc"], &error["error"]["code"]),
            (&json!("2.0"), &json!(-32600))
        );
        assert!(
            error["error"]["message"]
                .as_str()
                .unwrap()
                .contains("65536"),
            "{error}"
        );
    }
    // Modern clients have the same limit.
    let modern = client
        .modern(
            "tools/call",
            json!({"name": "echo", "arguments": {"x": "x".repeat(70_000)}}),
        )
        .await;
    assert_eq!(modern.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(
        client
            .text("echo", json!({}))
            .await
            .parse::<usize>()
            .is_ok()
    );
    assert_eq!(hb.count("tools/call"), 3);
}

#[tokio::test]
async fn a_body_without_a_declared_length_is_cut_off_at_the_limit() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { body: 64KiB }\n").await;
    let client = gw.client("/mcp/one").connected().await;
    let mut wire = Wire::to(gw.address).await;
    wire.send(session_head(
        &client.session.clone().unwrap(),
        "transfer-encoding: chunked\r\n",
    ))
    .await;
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    // Far more than would ever fit into buffers on the way: somebody must stop reading.
    let mut sent = 0u64;
    while sent < 2 << 30 && wire.send(&chunk).await {
        sent += 0x4000;
        let mut byte = [0];
        let early = tokio::time::timeout(Duration::ZERO, wire.stream.peek(&mut byte)).await;
        if early.is_ok() {
            break;
        }
    }
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    assert_eq!(wire.status().await, 413);
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_declared_length_over_the_limit_is_refused_before_any_of_it_is_sent() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { body: 64KiB }\n").await;
    let client = gw.client("/mcp/one").connected().await;
    for length in ["65537", "2147483648", "9223372036854775807"] {
        let mut wire = Wire::to(gw.address).await;
        wire.send(session_head(
            &client.session.clone().unwrap(),
            &format!("content-length: {length}\r\n"),
        ))
        .await;
        assert_eq!(wire.status().await, 413, "{length}");
    }
}

#[tokio::test]
async fn a_large_message_within_the_limit_goes_through_both_ways() {
    let hb = echoing().start().await;
    let gw = over(&hb, "").await;
    let client = gw.client("/mcp/one").connected().await;
    let large = "ü\u{2028}x".repeat(1 << 20);
    let answer = client.text("echo", json!({"x": large})).await;
    assert_eq!(answer, json!({"x": large}).to_string());
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_408_and_harms_nobody() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { request_timeout: 1s }\n").await;
    let client = gw.client("/mcp/one").connected().await;
    let session = client.session.clone().unwrap();
    let mut never = Wire::to(gw.address).await;
    never
        .send(session_head(&session, "content-length: 100\r\n"))
        .await;
    never.send(r#"{"jsonrpc""#).await;
    let mut dripping = Wire::to(gw.address).await;
    dripping
        .send(session_head(&session, "transfer-encoding: chunked\r\n"))
        .await;
    let drip = async {
        for _ in 0..1000 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if !dripping.send("1\r\n \r\n").await {
                break;
            }
            let mut byte = [0];
            if tokio::time::timeout(Duration::ZERO, dripping.stream.peek(&mut byte))
                .await
                .is_ok()
            {
                break;
            }
        }
        dripping.status().await
    };
    let (first, second) = tokio::join!(never.status(), drip);
    assert_eq!((first, second), (408, 408));
    assert_eq!(client.text("echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_head_that_does_not_come_in_time_ends_the_connection() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { request_timeout: 1s }\n").await;
    let mut silent = Wire::to(gw.address).await;
    let mut half = Wire::to(gw.address).await;
    half.send("POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
        .await;
    tokio::join!(silent.end(), half.end());
    assert!(!String::from_utf8_lossy(&half.read).contains(" 200 "));
}

#[tokio::test]
async fn an_idle_connection_between_requests_may_stay() {
    let hb = echoing().start().await;
    let gw = over(
        &hb,
        "limits: { request_timeout: 1s }\nstreams: { keep_alive: 100ms }\n",
    )
    .await;
    let client = gw.client("/mcp/one").connected().await;
    // A stream that is open longer than a request may take to arrive is no slow request.
    let mut stream = client.listen().await;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(1300) {
        assert!(stream.fill().await, "the stream ended");
    }
    assert_eq!(client.text("echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_body_that_ends_early_is_no_request() {
    let hb = echoing().start().await;
    let gw = over(&hb, "").await;
    let client = gw.client("/mcp/one").connected().await;
    let whole = call_of(200);
    let mut wire = Wire::to(gw.address).await;
    wire.send(session_head(
        &client.session.clone().unwrap(),
        "content-length: 200\r\n",
    ))
    .await;
    wire.send(&whole[..150]).await;
    drop(wire);
    assert_eq!(client.text("echo", json!({})).await, "{}");
    assert_eq!(hb.count("tools/call"), 1);
}

#[tokio::test]
async fn a_head_over_the_limit_is_431() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { headers: 16KiB }\n").await;
    let client = gw.client("/mcp/one").connected().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let (fits, large) = ("x".repeat(8 << 10), "x".repeat(20 << 10));
    assert_eq!(
        client
            .send(Method::POST, &[("x-some", &fits)], ping)
            .await
            .status,
        StatusCode::OK
    );
    assert_eq!(
        client
            .send(Method::POST, &[("x-large", &large)], ping)
            .await
            .status,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    );
    let many: Vec<(String, String)> = (0..90)
        .map(|n| (format!("x-{n}"), "y".repeat(250)))
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(
        client.send(Method::POST, &many, ping).await.status,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    );
    // One that never ends is cut off, whatever the answer.
    let mut wire = Wire::to(gw.address).await;
    wire.send("POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: ")
        .await;
    let piece = "x".repeat(64 << 10);
    let mut sent = 0u64;
    while sent < 256 << 20 && wire.send(&piece).await {
        sent += piece.len() as u64;
        let mut byte = [0];
        if tokio::time::timeout(Duration::ZERO, wire.stream.peek(&mut byte))
            .await
            .is_ok()
        {
            break;
        }
    }
    assert!(sent < 32 << 20, "{sent} bytes were taken");
    assert_eq!(wire.status().await, 431);
    let mut long = Wire::to(gw.address).await;
    long.send(format!(
        "GET /mcp?{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "q".repeat(100 << 10)
    ))
    .await;
    let status = long.status().await;
    assert!(status == 414 || status == 431, "{status}");
}

#[tokio::test]
async fn what_is_not_one_json_object_is_refused_as_such() {
    let hb = echoing().start().await;
    let gw = over(&hb, "limits: { json_depth: 32 }\n").await;
    let client = gw.client("/mcp/one").connected().await;
    let deep = |depth: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"x":{}{}}}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let cases: Vec<(Vec<u8>, i64)> = vec![
        (b"".to_vec(), -32700),
        (b"   ".to_vec(), -32700),
        (b"{".to_vec(), -32700),
        (b"nonsense".to_vec(), -32700),
        (b"{} {}".to_vec(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}x".to_vec(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",}".to_vec(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xc3\"}".to_vec(), -32700),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".into(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}".to_vec(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"m\\u0065thod\":\"tools/list\"}".to_vec(), -32700),
        (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"other"}}"#.to_vec(), -32700),
        (deep(40).into_bytes(), -32700),
        (deep(100_000).into_bytes(), -32700),
        (b"{}".to_vec(), -32600),
        (b"42".to_vec(), -32600),
        (b"null".to_vec(), -32600),
        (b"\"text\"".to_vec(), -32600),
        (br#"{"id":1,"method":"ping"}"#.to_vec(), -32600),
        (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_vec(), -32600),
        (br#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#.to_vec(), -32600),
        (br#"{"jsonrpc":"2.0","id":1}"#.to_vec(), -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":7}"#.to_vec(), -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#.to_vec(), -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#.to_vec(), -32600),
        (br#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#.to_vec(), -32600),
    ];
    for (body, code) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(90)]).into_owned();
        let response = client.send(Method::POST, &[], body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{shown}");
        let error: Value = response.json().await;
        let got = error["error"]["code"].as_i64().unwrap();
        assert!(
            got == code || (code == -32700 && got == -32600),
            "{shown}: {error}"
        );
    }
    assert_eq!(hb.count("tools/call"), 0);
    assert_eq!(
        client.send(Method::POST, &[], deep(20)).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_session_may_have_so_many_calls_running_and_no_more() {
    let gate = crate::support::hb::Gate::new();
    let held = gate.clone();
    let hb = echoing()
        .on("tools/call", move |seen| {
            Reply::json(seen.result(text("x"))).gate_head(&held)
        })
        .start()
        .await;
    let gw = over(&hb, "limits: { concurrent_calls_per_session: 4 }\n").await;
    let client = gw.client("/mcp/one").connected().await;
    let other = gw.client("/mcp/one").connected().await;
    let running = futures_util::future::join_all((0..4).map(|_| client.call("echo", json!({}))));
    let (answers, ()) = tokio::join!(running, async {
        hb.wait_for_nth(4, |s| s.method() == "tools/call").await;
        let fifth = client.call("echo", json!({})).await;
        assert_eq!(fifth["error"]["code"], -31003, "{fifth}");
        let theirs = other.call("echo", json!({}));
        let (theirs, ()) = tokio::join!(theirs, async {
            hb.wait_for_nth(5, |s| s.method() == "tools/call").await;
            gate.open();
        });
        assert!(theirs["result"].is_object());
    });
    assert!(answers.iter().all(|a| a["result"].is_object()));
    assert!(client.call("echo", json!({})).await["result"].is_object());
}

#[tokio::test]
async fn a_thousand_slow_readers_hold_up_nobody() {
    let hb = echoing().on("tools/call", |seen| {
        match seen.json()["params"]["arguments"]["large"] == true {
            true => Reply::json(seen.result(text("x".repeat(1 << 20)))),
            false => Reply::json(seen.result(text("small"))),
        }
    });
    let hb = hb.start().await;
    let gw = over(&hb, "streams: { keep_alive: 100ms }\n").await;
    let slow = gw.client("/mcp/one").connected().await;
    let session = slow.session.clone().unwrap();
    let mut wires = Vec::new();
    for n in 0..1000 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(gw.address).await.unwrap();
        let mut wire = Wire {
            stream,
            read: Vec::new(),
        };
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", &*session),
        ];
        match n % 20 {
            0 => {
                let call = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "echo", "arguments": {"large": true}}}).to_string();
                wire.request("POST", "/mcp/one", &headers, &call).await;
            }
            _ => wire.request("GET", "/mcp/one", &headers, "").await,
        }
        // None of them reads anything.
        wires.push(wire);
    }
    until("all streams are open", || {
        gw.router.metrics.streams.get() == 950
    })
    .await;
    hb.wait_for_nth(50, |s| s.method() == "tools/call").await;
    let quick = gw.client("/mcp/one").connected().await;
    let begin = Instant::now();
    for _ in 0..50 {
        assert_eq!(quick.text("echo", json!({})).await, "small");
    }
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    // And what they did not read is still there for them.
    let mut last = wires.swap_remove(0);
    assert_eq!(last.status().await, 200);
    last.take_until(&"x".repeat(1 << 20)).await;
    drop(wires);
    until("all streams are gone", || {
        gw.router.metrics.streams.get() == 0
    })
    .await;
}
