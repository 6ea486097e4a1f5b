//! Event streams: kept alive, flushed, never compressed, several at a time.

use crate::support::{
    Client, Events, Standing, TestGateway, Wire, echoing, gateway,
    hb::{Gate, Hb, Reply},
    modern_echoing, sb, text, until, with_tools,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

/// Streams that say soon that they live.
const LIVELY: &str = "streams: { keep_alive: 100ms, silence: 40ms }\n";

fn note(data: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": data}})
}

/// Reads until so many comments have come.
async fn comments(events: &mut Events, count: usize) {
    let seen = |raw: &[u8]| {
        raw.split(|b| *b == b'\n')
            .filter(|line| line.first() == Some(&b':'))
            .count()
    };
    let before = seen(&events.raw);
    while seen(&events.raw) < before + count {
        let filled = tokio::time::timeout(Duration::from_secs(5), events.fill()).await;
        assert!(filled.expect("a comment in time"), "the stream ended");
    }
}

/// A client whose backend session to `hb` is open, and that session's id.
async fn with_backend(gw: &TestGateway, hb: &Hb, path: &str, tool: &str) -> (Client, String) {
    let client = gw.client(path).connected().await;
    client.text(tool, json!({})).await;
    let seen = hb.seen();
    let last = seen
        .iter()
        .rev()
        .find(|s| s.method() == "tools/call")
        .unwrap();
    (
        client,
        last.header("mcp-session-id").unwrap_or_default().to_owned(),
    )
}

#[tokio::test]
async fn a_get_stream_begins_at_once_and_is_never_silent_for_long() {
    let hb = echoing().start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{LIVELY}",
        hb.url()
    ))
    .await;
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        for path in ["/mcp", "/mcp/one"] {
            let client = gw.client(path).revision(revision).connected().await;
            let mut stream = client.listen().await;
            assert!(stream.fill().await);
            let first = String::from_utf8_lossy(&stream.raw).into_owned();
            // Older SDKs fail on an event without data, so only the newest revision is primed.
            assert_eq!(
                first.contains("id:"),
                revision == "2025-11-25",
                "{revision}: {first:?}"
            );
            assert_eq!(
                first.contains("retry:"),
                revision == "2025-11-25",
                "{revision}: {first:?}"
            );
            comments(&mut stream, 3).await;
        }
    }
}

