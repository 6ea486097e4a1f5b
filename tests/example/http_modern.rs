//! 2026-07-28 over HTTP: headers that repeat the body, statuses, cancellation, subscriptions.

use drawbridge::example::{Spoken, Which};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::http::refused;
use crate::peer::{Events, META_CAPABILITIES, META_VERSION, Site, json_body, modern};

fn modern_call(id: u64, tool: &str, arguments: Value) -> Value {
    modern(
        id,
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    )
}

#[tokio::test]
async fn the_header_and_the_body_of_a_modern_request_agree() {
    let site = Site::start(Which::Calendar, Spoken::All).await;
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "createCalendarEvent");
    let event = json!({ "title": "Dinner", "start": "20:00", "calendar": "Büro", "minutes": 90 });
    let message = modern_call(1, "createCalendarEvent", event);
    let calendar = ("mcp-param-calendar", "=?base64?QsO8cm8=?=");
    let minutes = ("mcp-param-minutes", "90.0");
    let complete = vec![version, method, name, calendar, minutes];
    assert_eq!(
        site.post(&complete, &message).await.status(),
        StatusCode::OK
    );

    for missing in 0..complete.len() {
        let mut headers = complete.clone();
        headers.remove(missing);
        refused(
            site.post(&headers, &message).await,
            StatusCode::BAD_REQUEST,
            -32020,
        )
        .await;
    }
    let wrong = [
        ("mcp-method", "tools/list"),
        ("mcp-name", "sendEmail"),
        ("mcp-param-minutes", "91"),
    ];
    for (place, header) in [1, 2, 4].into_iter().zip(wrong) {
        let mut headers = complete.clone();
        headers[place] = header;
        refused(
            site.post(&headers, &message).await,
            StatusCode::BAD_REQUEST,
            -32020,
        )
        .await;
    }
}

#[tokio::test]
async fn a_modern_request_that_cannot_be_served_says_why() {
    let site = Site::start(Which::Travel, Spoken::All).await;
    let version = ("mcp-protocol-version", "2026-07-28");
    let listing = ("mcp-method", "tools/list");

    let mut newer = modern(1, "tools/list", json!({}));
    newer["params"]["_meta"][META_VERSION] = json!("2099-01-01");
    let future = ("mcp-protocol-version", "2099-01-01");
    refused(
        site.post(&[future, listing], &newer).await,
        StatusCode::BAD_REQUEST,
        -32022,
    )
    .await;
    refused(
        site.post(&[version, listing], &newer).await,
        StatusCode::BAD_REQUEST,
        -32020,
    )
    .await;

    let mut bare = modern(1, "tools/list", json!({}));
    bare["params"]["_meta"]
        .as_object_mut()
        .unwrap()
        .remove(META_CAPABILITIES);
    refused(
        site.post_modern(&bare).await,
        StatusCode::BAD_REQUEST,
        -32602,
    )
    .await;
    let ping = modern(1, "ping", json!({}));
    refused(site.post_modern(&ping).await, StatusCode::NOT_FOUND, -32601).await;
    let unknown = modern_call(1, "nothing", json!({}));
    refused(site.post_modern(&unknown).await, StatusCode::OK, -32602).await;
    let trip = json!({ "city": "Paris", "checkIn": "2024-06-15", "nights": 1 });
    let mut silent = modern_call(1, "bookHotel", trip);
    silent["params"]["_meta"][META_CAPABILITIES] = json!({});
    refused(
        site.post_modern(&silent).await,
        StatusCode::BAD_REQUEST,
        -32021,
    )
    .await;

    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    assert_eq!(
        site.post(&[version], &answer).await.status(),
        StatusCode::BAD_REQUEST
    );
    for method in [Method::GET, Method::DELETE] {
        let response = site.send(method, "/mcp", &[version], "").await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn closing_the_response_cancels_a_modern_request() {
    let site = Site::start(Which::Weather, Spoken::All).await;
    let mut waiting = modern_call(1, "wait", json!({ "seconds": 3600, "steps": 1 }));
    waiting["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let activity = async || {
        let uri = json!({ "uri": "weather://activity" });
        let body = json_body(site.post_modern(&modern(2, "resources/read", uri)).await).await;
        body["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    {
        let response = site.post_modern(&waiting);
        tokio::pin!(response);
        loop {
            tokio::select! {
                _ = &mut response => panic!("it waits for an hour"),
                seen = activity() => if seen.contains("\"running\":1") { break },
            }
        }
    }
    while !activity()
        .await
        .contains("\"running\":0,\"finished\":0,\"cancelled\":1")
    {}
}

#[tokio::test]
async fn subscriptions_are_acknowledged_first_and_end_with_their_stream() {
    let site = Site::start(Which::Weather, Spoken::All).await;
    let uri = "weather://forecast/Paris/2024-06-15";
    let wanted = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let listen = modern("sub", "subscriptions/listen", wanted);
    let mut events = Events::of(site.post_modern(&listen).await);
    let first = events.message().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let advance = json!({ "city": "Paris", "date": "2024-06-15" });
    site.post_modern(&modern_call(1, "advanceForecast", advance))
        .await;
    let news = events.message().await.unwrap();
    assert_eq!(news["params"]["uri"], uri);
    assert_eq!(
        news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "sub"
    );
    drop(site);
    let end = events.message().await.unwrap();
    assert_eq!(
        (&end["id"], &end["result"]["resultType"]),
        (&json!("sub"), &json!("complete"))
    );
}
