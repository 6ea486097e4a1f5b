//! Notifications and responses: 202 with nothing in it, both ways.

use crate::support::{
    echoing, gateway,
    hb::{Hb, Reply},
    sb,
};
use http::StatusCode;
use serde_json::{Value, json};

#[tokio::test]
async fn what_needs_no_answer_gets_202_and_an_empty_body() {
    let hb = echoing().start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }}, two: {} }}\n",
        hb.url(),
        sb(&[], "")
    ))
    .await;
    let messages = [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never was"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 1}}),
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "backwards"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/vendor/thing", "params": {"a": 1}}),
        json!({"jsonrpc": "2.0", "id": 77, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "x", "result": {"a": null}}),
        json!({"jsonrpc": "2.0", "id": 78, "error": {"code": -1, "message": "no"}}),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -1, "message": "no"}}),
    ];
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        for path in ["/mcp", "/mcp/one", "/mcp/two"] {
            let client = gw.client(path).revision(revision).connected().await;
            for message in &messages {
                let response = client.post(message).await;
                assert_eq!(response.status, StatusCode::ACCEPTED, "{message}");
                assert!(
                    !response.headers.contains_key("content-type"),
                    "{:?}",
                    response.headers
                );
                assert!(!response.headers.contains_key("transfer-encoding"));
                assert_eq!(response.bytes().await.len(), 0);
            }
            assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
        }
    }
    // A modern client has no responses, but its notifications are taken.
    let client = gw.client("/mcp");
    let modern = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "notifications/cancelled"),
    ];
    let note =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
            .to_string();
    let response = client.send(http::Method::POST, &modern, note).await;
    assert_eq!(
        (response.status, response.bytes().await.len()),
        (StatusCode::ACCEPTED, 0)
    );
}

type Odd = fn() -> Reply;

#[tokio::test]
async fn whatever_a_server_answers_to_initialized_the_gateway_goes_on() {
    let odd: [(&str, Odd); 9] = [
        ("200 and nothing", || Reply::status(200)),
        ("204", || Reply::status(204)),
        ("202 and text", || {
            Reply::status(202)
                .header("content-type", "text/plain")
                .raw("Accepted")
        }),
        ("200 and null", || {
            Reply::status(200)
                .header("content-type", "application/json")
                .raw("null")
        }),
        ("200 and a message to nobody", || {
            Reply::json(json!({"jsonrpc": "2.0", "id": null, "result": {}}))
        }),
        ("202 and an empty object", || {
            Reply::json(json!({})).with_status(202)
        }),
        ("200 and a page", || {
            Reply::status(200)
                .header("content-type", "text/html")
                .raw("<html>")
        }),
        ("an empty stream", Reply::events),
        ("a stream with a comment", || {
            Reply::events().raw(": hello\n\n")
        }),
    ];
    for (what, reply) in odd {
        let hb = echoing()
            .on("notifications/initialized", move |_| reply())
            .start()
            .await;
        let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
        let client = gw.client("/mcp").connected().await;
        assert_eq!(client.tools().await, ["one__echo"], "{what}");
        assert_eq!(
            client.text("one__echo", json!({"a": 1})).await,
            r#"{"a":1}"#,
            "{what}"
        );
    }
}

#[tokio::test]
async fn whatever_a_server_answers_to_a_clients_notification_its_calls_go_on() {
    let odd: [Odd; 4] = [
        || Reply::status(200),
        || {
            Reply::status(200)
                .header("content-type", "application/json")
                .raw("null")
        },
        || {
            Reply::json(
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32601, "message": "no"}}),
            )
            .with_status(400)
        },
        || Reply::status(500),
    ];
    for reply in odd {
        let hb = echoing()
            .on("notifications/roots/list_changed", move |_| reply())
            .start()
            .await;
        let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
        let client = gw.client("/mcp").connected().await;
        client.text("one__echo", json!({})).await;
        assert_eq!(
            client
                .notify("notifications/roots/list_changed", json!({}))
                .await
                .status,
            StatusCode::ACCEPTED
        );
        hb.wait_for(|seen| seen.method() == "notifications/roots/list_changed")
            .await;
        assert_eq!(
            client.text("one__echo", json!({"b": 2})).await,
            r#"{"b":2}"#
        );
    }
}

#[tokio::test]
async fn a_request_answered_with_nothing_gets_an_error_and_the_next_one_works() {
    let odd: [(&str, Odd); 5] = [
        ("200 and nothing", || Reply::status(200)),
        ("202", || Reply::status(202)),
        ("200 and null", || {
            Reply::status(200)
                .header("content-type", "application/json")
                .raw("null")
        }),
        ("an empty stream", Reply::events),
        ("a page", || {
            Reply::status(200)
                .header("content-type", "text/html")
                .raw("<html>")
        }),
    ];
    for (what, reply) in odd {
        let hb: Hb = echoing()
            .on("tools/call", move |seen| {
                match seen.json()["params"]["arguments"]["odd"] == true {
                    true => reply(),
                    false => Reply::json(
                        seen.result(json!({"content": [{"type": "text", "text": "good"}]})),
                    ),
                }
            })
            .start()
            .await;
        let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
        let client = gw.client("/mcp").connected().await;
        let answer: Value = client.call("one__echo", json!({"odd": true})).await;
        assert_eq!(answer["error"]["code"], -31001, "{what}: {answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("`one`"),
            "{what}: {answer}"
        );
        assert_eq!(client.text("one__echo", json!({})).await, "good", "{what}");
    }
}