#[tokio::test]
async fn a_post_stream_of_a_silent_call_is_kept_alive_until_its_answer() {
    let gate = Gate::new();
    let (held, also) = (gate.clone(), gate.clone());
    let legacy = echoing()
        .on("tools/call", move |seen| {
            Reply::json(seen.result(text("at last"))).gate_head(&held)
        })
        .start()
        .await;
    let modern = modern_echoing().on("tools/call", move |seen| {
        let mut result = text("at last");
        result["resultType"] = "complete".into();
        Reply::events().gate(&also).message(seen.result(result))
    });
    let modern = modern.start().await;
    let yaml = format!(
        "servers: {{ old: {{ url: {:?} }}, new: {{ url: {:?} }}, local: {} }}\n{LIVELY}",
        legacy.url(),
        modern.url(),
        sb(&[], "isolation: shared")
    );
    let gw = gateway(&yaml).await;
    let client = gw.client("/mcp").connected().await;
    let mut streams = Vec::new();
    for (tool, arguments) in [
        ("old__echo", json!({})),
        ("new__echo", json!({})),
        ("local__hold", json!({"text": "at last"})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let message =
            json!({"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params});
        let response = client.post(&message).await;
        assert_eq!(response.status, StatusCode::OK);
        streams.push(response.events());
        streams.push(client.modern("tools/call", params).await.events());
    }
    for stream in &mut streams {
        comments(stream, 3).await;
    }
    gate.open();
    client.text("local__release", json!({})).await;
    for mut stream in streams {
        let answer = stream.next().await.unwrap();
        assert_eq!(
            answer["result"]["content"][0]["text"], "at last",
            "{answer}"
        );
        assert_eq!(stream.next().await, None);
    }
}

#[tokio::test]
async fn streams_are_marked_against_buffering_and_never_compressed() {
    let hb = echoing()
        .on("tools/call", |seen| {
            Reply::events()
                .message(seen.progress(1))
                .message(seen.result(text("x")))
        })
        .start()
        .await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw
        .client("/mcp")
        .header("accept-encoding", "gzip, br, deflate, zstd")
        .connected()
        .await;
    let meta = json!({"progressToken": 1});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo", "_meta": meta}});
    let only_events = [("accept", "text/event-stream")];
    let responses = [
        client.send(Method::GET, &[], "").await,
        client.post(&call).await,
        client
            .send(
                Method::POST,
                &only_events,
                json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}).to_string(),
            )
            .await,
        client
            .modern("tools/call", json!({"name": "one__echo", "_meta": meta}))
            .await,
    ];
    for response in responses {
        assert!(response.is_stream());
        let header = |name: &str| {
            response
                .headers
                .get(name)
                .map(|v| v.to_str().unwrap().to_owned())
        };
        let cache = header("cache-control").unwrap_or_default();
        assert!(
            cache.contains("no-cache") && cache.contains("no-transform"),
            "{cache}"
        );
        assert_eq!(header("x-accel-buffering").as_deref(), Some("no"));
        assert_eq!(header("content-encoding"), None);
        assert_eq!(
            header("content-length")
                .filter(|_| response.status == 200 && header("transfer-encoding").is_some()),
            None
        );
    }
}

#[tokio::test]
async fn each_event_goes_out_before_the_next_one_is_there() {
    let gates: Vec<Gate> = (0..5).map(|_| Gate::new()).collect();
    let held = gates.clone();
    let hb = echoing().on("tools/call", move |seen| {
        let mut reply = Reply::events();
        for (n, gate) in held.iter().enumerate() {
            reply = reply.gate(gate).message(seen.progress(n as u64));
        }
        reply.message(seen.result(text("done")))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{LIVELY}",
        hb.url()
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo", "_meta": {"progressToken": "t"}}});
    let mut stream = client.post(&call).await.events();
    for (n, gate) in gates.iter().enumerate() {
        gate.open();
        let progress = stream.next_of("notifications/progress").await;
        assert_eq!(
            (
                &progress["params"]["progress"],
                &progress["params"]["progressToken"]
            ),
            (&json!(n), &json!("t"))
        );
    }
    assert_eq!(
        stream.next().await.unwrap()["result"]["content"][0]["text"],
        "done"
    );
}

#[tokio::test]
async fn an_idle_stream_stays_open_while_the_servers_own_is_cut_again_and_again() {
    let (script, standing) = Standing::on(echoing());
    let hb = script.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?}, timeouts: {{ idle_stream: 1s }} }} }}\n{LIVELY}",
        hb.url()
    ))
    .await;
    let (client, session) = with_backend(&gw, &hb, "/mcp", "one__echo").await;
    let mut stream = client.listen().await;
    let mine = |seen: &crate::support::hb::Seen| {
        seen.verb == "GET" && seen.header("mcp-session-id") == Some(&session)
    };
    hb.wait_for_nth(2, mine).await;
    standing.say(&session, &note(json!("still here")));
    assert_eq!(
        stream.next_of("notifications/message").await["params"]["data"],
        "still here"
    );
}

#[tokio::test]
async fn a_server_without_a_get_stream_costs_the_others_nothing() {
    let (script, standing) = Standing::on(echoing());
    let (with, without) = (script.start().await, echoing().start().await);
    let gw = gateway(&format!(
        "servers: {{ with: {{ url: {:?} }}, without: {{ url: {:?} }} }}\n{LIVELY}",
        with.url(),
        without.url()
    ))
    .await;
    let (client, session) = with_backend(&gw, &with, "/mcp", "with__echo").await;
    client.text("without__echo", json!({})).await;
    let mut stream = client.listen().await;
    for n in 0..20 {
        standing.say(&session, &note(json!(n)));
        // Nothing but these comes: no change is announced on account of the stream that is not there.
        assert_eq!(stream.next().await.unwrap()["params"]["data"], n);
        comments(&mut stream, 1).await;
    }
    // One GET for the session and one for the gateway's own link.
    assert!(without.count("GET") <= 2, "{} GETs", without.count("GET"));
    assert!(
        without.count("tools/list") <= 2,
        "{} lists",
        without.count("tools/list")
    );
    assert_eq!(client.tools().await.len(), 2);
}

