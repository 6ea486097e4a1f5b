//! `Last-Event-ID`: what a broken stream still owed comes, once and in order, and nothing of any other stream.

use crate::support::{
    Client, Standing, Wire, arguments, echoing, gateway,
    hb::{Gate, Reply},
    sb, text, until,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

const QUICK: &str = "streams: { keep_alive: 100ms, silence: 50ms }\n";

fn call(id: u64, tool: &str, arguments: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}}).to_string()
}

/// Calls on a connection of its own, reads until `until_text` came, and cuts it. Returns the id of the last event.
async fn call_and_cut(
    client: &Client,
    address: std::net::SocketAddr,
    body: &str,
    until_text: &str,
) -> String {
    let session = client.session.clone().unwrap();
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", &*session),
    ];
    let mut wire = Wire::to(address).await;
    wire.request("POST", "/mcp", &headers, body).await;
    assert_eq!(wire.status().await, 200);
    let read = wire.take_until(until_text).await;
    let id = read
        .lines()
        .rev()
        .find_map(|l| l.strip_prefix("id: "))
        .expect("an event id")
        .to_owned();
    wire.reset();
    id
}

#[tokio::test]
async fn the_answer_of_a_call_whose_stream_broke_comes_once() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = echoing().on("tools/call", move |seen| {
        Reply::events()
            .message(seen.progress(1))
            .gate(&held)
            .message(seen.progress(2))
            .message(seen.result(text("at last")))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }}, two: {} }}\n{QUICK}",
        hb.url(),
        sb(&[], "")
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let after_prime = call_and_cut(
        &client,
        gw.address,
        &call(1, "two__hold", json!({"text": "held"})),
        "data: \n\n",
    )
    .await;
    let after_progress = call_and_cut(
        &client,
        gw.address,
        &call(2, "one__echo", json!({})),
        "\"progress\":1}}\n\n",
    )
    .await;
    until("both streams are gone", || {
        gw.router.metrics.streams.get() == 0
    })
    .await;
    // One is resumed before its answer is there, the other one after.
    let mut early = client.resume(&after_prime).await;
    assert_eq!(client.text("two__release", json!({})).await, "released");
    gate.open();
    assert_eq!(
        early.next().await.unwrap()["result"]["content"][0]["text"],
        "held"
    );
    assert_eq!(early.next().await, None);
    until("the other call is over", || gw.router.calls() == 0).await;
    let mut late = client.resume(&after_progress).await;
    assert_eq!(late.next().await.unwrap()["params"]["progress"], 2);
    let answer = late.next().await.unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(2), &json!("at last"))
    );
    assert_eq!(late.next().await, None);
    // The very last id leaves nothing to send, and that is said by the end of the stream.
    let last = late.last_id.clone().unwrap();
    assert_eq!(client.resume(&last).await.next().await, None);
    // It ran once.
    assert_eq!(hb.count("tools/call"), 1);
}

#[tokio::test]
async fn resuming_one_stream_brings_nothing_of_another() {
    let gates = [Gate::new(), Gate::new()];
    let held = gates.clone();
    let (script, standing) = Standing::on(echoing());
    let hb = script.on("tools/call", move |seen| {
        let who = arguments(seen)["who"].as_u64().unwrap();
        Reply::events()
            .message(seen.progress(who))
            .gate(&held[who as usize])
            .message(seen.progress(10 + who))
            .message(seen.result(text(who.to_string())))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{QUICK}",
        hb.url()
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let first = call_and_cut(
        &client,
        gw.address,
        &call(1, "one__echo", json!({"who": 0})),
        "\"progress\":0}}\n\n",
    )
    .await;
    let second = call_and_cut(
        &client,
        gw.address,
        &call(2, "one__echo", json!({"who": 1})),
        "\"progress\":1}}\n\n",
    )
    .await;
    let session = hb
        .seen()
        .iter()
        .find(|s| s.method() == "tools/call")
        .unwrap()
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    standing.say(&session, &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "standing"}}));
    gates[1].open();
    gates[0].open();
    until("both calls are over", || gw.router.calls() == 0).await;
    for (id, who) in [(first, 0u64), (second, 1)] {
        let mut stream = client.resume(&id).await;
        assert_eq!(stream.next().await.unwrap()["params"]["progress"], 10 + who);
        let answer = stream.next().await.unwrap();
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&json!(1 + who), &json!(who.to_string()))
        );
        assert_eq!(stream.next().await, None);
    }
    assert_eq!(
        client.listen().await.next().await.unwrap()["params"]["data"],
        "standing"
    );
}

