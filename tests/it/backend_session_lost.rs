//! K02: a server that lost its sessions behind a living client session.

use crate::support::{
    Client, gateway,
    hb::{Gate, Hb, Reply},
    stock::{Stock, at, servers},
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// How often a server was asked to open a session for a client, the gateway's own ones left out.
fn opened(hb: &Hb) -> usize {
    let of_client = |s: &&crate::support::hb::Seen| {
        s.method() == "initialize" && s.json()["params"]["clientInfo"]["name"] == "test"
    };
    hb.seen().iter().filter(of_client).count()
}

fn is_error(answer: &Value, code: i64) -> bool {
    answer["error"]["code"] == code
}

async fn call(client: &Client) -> String {
    client.text("one__one-tool", json!({})).await
}

#[tokio::test]
async fn a_restarted_server_costs_one_new_session_and_no_call() {
    let hb = Stock::of_all("one").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    call(&client).await;
    assert_eq!(opened(&hb), 1);
    hb.forget_sessions();
    call(&client).await;
    call(&client).await;
    assert_eq!(opened(&hb), 2, "exactly one new session");
    gw.stop().await;
}

#[tokio::test]
async fn calls_that_lose_the_session_together_open_one_new_one_together() {
    let hb = Stock::of_all("one").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    call(&client).await;
    hb.forget_sessions();
    let calls = (0..12).map(|n| {
        let client = &client;
        async move { (n, client.text("one__one-tool", json!({"n": n})).await) }
    });
    for (n, text) in join_all(calls).await {
        let said: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            said["arguments"],
            json!({"n": n}),
            "each call has its own answer"
        );
    }
    assert_eq!(opened(&hb), 2, "{:?}", hb.methods());
    gw.stop().await;
}

