//! Who speaks which revision: how stdio servers settle on one, and what they refuse.

use drawbridge::example::Revision;
use serde_json::{Value, json};

use crate::peer::{META_CAPABILITIES, META_VERSION, Peer, Process, initialize, modern, request};

fn code(answer: &Value) -> i64 {
    answer["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn initialize_settles_on_the_clients_revision_or_the_newest_with_sessions() {
    let wanted = [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ];
    for (asked, settled) in wanted {
        let mut server = Process::start(&["travel"]);
        let answer = server.ask(initialize(asked)).await;
        assert_eq!(answer["result"]["protocolVersion"], settled);
    }
    let mut server = Process::start(&["travel", "--protocol", "2025-03-26"]);
    let answer = server.ask(initialize("2025-11-25")).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-03-26");
}

#[tokio::test]
async fn capabilities_say_what_there_is() {
    let expected = [
        (
            "travel",
            "2024-11-05",
            json!({ "tools": {}, "resources": {}, "prompts": {} }),
        ),
        (
            "travel",
            "2025-11-25",
            json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {} }),
        ),
        (
            "weather",
            "2025-03-26",
            json!({
                "tools": {}, "resources": { "subscribe": true }, "logging": {}, "completions": {},
            }),
        ),
        (
            "calendar",
            "2025-06-18",
            json!({ "tools": { "listChanged": true }, "resources": {} }),
        ),
    ];
    for (name, revision, capabilities) in expected {
        let answer = Process::start(&[name]).ask(initialize(revision)).await;
        assert_eq!(
            answer["result"]["capabilities"], capabilities,
            "{name} {revision}"
        );
    }
}

#[tokio::test]
async fn discovery_names_all_revisions_newest_first() {
    let mut server = Process::start(&["calendar"]);
    let answer = server.ask(modern(1, "server/discover", json!({}))).await;
    let names: Vec<_> = Revision::ALL
        .iter()
        .map(|revision| revision.as_str())
        .collect();
    assert_eq!(answer["result"]["supportedVersions"], json!(names));
    assert_eq!(
        answer["result"]["capabilities"]["tools"]["listChanged"],
        true
    );
    assert_eq!(answer["result"]["resultType"], "complete");
    assert!(answer["result"]["ttlMs"].is_u64() && answer["result"]["cacheScope"].is_string());
    let name = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
    assert_eq!(name, "drawbridge-example-calendar");
}

#[tokio::test]
async fn a_legacy_server_does_not_know_discovery() {
    let mut server = Process::start(&["weather", "--protocol", "2025-11-25"]);
    assert_eq!(
        code(&server.ask(modern(1, "server/discover", json!({}))).await),
        -32601
    );
    assert_eq!(
        code(&server.ask(modern(2, "tools/list", json!({}))).await),
        -32600
    );
    let answer = server.ask(initialize("2025-11-25")).await;
    assert!(
        answer["result"].is_object(),
        "the probe has done no harm: {answer}"
    );
}

#[tokio::test]
async fn a_modern_server_refuses_initialize_and_says_what_it_speaks() {
    let mut server = Process::start(&["weather", "--protocol", "2026-07-28"]);
    let answer = server.ask(initialize("2025-11-25")).await;
    assert_eq!(code(&answer), -32022);
    let data = json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" });
    assert_eq!(answer["error"]["data"], data);
    let answer = server.ask(modern(1, "tools/list", json!({}))).await;
    assert!(answer["result"]["tools"].is_array());
}

#[tokio::test]
async fn the_first_message_fixes_the_era_of_a_process() {
    let mut server = Process::start(&["travel"]);
    server.ask(modern(1, "server/discover", json!({}))).await;
    let answer = server.ask(initialize("2025-11-25")).await;
    assert_eq!(answer["error"]["data"]["supported"], json!(["2026-07-28"]));

    let mut server = Process::start(&["travel"]);
    server.ask(initialize("2025-11-25")).await;
    assert_eq!(
        code(&server.ask(modern(1, "server/discover", json!({}))).await),
        -32601
    );
    assert_eq!(code(&server.ask(initialize("2025-11-25")).await), -32600);
}

#[tokio::test]
async fn a_modern_request_must_carry_its_meta() {
    let mut server = Process::start(&["weather"]);
    let mut unknown = modern(1, "tools/list", json!({}));
    unknown["params"]["_meta"][META_VERSION] = json!("2099-01-01");
    let answer = server.ask(unknown).await;
    assert_eq!(code(&answer), -32022);
    assert_eq!(answer["error"]["data"]["requested"], "2099-01-01");

    let mut bare = modern(2, "tools/list", json!({}));
    bare["params"]["_meta"]
        .as_object_mut()
        .unwrap()
        .remove(META_CAPABILITIES);
    assert_eq!(code(&server.ask(bare).await), -32602);
    let level = json!({ "_meta": { "io.modelcontextprotocol/logLevel": "loud" } });
    assert_eq!(
        code(&server.ask(modern(3, "tools/list", level)).await),
        -32602
    );
    assert_eq!(
        code(&server.ask(request(4, "server/discover", json!({}))).await),
        -32602
    );
    for method in ["ping", "logging/setLevel", "resources/subscribe"] {
        assert_eq!(
            code(&server.ask(modern(5, method, json!({}))).await),
            -32601,
            "{method}"
        );
    }
}