#[tokio::test]
async fn get_is_served_as_a_stream_or_refused() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    let json_only = client
        .send(Method::GET, &[("accept", "application/json")], "")
        .await;
    assert_eq!(json_only.status, StatusCode::NOT_ACCEPTABLE);
    let modern = client
        .send(Method::GET, &[("mcp-protocol-version", "2026-07-28")], "")
        .await;
    assert_eq!(
        (modern.status.as_u16(), &modern.headers["allow"]),
        (405, &"POST".parse().unwrap())
    );
    for verb in [Method::PUT, Method::PATCH, Method::HEAD] {
        let other = client.send(verb.clone(), &[], "").await;
        assert_eq!(other.status, StatusCode::METHOD_NOT_ALLOWED, "{verb}");
        assert!(other.headers["allow"].to_str().unwrap().contains("POST"));
    }
    assert!(
        client
            .send(Method::GET, &[("accept", "*/*")], "")
            .await
            .is_stream()
    );
}

#[tokio::test]
async fn a_second_get_stream_is_served_and_harms_neither_session_nor_calls() {
    let gate = Gate::new();
    let held = gate.clone();
    let (script, standing) = Standing::on(echoing());
    let script = script.on("tools/call", move |seen| {
        match seen.json()["params"]["arguments"]["slow"] == true {
            true => Reply::json(seen.result(text("slow"))).gate_head(&held),
            false => Reply::json(seen.result(text("fast"))),
        }
    });
    let hb = script.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{LIVELY}",
        hb.url()
    ))
    .await;
    let (client, session) = with_backend(&gw, &hb, "/mcp", "one__echo").await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo", "arguments": {"slow": true}}});
    let mut slow = client.post(&call).await.events();
    // What carries no owner belongs to the only call there is; with two of them it is the session's.
    let mut other = client.post(&call).await.events();
    let mut first = client.listen().await;
    let mut second = client.twin().listen().await;
    standing.say(&session, &note(json!(1)));
    // Each message goes to one stream only, the newest.
    assert_eq!(second.next().await.unwrap()["params"]["data"], 1);
    comments(&mut first, 1).await;
    assert!(first.is_silent_for(Duration::from_millis(50)).await);
    drop(second);
    until("the second stream is gone", || {
        gw.router.metrics.streams.get() == 3
    })
    .await;
    standing.say(&session, &note(json!(2)));
    assert_eq!(first.next().await.unwrap()["params"]["data"], 2);
    gate.open();
    for stream in [&mut slow, &mut other] {
        assert_eq!(
            stream.next().await.unwrap()["result"]["content"][0]["text"],
            "slow"
        );
    }
    assert_eq!(client.text("one__echo", json!({})).await, "fast");
}

#[tokio::test]
async fn a_stream_that_was_cut_can_be_opened_again_at_once() {
    let (script, standing) = Standing::on(echoing());
    let hb = script.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{LIVELY}",
        hb.url()
    ))
    .await;
    let (client, session) = with_backend(&gw, &hb, "/mcp", "one__echo").await;
    let id = client.session.clone().unwrap();
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", &*id)];
    for n in 0..20 {
        let mut wire = Wire::to(gw.address).await;
        wire.request("GET", "/mcp", &headers, "").await;
        assert_eq!(wire.status().await, 200, "GET number {n}");
        wire.reset();
    }
    let mut stream = client.listen().await;
    until("the dead ones are noticed", || {
        gw.router.metrics.streams.get() == 1
    })
    .await;
    standing.say(&session, &note(json!("alive")));
    assert_eq!(stream.next().await.unwrap()["params"]["data"], "alive");
    // A client that starts afresh is not held up by what it left behind either.
    let again = gw.client("/mcp").connected().await;
    again.listen().await;
}

#[tokio::test]
async fn many_streams_of_one_session_end_with_it() {
    let hb = with_tools(Hb::legacy()).start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{LIVELY}",
        hb.url()
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(client.twin().listen().await);
    }
    client.delete().await;
    for mut stream in streams {
        assert_eq!(stream.next().await, None);
    }
    until("no stream is left", || gw.router.metrics.streams.get() == 0).await;
}