#[tokio::test]
async fn every_kind_of_request_survives_the_loss_on_every_endpoint() {
    let hb = Stock::of_all("one").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    for (path, prefix) in [("/mcp", "one__"), ("/mcp/one", "")] {
        let client = gw.client(path).connected().await;
        let requests = [
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            (
                "tools/call",
                json!({"name": format!("{prefix}one-tool"), "arguments": {}}),
            ),
            (
                "prompts/get",
                json!({"name": format!("{prefix}one-prompt")}),
            ),
            ("resources/read", json!({"uri": "one://thing"})),
            ("resources/read", json!({"uri": "one://item/7"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/resource", "uri": "one://item/{id}"}, "argument": {"name": "id", "value": ""}}),
            ),
            ("resources/subscribe", json!({"uri": "one://thing"})),
        ];
        for (method, params) in requests {
            hb.forget_sessions();
            let answer = client.request(method, params).await;
            assert!(answer.get("result").is_some(), "{path} {method}: {answer}");
            for member in ["tools", "prompts", "resources", "resourceTemplates"] {
                if let Some(list) = answer["result"].get(member) {
                    assert_eq!(
                        list.as_array().map(Vec::len),
                        Some(1),
                        "{path} {method}: {answer}"
                    );
                }
            }
            assert!(
                answer["result"].get("_meta").is_none(),
                "nothing is missing: {answer}"
            );
        }
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_modern_client_does_not_notice_that_a_legacy_server_forgot_the_gateway() {
    let hb = Stock::of_all("one").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp");
    for _ in 0..3 {
        let params = json!({"name": "one__one-tool", "arguments": {}});
        let answer = client.modern("tools/call", params).await.json().await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        hb.forget_sessions();
    }
    gw.stop().await;
}

#[tokio::test]
async fn an_error_of_the_server_is_no_lost_session() {
    let broken = Arc::new(AtomicBool::new(true));
    let flag = broken.clone();
    let hb = Stock::of_all("one")
        .legacy()
        .on("tools/call", move |seen| {
            match flag.load(Ordering::SeqCst) {
                true => Reply::status(500),
                false => {
                    Reply::json(seen.result(json!({"content": [{"type": "text", "text": "well"}]})))
                }
            }
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    for _ in 0..3 {
        let answer = client.call("one__one-tool", json!({})).await;
        assert!(is_error(&answer, -31001), "{answer}");
        assert_eq!(answer["error"]["data"]["server"], "one");
        assert_eq!(
            answer["error"]["data"]["retrySafe"], false,
            "it may have run"
        );
    }
    assert_eq!(
        hb.count("tools/call"),
        3,
        "nothing that may have run is sent twice"
    );
    broken.store(false, Ordering::SeqCst);
    assert_eq!(call(&client).await, "well");
    assert_eq!(opened(&hb), 1);
    gw.stop().await;
}

#[tokio::test]
async fn a_server_that_forgets_at_once_gets_no_endless_tries() {
    let hb = Stock::of_all("one")
        .legacy()
        .on("tools/call", |_| Reply::status(404))
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let answer = client.call("one__one-tool", json!({})).await;
    assert!(is_error(&answer, -31001), "{answer}");
    assert_eq!(
        answer["error"]["data"]["retrySafe"], true,
        "it never ran: {answer}"
    );
    assert_eq!(
        hb.count("tools/call"),
        2,
        "once, and once more in a new session"
    );
    // Nothing stays wedged.
    assert_eq!(client.tools().await, ["one__one-tool"]);
    gw.stop().await;
}

#[tokio::test]
async fn the_loss_of_one_server_touches_no_other() {
    let one = Stock::of_all("one").legacy().start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let two = Stock::of_all("two")
        .legacy()
        .on("tools/call", move |seen| {
            Reply::json(seen.result(json!({"content": [{"type": "text", "text": "late"}]})))
                .gate_head(&held)
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    call(&client).await;
    let slow = async {
        let text = client.text("two__two-tool", json!({})).await;
        assert_eq!(text, "late");
    };
    let lost = async {
        two.wait_for(|s| s.method() == "tools/call").await;
        one.forget_sessions();
        call(&client).await;
        gate.open();
    };
    tokio::join!(slow, lost);
    assert_eq!((opened(&one), opened(&two)), (2, 1));
    gw.stop().await;
}

#[tokio::test]
async fn a_new_backend_session_knows_level_and_subscriptions_before_it_is_used() {
    let hb = Stock::of_all("one").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    call(&client).await;
    client
        .request("logging/setLevel", json!({"level": "warning"}))
        .await;
    client
        .request("resources/subscribe", json!({"uri": "one://thing"}))
        .await;
    hb.forget_sessions();
    let before = hb.seen().len();
    call(&client).await;
    let seen = hb.seen();
    let session = seen
        .last()
        .and_then(|s| s.header("mcp-session-id").map(str::to_owned));
    let told: Vec<String> = seen[before..]
        .iter()
        .filter(|s| s.header("mcp-session-id") == session.as_deref() && s.verb == "POST")
        .map(|s| s.method())
        .collect();
    assert_eq!(
        told,
        [
            "notifications/initialized",
            "logging/setLevel",
            "resources/subscribe",
            "tools/call"
        ],
    );
    let subscribed = seen
        .iter()
        .rev()
        .find(|s| s.method() == "resources/subscribe")
        .unwrap();
    assert_eq!(subscribed.json()["params"]["uri"], "one://thing");
    gw.stop().await;
}

#[tokio::test]
async fn what_a_restarted_server_offers_now_is_listed_and_can_be_called() {
    let stock = Stock::of_all("one");
    let hb = stock.legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(client.tools().await, ["one__one-tool"]);
    stock.set("tools", json!(["new-tool"]));
    hb.forget_sessions();
    let text = client.text("one__new-tool", json!({})).await;
    assert!(text.contains("new-tool"), "{text}");
    assert_eq!(client.tools().await, ["one__new-tool"]);
    gw.stop().await;
}

#[tokio::test]
async fn a_refused_connection_fails_the_call_and_nothing_after_it() {
    let down = Arc::new(AtomicUsize::new(0));
    let count = down.clone();
    let hb = Stock::of_all("one")
        .legacy()
        .on("tools/call", move |seen| {
            if count.fetch_add(1, Ordering::SeqCst) == 1 {
                return Reply::status(200).cut_head();
            }
            Reply::json(seen.result(json!({"content": [{"type": "text", "text": "ok"}]})))
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(call(&client).await, "ok");
    let answer = client.call("one__one-tool", json!({})).await;
    assert!(is_error(&answer, -31001), "{answer}");
    assert_eq!(call(&client).await, "ok");
    assert_eq!(opened(&hb), 1);
    gw.stop().await;
}