#[tokio::test]
async fn a_missing_client_capability_is_named() {
    let call = json!({
        "name": "bookHotel", "arguments": { "city": "Paris", "checkIn": "2024-06-15", "nights": 1 },
    });
    let mut server = Process::start(&["travel"]);
    let mut asked = modern(1, "tools/call", call.clone());
    asked["params"]["_meta"][META_CAPABILITIES] = json!({ "elicitation": { "url": {} } });
    let answer = server.ask(asked).await;
    assert_eq!(code(&answer), -32021);
    let needed = json!({ "requiredCapabilities": { "elicitation": {} } });
    assert_eq!(answer["error"]["data"], needed);

    let mut server = Process::start(&["travel"]);
    let mut hello = initialize("2025-11-25");
    hello["params"]["capabilities"] = json!({});
    server.ask(hello).await;
    let answer = server.ask(request(1, "tools/call", call)).await;
    assert_eq!(answer["result"]["isError"], true);
}

#[tokio::test]
async fn a_state_that_was_changed_or_moved_is_refused() {
    let call = |nights: u64| {
        json!({
            "name": "bookHotel", "arguments": { "city": "Paris", "checkIn": "2024-06-15", "nights": nights },
        })
    };
    let mut server = Process::start(&["travel"]);
    let asked = server.ask(modern(1, "tools/call", call(2))).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let answers = json!({ "booking": { "action": "accept", "content": { "confirm": true } } });
    let retry = |nights: u64, state: String| {
        let mut params = call(nights);
        params["requestState"] = json!(state);
        params["inputResponses"] = answers.clone();
        modern(2, "tools/call", params)
    };
    assert_eq!(
        code(&server.ask(retry(2, format!("x{state}"))).await),
        -32602
    );
    assert_eq!(code(&server.ask(retry(3, state.clone())).await), -32602);
    let booked = server.ask(retry(2, state)).await;
    assert_eq!(booked["result"]["resultType"], "complete");

    let mut stateless = call(2);
    stateless["inputResponses"] = answers.clone();
    let again = server.ask(modern(3, "tools/call", stateless)).await;
    assert_eq!(again["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn a_booking_ends_as_the_person_wants() {
    let call = json!({
        "name": "bookHotel", "arguments": { "city": "Paris", "checkIn": "2024-06-15", "nights": 1 },
    });
    let endings = [
        (json!({ "action": "decline" }), "declined"),
        (json!({ "action": "cancel" }), "closed"),
        (
            json!({ "action": "accept", "content": { "confirm": false } }),
            "did not confirm",
        ),
        (
            json!({ "action": "accept", "content": { "room": "cave" } }),
            "not filled in",
        ),
        (
            json!({ "action": "accept", "content": { "confirm": true } }),
            "Booked",
        ),
    ];
    for (answer, words) in endings {
        let mut server = Process::start(&["travel"]);
        server.ask(initialize("2025-11-25")).await;
        let question = server.ask(request(1, "tools/call", call.clone())).await;
        assert_eq!(question["method"], "elicitation/create");
        let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
        let end = server.ask(reply).await;
        let text = end["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn batches_belong_to_2025_03_26() {
    let batch = json!([
        request(1, "ping", json!({})),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        request("two", "tools/call", json!({ "name": "wait", "arguments": { "seconds": 0 } })),
    ]);
    let mut server = Process::start(&["weather"]);
    server.ask(initialize("2025-03-26")).await;
    let answers = server.ask(batch.clone()).await;
    let mut ids: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["id"].to_string())
        .collect();
    ids.sort();
    assert_eq!(ids, ["\"two\"", "1"]);

    let mut server = Process::start(&["weather"]);
    server.ask(initialize("2025-06-18")).await;
    assert_eq!(code(&server.ask(batch).await), -32600);
}

#[tokio::test]
async fn what_is_no_message_is_refused() {
    let mut server = Process::start(&["weather"]);
    server.send_text("{").await;
    assert_eq!(code(&server.receive().await), -32700);
    server.send_text("{\"id\":1}").await;
    assert_eq!(code(&server.receive().await), -32600);
    server.send_text("").await;
    assert!(server.ask(initialize("2025-11-25")).await["result"].is_object());
}

#[tokio::test]
async fn a_subscriber_hears_of_its_forecast_only() {
    let uri = "weather://forecast/Paris/2024-06-15";
    let mut peer = Peer::stdio("weather", Revision::V2025_06_18, &[]).await;
    assert!(
        peer.call("resources/subscribe", json!({ "uri": uri }))
            .await["result"]
            .is_object()
    );
    let nowhere = json!({ "uri": "weather://forecast/Atlantis/2024-06-15" });
    assert_eq!(
        code(&peer.call("resources/subscribe", nowhere).await),
        -32002
    );
    for (city, heard) in [("London", 0), ("paris", 1)] {
        peer.tool(
            "advanceForecast",
            json!({ "city": city, "date": "2024-06-15" }),
        )
        .await;
        assert_eq!(peer.notes.len(), heard);
    }
    assert_eq!(peer.notes[0]["params"]["uri"], uri);
    peer.call("resources/unsubscribe", json!({ "uri": uri }))
        .await;
    peer.tool(
        "advanceForecast",
        json!({ "city": "Paris", "date": "2024-06-15" }),
    )
    .await;
    assert_eq!(peer.notes.len(), 1);
}