#[tokio::test]
async fn the_standing_stream_goes_on_where_it_broke() {
    let (script, standing) = Standing::on(echoing());
    let hb = script.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{QUICK}",
        hb.url()
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    client.text("one__echo", json!({})).await;
    let session = hb
        .seen()
        .iter()
        .find(|s| s.method() == "tools/call")
        .unwrap()
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    let say = |n: u64| {
        standing.say(&session, &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": n}}))
    };
    let mut stream = client.listen().await;
    (1..=6).for_each(say);
    let mut ids = Vec::new();
    for n in 1..=6 {
        assert_eq!(stream.next().await.unwrap()["params"]["data"], n);
        ids.push(stream.last_id.clone().unwrap());
    }
    drop(stream);
    (7..=8).for_each(say);
    // As if only three had arrived.
    let mut again = client.resume(&ids[2]).await;
    for n in 4..=8 {
        assert_eq!(again.next().await.unwrap()["params"]["data"], n);
    }
    say(9);
    assert_eq!(again.next().await.unwrap()["params"]["data"], 9);
}

#[tokio::test]
async fn an_unknown_event_is_refused_and_not_answered_with_something_else() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = echoing().on("tools/call", move |seen| {
        Reply::events()
            .message(seen.progress(1))
            .gate(&held)
            .message(seen.result(text("x")))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{QUICK}",
        hb.url()
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let known = call_and_cut(
        &client,
        gw.address,
        &call(1, "one__echo", json!({})),
        "\"progress\":1}}\n\n",
    )
    .await;
    for id in [
        "99-1",
        "0-999",
        "nonsense",
        "1",
        "1-",
        "-1",
        "0-18446744073709551615",
        "18446744073709551616-1",
        "\u{fc}-1",
    ] {
        let response = client.send(Method::GET, &[("last-event-id", id)], "").await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{id}");
        assert!(
            response.json().await["error"]["message"]
                .as_str()
                .unwrap()
                .contains("Last-Event-ID")
        );
    }
    // Another session has no such stream, whoever asks.
    let other = gw.client("/mcp").connected().await;
    let response = other
        .send(Method::GET, &[("last-event-id", &known)], "")
        .await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    gate.open();
    assert_eq!(client.resume(&known).await.next().await.unwrap()["id"], 1);
}

#[tokio::test]
async fn a_place_that_is_no_longer_kept_is_refused() {
    let hb = echoing().on("tools/call", |seen| {
        (0..40)
            .fold(Reply::events(), |reply, n| reply.message(seen.progress(n)))
            .message(seen.result(text("x")))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\nstreams: {{ replay: {{ events: 8 }} }}\n",
        hb.url()
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let mut stream = client
        .send(Method::POST, &[], call(1, "one__echo", json!({})))
        .await
        .events();
    let mut ids = Vec::new();
    while let Some(message) = stream.next().await {
        ids.push((stream.last_id.clone().unwrap(), message));
    }
    assert_eq!(ids.len(), 41);
    let refused = client
        .send(Method::GET, &[("last-event-id", &ids[3].0)], "")
        .await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let mut again = client.resume(&ids[35].0).await;
    for (_, message) in &ids[36..] {
        assert_eq!(&again.next().await.unwrap(), message);
    }
}

#[tokio::test]
async fn with_no_replay_streams_still_carry_everything_live() {
    let hb = echoing().on("tools/call", |seen| {
        let large = "x".repeat(3 << 20);
        (0..40).fold(Reply::events(), |reply, n| reply.message(seen.progress(n))).message(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": large}})).message(seen.result(text("x")))
    });
    let hb = hb.start().await;
    for replay in ["{ events: 0 }", "{ events: 1000 }"] {
        let gw = gateway(&format!(
            "servers: {{ one: {{ url: {:?} }} }}\nstreams: {{ silence: 50ms, replay: {replay} }}\n",
            hb.url()
        ))
        .await;
        let client = gw.client("/mcp").connected().await;
        let mut stream = client
            .send(Method::POST, &[], call(1, "one__echo", json!({})))
            .await
            .events();
        for n in 0..40 {
            assert_eq!(
                stream.next().await.unwrap()["params"]["progress"],
                n,
                "{replay}"
            );
        }
        // One message larger than all that is kept.
        assert_eq!(
            stream.next().await.unwrap()["params"]["data"]
                .as_str()
                .map(str::len),
            Some(3 << 20),
            "{replay}"
        );
        assert_eq!(stream.next().await.unwrap()["id"], 1);
        assert_eq!(stream.next().await, None);
    }
}

#[tokio::test]
async fn what_was_answered_is_not_kept_beyond_the_bounds_of_its_session() {
    let hb = echoing().on("tools/call", |seen| {
        Reply::events()
            .message(seen.progress(1))
            .message(seen.result(text("x".repeat(200 << 10))))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    let mut ids = Vec::new();
    for n in 0..30 {
        let mut stream = client
            .send(Method::POST, &[], call(n, "one__echo", json!({})))
            .await
            .events();
        stream.next().await.unwrap();
        ids.push(stream.last_id.clone().unwrap());
        stream.next().await.unwrap();
    }
    let kept = gw.router.sessions.all()[0].streams.kept();
    assert!(kept <= 2 << 20, "{kept} bytes");
    // The newest can still be had.
    assert_eq!(
        client.resume(&ids[29]).await.next().await.unwrap()["id"],
        29
    );
    let gone = client
        .send(Method::GET, &[("last-event-id", &ids[0])], "")
        .await;
    assert_eq!(gone.status, StatusCode::BAD_REQUEST);
}
