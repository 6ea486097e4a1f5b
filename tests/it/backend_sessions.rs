//! A backend session that its server has lost: opened anew once, for everyone who waits, and nothing runs twice.

use crate::support::{
    TestGateway, arguments, echoing, gateway,
    hb::{Hb, Reply},
    text, until,
};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

async fn over(servers: &[(&str, &Hb)]) -> TestGateway {
    let entries: Vec<String> = servers
        .iter()
        .map(|(name, hb)| format!("{name}: {{ url: {:?} }}", hb.url()))
        .collect();
    gateway(&format!("servers: {{ {} }}\n", entries.join(", "))).await
}

#[tokio::test]
async fn a_restarted_server_is_spoken_to_again_with_one_new_initialize() {
    let (hb, other) = (echoing().start().await, echoing().start().await);
    let gw = over(&[("one", &hb), ("two", &other)]).await;
    for path in ["/mcp", "/mcp/one"] {
        let tool = if path == "/mcp" { "one__echo" } else { "echo" };
        let client = gw.client(path).connected().await;
        assert_eq!(client.text(tool, json!({"n": 1})).await, r#"{"n":1}"#);
        let (before, untouched) = (hb.count("initialize"), other.count("initialize"));
        hb.forget_sessions();
        assert_eq!(client.text(tool, json!({"n": 2})).await, r#"{"n":2}"#);
        assert_eq!(hb.count("initialize"), before + 1, "{path}");
        assert_eq!(client.text(tool, json!({"n": 3})).await, r#"{"n":3}"#);
        assert_eq!(hb.count("initialize"), before + 1, "{path}");
        assert_eq!(other.count("initialize"), untouched);
        client.delete().await;
    }
}

#[tokio::test]
async fn many_calls_at_a_time_share_one_new_session() {
    let hb = echoing().start().await;
    let gw = over(&[("one", &hb)]).await;
    let client = gw.client("/mcp").connected().await;
    client.text("one__echo", json!({})).await;
    let (opened, ran) = (hb.count("initialize"), hb.count("tools/call"));
    hb.forget_sessions();
    let calls = (0..20).map(|n| client.call("one__echo", json!({"n": n})));
    for (n, answer) in futures_util::future::join_all(calls)
        .await
        .iter()
        .enumerate()
    {
        assert_eq!(
            answer["result"]["content"][0]["text"],
            format!(r#"{{"n":{n}}}"#),
            "{answer}"
        );
    }
    assert_eq!(hb.count("initialize"), opened + 1);
    // Each was refused at most once and ran once.
    assert!(hb.count("tools/call") <= ran + 40);
}

#[tokio::test]
async fn the_client_keeps_its_own_session_while_the_servers_comes_and_goes() {
    let hb = echoing().start().await;
    let gw = over(&[("one", &hb)]).await;
    let client = gw.client("/mcp").connected().await;
    for n in 0..5 {
        hb.forget_sessions();
        assert_eq!(
            client.text("one__echo", json!({"n": n})).await,
            format!(r#"{{"n":{n}}}"#)
        );
        assert_eq!(client.tools().await, ["one__echo"]);
    }
    assert_eq!(gw.router.sessions.len(), 1);
}

#[tokio::test]
async fn lists_are_whole_after_the_session_behind_them_expired() {
    let hb = echoing()
        .on("prompts/list", |seen| Reply::json(seen.result(json!({"prompts": [{"name": "ask"}]}))))
        .on("initialize", |seen| {
            let asked = seen.json()["params"]["protocolVersion"].clone();
            Reply::json(seen.result(json!({"protocolVersion": asked, "capabilities": {"tools": {"listChanged": true}, "prompts": {}}, "serverInfo": {"name": "hb", "version": "1"}})))
        });
    let hb = hb.start().await;
    let gw = over(&[("one", &hb)]).await;
    for path in ["/mcp", "/mcp/one"] {
        let client = gw.client(path).connected().await;
        let tools = client.tools().await;
        assert_eq!(tools.len(), 1);
        hb.forget_sessions();
        assert_eq!(client.tools().await, tools);
        assert_eq!(
            client.names("prompts/list", "prompts", "name").await.len(),
            1
        );
    }
}

#[tokio::test]
async fn a_server_error_opens_no_session_and_is_not_tried_again() {
    for status in [500, 502, 503, 400] {
        let hb = echoing()
            .on("tools/call", move |_| Reply::status(status))
            .start()
            .await;
        let gw = over(&[("one", &hb)]).await;
        let client = gw.client("/mcp").connected().await;
        client.tools().await;
        // Its session opens with the first call.
        let first = client.call("one__echo", json!({})).await;
        assert_eq!(first["error"]["code"], -31001, "{status}: {first}");
        let opened = hb.count("initialize");
        for _ in 0..5 {
            let answer = client.call("one__echo", json!({})).await;
            assert_eq!(answer["error"]["data"]["server"], "one", "{answer}");
        }
        assert_eq!(hb.count("initialize"), opened, "{status}");
        assert_eq!(hb.count("tools/call"), 6, "{status}: nothing is sent twice");
    }
}

#[tokio::test]
async fn a_server_that_loses_every_session_at_once_gets_two_tries_and_then_an_error() {
    let lost = Arc::new(AtomicBool::new(false));
    let now = lost.clone();
    let hb = echoing().on("tools/call", move |seen| match now.load(Ordering::SeqCst) {
        true => Reply::json(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}})).with_status(404),
        false => Reply::json(seen.result(text("fine"))),
    });
    let hb = hb.start().await;
    let gw = over(&[("one", &hb)]).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(client.text("one__echo", json!({})).await, "fine");
    lost.store(true, Ordering::SeqCst);
    let (opened, called) = (hb.count("initialize"), hb.count("tools/call"));
    let answer = client.call("one__echo", json!({})).await;
    assert_eq!(answer["error"]["code"], -31001);
    assert_eq!(answer["error"]["data"]["server"], "one");
    assert!(hb.count("initialize") <= opened + 2, "{:?}", hb.methods());
    assert!(hb.count("tools/call") <= called + 2, "{:?}", hb.methods());
    lost.store(false, Ordering::SeqCst);
    assert_eq!(client.text("one__echo", json!({})).await, "fine");
}

#[tokio::test]
async fn a_new_session_gets_level_and_subscriptions_again_before_any_call() {
    let hb = echoing()
        .on("initialize", |seen| {
            let asked = seen.json()["params"]["protocolVersion"].clone();
            Reply::json(seen.result(json!({"protocolVersion": asked, "capabilities": {"tools": {}, "logging": {}, "resources": {"subscribe": true}}, "serverInfo": {"name": "hb", "version": "1"}})))
        })
        .on("resources/list", |seen| Reply::json(seen.result(json!({"resources": [{"uri": "file:///a", "name": "a"}]}))))
        .on("resources/templates/list", |seen| Reply::json(seen.result(json!({"resourceTemplates": []}))))
        .on("logging/setLevel", |seen| Reply::json(seen.result(json!({}))))
        .on("resources/subscribe", |seen| Reply::json(seen.result(json!({}))));
    let hb = hb.start().await;
    let gw = over(&[("one", &hb)]).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(
        client
            .request("logging/setLevel", json!({"level": "warning"}))
            .await["result"],
        json!({})
    );
    assert_eq!(
        client
            .request("resources/subscribe", json!({"uri": "file:///a"}))
            .await["result"],
        json!({})
    );
    client.text("one__echo", json!({})).await;
    hb.forget_sessions();
    let before = hb.seen().len();
    client.text("one__echo", json!({"again": true})).await;
    let after = hb.seen().split_off(before);
    let place = |wanted: &dyn Fn(&crate::support::hb::Seen) -> bool| {
        after
            .iter()
            .position(wanted)
            .unwrap_or_else(|| panic!("{:?}", hb.methods()))
    };
    let call = after
        .iter()
        .rposition(|s| s.method() == "tools/call")
        .unwrap();
    let session = after[call].header("mcp-session-id").map(str::to_owned);
    let same =
        |s: &crate::support::hb::Seen| s.header("mcp-session-id").map(str::to_owned) == session;
    assert!(
        place(&|s| s.method() == "logging/setLevel"
            && same(s)
            && s.json()["params"]["level"] == "warning")
            < call
    );
    assert!(
        place(&|s| s.method() == "resources/subscribe"
            && same(s)
            && s.json()["params"]["uri"] == "file:///a")
            < call
    );
    assert!(place(&|s| s.method() == "notifications/initialized" && same(s)) < call);
}

#[tokio::test]
async fn a_call_that_may_have_run_is_not_sent_again() {
    let hb = echoing().on("tools/call", |seen| match arguments(seen)["cut"] == true {
        true => Reply::events().message(seen.progress(1)).cut_short(),
        false => Reply::json(seen.result(text("fine"))),
    });
    let hb = hb.start().await;
    let gw = over(&[("one", &hb)]).await;
    let client = gw.client("/mcp").connected().await;
    let answer = client.call("one__echo", json!({"cut": true})).await;
    assert_eq!(
        (
            &answer["error"]["code"],
            &answer["error"]["data"]["retrySafe"]
        ),
        (&json!(-31001), &json!(false)),
        "{answer}"
    );
    assert_eq!(hb.count("tools/call"), 1);
    assert_eq!(client.text("one__echo", json!({})).await, "fine");
}

#[tokio::test]
async fn modern_callers_find_a_lost_backend_session_replaced_too() {
    let hb = echoing().start().await;
    let gw = over(&[("one", &hb)]).await;
    let client = gw.client("/mcp");
    let call = async || {
        client
            .modern(
                "tools/call",
                json!({"name": "one__echo", "arguments": {"n": 1}}),
            )
            .await
            .json()
            .await
    };
    assert_eq!(call().await["result"]["content"][0]["text"], r#"{"n":1}"#);
    let opened = hb.count("initialize");
    hb.forget_sessions();
    let answers: Vec<Value> = futures_util::future::join_all((0..10).map(|_| call())).await;
    assert!(
        answers
            .iter()
            .all(|a| a["result"]["content"][0]["text"] == r#"{"n":1}"#),
        "{answers:?}"
    );
    assert_eq!(hb.count("initialize"), opened + 1);
}

#[tokio::test]
async fn a_server_that_is_away_and_comes_back_serves_the_same_client_sessions() {
    let away = Arc::new(AtomicBool::new(false));
    let gone = away.clone();
    let hb = echoing().on("tools/call", move |seen| {
        match gone.load(Ordering::SeqCst) {
            true => Reply::status(503).cut_head(),
            false => Reply::json(seen.result(text("fine"))),
        }
    });
    let hb = hb.start().await;
    let gw = over(&[("one", &hb)]).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(client.text("one__echo", json!({})).await, "fine");
    away.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        assert_eq!(
            client.call("one__echo", json!({})).await["error"]["code"],
            -31001
        );
    }
    away.store(false, Ordering::SeqCst);
    hb.forget_sessions();
    assert_eq!(client.text("one__echo", json!({})).await, "fine");
    until("nothing runs any more", || gw.router.calls() == 0).await;
}
