//! What happens before a client has opened its stream: nothing is lost, nothing grows without bound.

use crate::support::{Standing, echoing, gateway, hb::Hb, listing, sb, text};
use http::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;

fn log(data: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": data}})
}

fn session_of(hb: &Hb) -> String {
    let seen = hb.seen();
    let call = seen
        .iter()
        .rev()
        .find(|s| s.method() == "tools/call")
        .expect("a call");
    call.header("mcp-session-id").expect("a session").to_owned()
}

#[tokio::test]
async fn a_session_is_known_before_its_id_leaves() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    for _ in 0..100 {
        let mut client = gw.client("/mcp");
        let response = client.post(&initialize).await;
        // Before the body is read, and before `initialized`.
        client.session = Some(
            response.headers["mcp-session-id"]
                .to_str()
                .unwrap()
                .to_owned(),
        );
        let get = client.send(http::Method::GET, &[], "").await;
        assert_eq!(get.status, StatusCode::OK);
        assert!(get.is_stream());
    }
}

#[tokio::test]
async fn what_was_said_before_the_first_get_comes_with_it_in_order() {
    let (script, standing) = Standing::on(echoing());
    let hb = script.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }}, two: {} }}\n",
        hb.url(),
        sb(&[], "")
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    client.text("one__echo", json!({})).await;
    let session = session_of(&hb);
    for n in 0..50 {
        standing.say(&session, &log(json!(n)));
    }
    for _ in 0..20 {
        standing.say(
            &session,
            &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
        );
    }
    standing.say(&session, &log(json!("last")));
    crate::support::until("all of it arrived", || {
        gw.router.sessions.all()[0].streams.standing.events() >= 52
    })
    .await;
    let mut stream = client.listen().await;
    for n in 0..50 {
        assert_eq!(stream.next().await.unwrap()["params"]["data"], n);
    }
    // Twenty announcements of one kind are one.
    assert_eq!(
        stream.next().await.unwrap()["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(stream.next().await.unwrap()["params"]["data"], "last");
    assert!(stream.is_silent_for(Duration::from_millis(50)).await);
}

#[tokio::test]
async fn what_comes_during_a_call_goes_on_its_stream_without_any_get() {
    let gw = gateway(&format!("servers: {{ two: {} }}\n", sb(&[], ""))).await;
    let client = gw.client("/mcp").connected().await;
    let note =
        json!({"method": "notifications/message", "params": {"level": "error", "data": "hello"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "two__notify", "arguments": note}});
    let mut stream = client.post(&call).await.events();
    assert_eq!(stream.next().await.unwrap()["params"]["data"], "hello");
    assert_eq!(stream.next().await.unwrap()["id"], 1);
}

#[tokio::test]
async fn a_flood_that_nobody_fetches_is_bounded_and_the_newest_is_kept() {
    let (script, standing) = Standing::on(echoing());
    let hb = script.start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    client.text("one__echo", json!({})).await;
    let session = session_of(&hb);
    let filling = "x".repeat(10 << 10);
    for n in 0..3000 {
        standing.say(&session, &log(json!([n, filling])));
    }
    standing.say(&session, &log(json!(["end"])));
    // The answer to a question after it tells that all of it was read.
    standing.say(
        &session,
        &json!({"jsonrpc": "2.0", "id": "read", "method": "ping"}),
    );
    hb.wait_for(|seen| seen.method() == "response" && seen.id() == "read")
        .await;
    let kept = gw.router.sessions.all()[0].streams.kept();
    assert!(kept <= 2 << 20, "{kept} bytes are kept");
    let mut stream = client.listen().await;
    let mut last = -1;
    loop {
        let message = stream.next().await.unwrap();
        let Some(n) = message["params"]["data"][0].as_i64() else {
            break;
        };
        assert!(n > last, "in order");
        last = n;
    }
    assert_eq!(last, 2999);
}

#[tokio::test]
async fn what_a_modern_server_list_says_has_no_promise_of_announcements_for_a_stateless_client() {
    let hb = crate::support::modern_echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let discovered = gw
        .client("/mcp")
        .modern("server/discover", json!({}))
        .await
        .json()
        .await;
    let capabilities = &discovered["result"]["capabilities"];
    assert!(capabilities["tools"].is_object(), "{discovered}");
    assert_eq!(
        capabilities["tools"].get("listChanged"),
        None,
        "{discovered}"
    );
}

#[tokio::test]
async fn a_tool_added_before_the_stream_is_open_is_announced_on_it() {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };
    let more = Arc::new(AtomicBool::new(false));
    let now = more.clone();
    let (script, standing) = Standing::on(echoing());
    let hb = script.on("tools/list", move |seen| {
        let names: &[&str] = if now.load(Ordering::SeqCst) {
            &["echo", "new"]
        } else {
            &["echo"]
        };
        crate::support::hb::Reply::json(seen.result(listing(names)))
    });
    let hb = hb
        .on("tools/call", |seen| {
            crate::support::hb::Reply::json(seen.result(text("x")))
        })
        .start()
        .await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(client.tools().await, ["one__echo"]);
    client.text("one__echo", json!({})).await;
    more.store(true, Ordering::SeqCst);
    standing.say_to_all(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let mut stream = client.listen().await;
    stream.next_of("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, ["one__echo", "one__new"]);
}
