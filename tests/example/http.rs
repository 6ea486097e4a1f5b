//! The example servers over HTTP: what is refused and how, sessions and their streams.

use drawbridge::example::{Revision, Spoken, Which};
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::peer::{Events, Site, initialize, json_body, modern, request};

pub async fn refused(response: Response<Incoming>, status: StatusCode, code: i64) {
    assert_eq!(response.status(), status);
    assert_eq!(json_body(response).await["error"]["code"], code);
}

/// A session in that revision.
async fn enter(site: &Site, revision: &str) -> String {
    let response = site.post(&[], &initialize(revision)).await;
    assert_eq!(response.status(), StatusCode::OK);
    response.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(
        id,
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    )
}

#[tokio::test]
async fn only_this_machine_may_call() {
    let site = Site::start(Which::Travel, Spoken::All).await;
    for origin in [
        "https://example.com",
        "null",
        "http://localhost.example.com",
    ] {
        let response = site
            .post(&[("origin", origin)], &initialize("2025-11-25"))
            .await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{origin}");
    }
    for origin in [
        "http://localhost:3000",
        "http://127.0.0.1",
        "http://[::1]:8080",
    ] {
        let response = site
            .post(&[("origin", origin)], &initialize("2025-11-25"))
            .await;
        assert_eq!(response.status(), StatusCode::OK, "{origin}");
    }
    let host = ("host", "example.com");
    let response = site.post(&[host], &initialize("2025-11-25")).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let response = site.send(Method::GET, "/sse", &[host], "").await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_post_must_be_json_and_take_both_forms_of_answer() {
    let site = Site::start(Which::Travel, Spoken::All).await;
    let both = ("accept", "application/json, text/event-stream");
    let json = ("content-type", "application/json; charset=utf-8");
    let hello = initialize("2025-11-25").to_string();
    let cases = [
        (
            vec![json, ("accept", "application/json")],
            hello.as_str(),
            406,
        ),
        (vec![both, ("content-type", "text/plain")], &hello, 415),
        (vec![both, json], "{", 400),
        (vec![both, json], "[]", 400),
        (vec![both, json], "{}", 400),
        (vec![json, ("accept", "*/*")], &hello, 200),
    ];
    for (headers, body, status) in cases {
        let response = site.send(Method::POST, "/mcp", &headers, body).await;
        assert_eq!(response.status(), status, "{headers:?} {body}");
    }
    let big = format!("\"{}\"", "x".repeat(5_000_000));
    let response = site.send(Method::POST, "/mcp", &[both, json], &big).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_session_is_needed_and_ends_with_delete() {
    let site = Site::start(Which::Travel, Spoken::All).await;
    let list = request(1, "tools/list", json!({}));
    refused(site.post(&[], &list).await, StatusCode::BAD_REQUEST, -32600).await;
    let unknown = [("mcp-session-id", "nobody")];
    refused(
        site.post(&unknown, &list).await,
        StatusCode::NOT_FOUND,
        -32600,
    )
    .await;

    let id = enter(&site, "2025-06-18").await;
    let session = [
        ("mcp-session-id", id.as_str()),
        ("mcp-protocol-version", "2025-06-18"),
    ];
    assert_eq!(site.post(&session, &list).await.status(), StatusCode::OK);
    let other = [
        ("mcp-session-id", id.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    refused(
        site.post(&other, &list).await,
        StatusCode::BAD_REQUEST,
        -32600,
    )
    .await;

    let none = site.send(Method::DELETE, "/mcp", &[], "").await;
    assert_eq!(none.status(), StatusCode::BAD_REQUEST);
    let ended = site.send(Method::DELETE, "/mcp", &session, "").await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    refused(
        site.post(&session, &list).await,
        StatusCode::NOT_FOUND,
        -32600,
    )
    .await;
    let again = site.send(Method::DELETE, "/mcp", &session, "").await;
    assert_eq!(again.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn sessions_have_bookings_and_streams_of_their_own() {
    let site = Site::start(Which::Calendar, Spoken::All).await;
    let (one, two) = (
        enter(&site, "2025-11-25").await,
        enter(&site, "2025-11-25").await,
    );
    let (one, two) = (
        [("mcp-session-id", one.as_str())],
        [("mcp-session-id", two.as_str())],
    );
    let trip = json!({ "title": "Flight", "start": "2024-06-15", "trip": "paris" });
    // What comes before the stream is kept for it.
    site.post(&one, &call(1, "createCalendarEvent", trip)).await;
    let accept = ("accept", "text/event-stream");
    let mut stream = Events::of(site.send(Method::GET, "/mcp", &[one[0], accept], "").await);
    let news = stream.message().await.unwrap();
    assert_eq!(news["method"], "notifications/tools/list_changed");

    let count = async |session| {
        let answer = site
            .post(session, &request(2, "tools/list", json!({})))
            .await;
        json_body(answer).await["result"]["tools"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((count(&one).await, count(&two).await), (4, 3));
    site.send(Method::DELETE, "/mcp", &one, "").await;
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn a_second_stream_takes_the_place_of_the_first() {
    let site = Site::start(Which::Calendar, Spoken::All).await;
    let id = enter(&site, "2025-03-26").await;
    let session = ("mcp-session-id", id.as_str());
    let headers = [session, ("accept", "text/event-stream")];
    let mut first = Events::of(site.send(Method::GET, "/mcp", &headers, "").await);
    let mut second = Events::of(site.send(Method::GET, "/mcp", &headers, "").await);
    assert_eq!(first.message().await, None);
    let trip = json!({ "title": "Flight", "start": "2024-06-15", "trip": "paris" });
    site.post(&[session], &call(1, "createCalendarEvent", trip))
        .await;
    assert!(second.message().await.is_some());
    let response = site
        .send(Method::GET, "/mcp", &[session, ("accept", "text/html")], "")
        .await;
    assert_eq!(response.status(), StatusCode::NOT_ACCEPTABLE);
}

#[tokio::test]
async fn an_answer_is_json_unless_something_comes_before_it() {
    let site = Site::start(Which::Weather, Spoken::All).await;
    let id = enter(&site, "2025-11-25").await;
    let session = [("mcp-session-id", id.as_str())];
    let calm = site
        .post(
            &session,
            &call(1, "checkWeather", json!({ "city": "Paris" })),
        )
        .await;
    assert_eq!(json_body(calm).await["id"], 1);
    let storm = site
        .post(
            &session,
            &call(2, "checkWeather", json!({ "city": "Reykjavík" })),
        )
        .await;
    assert_eq!(storm.headers()["x-accel-buffering"], "no");
    let mut events = Events::of(storm);
    assert_eq!(
        events.message().await.unwrap()["params"]["level"],
        "warning"
    );
    assert_eq!(events.message().await.unwrap()["id"], 2);
    assert_eq!(events.message().await, None);
}

#[tokio::test]
async fn batches_belong_to_2025_03_26() {
    let site = Site::start(Which::Weather, Spoken::All).await;
    let batch = json!([
        request(1, "ping", json!({})),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        call(2, "checkWeather", json!({ "city": "Paris" })),
    ]);
    let id = enter(&site, "2025-03-26").await;
    let session = [("mcp-session-id", id.as_str())];
    let answers = json_body(site.post(&session, &batch).await).await;
    assert_eq!(answers.as_array().unwrap().len(), 2);
    let one = json!([request(1, "ping", json!({}))]);
    let answers = json_body(site.post(&session, &one).await).await;
    assert_eq!(
        answers,
        json!([{ "jsonrpc": "2.0", "id": 1, "result": {} }])
    );
    let storm = json!([
        call(1, "checkWeather", json!({ "city": "Reykjavík" })),
        request(2, "ping", json!({})),
    ]);
    let mut events = Events::of(site.post(&session, &storm).await);
    let mut answers = 0;
    while let Some(message) = events.message().await {
        answers += usize::from(message["method"].is_null());
    }
    assert_eq!(answers, 2);

    let id = enter(&site, "2025-06-18").await;
    let response = site.post(&[("mcp-session-id", &id)], &batch).await;
    refused(response, StatusCode::BAD_REQUEST, -32600).await;
}

#[tokio::test]
async fn a_server_of_one_revision_refuses_the_others() {
    let site = Site::start(Which::Travel, Spoken::Only(Revision::V2026_07_28)).await;
    let response = site.post(&[], &initialize("2025-11-25")).await;
    refused(response, StatusCode::BAD_REQUEST, -32022).await;
    let bare = request(1, "tools/list", json!({}));
    refused(site.post(&[], &bare).await, StatusCode::BAD_REQUEST, -32020).await;
    let stream = site
        .send(Method::GET, "/mcp", &[("mcp-session-id", "x")], "")
        .await;
    assert_eq!(stream.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(
        site.send(Method::GET, "/sse", &[], "").await.status(),
        StatusCode::NOT_FOUND
    );

    let site = Site::start(Which::Travel, Spoken::Only(Revision::V2025_06_18)).await;
    let probe = modern(1, "server/discover", json!({}));
    refused(
        site.post_modern(&probe).await,
        StatusCode::BAD_REQUEST,
        -32601,
    )
    .await;
    let list = modern(1, "tools/list", json!({}));
    refused(
        site.post_modern(&list).await,
        StatusCode::BAD_REQUEST,
        -32600,
    )
    .await;

    let site = Site::start(Which::Travel, Spoken::Only(Revision::V2024_11_05)).await;
    let response = site.post(&[], &initialize("2024-11-05")).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let json = [("content-type", "application/json")];
    let unknown = site
        .send(Method::POST, "/messages?sessionId=x", &json, "{}")
        .await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    let wrong = site.send(Method::POST, "/sse", &json, "{}").await;
    assert_eq!(wrong.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_2024_session_ends_with_its_stream() {
    let site = Site::start(Which::Travel, Spoken::All).await;
    let mut events = Events::of(site.send(Method::GET, "/sse", &[], "").await);
    let (_, path) = events.next().await.unwrap();
    let json = [("content-type", "application/json")];
    let hello = initialize("2025-11-25").to_string();
    let response = site.send(Method::POST, &path, &json, &hello).await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    assert_eq!(events.message().await.unwrap()["id"], "init");
    drop(events);
    while site.send(Method::POST, &path, &json, &hello).await.status() != StatusCode::NOT_FOUND {}
}
