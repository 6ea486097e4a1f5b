//! What each server offers, in every revision and on every transport.

use drawbridge::example::{ExampleArgs, Revision, Spoken, Which};
use serde_json::{Value, json};

use crate::peer::Peer;

/// A client for each revision and transport: of a server that speaks all revisions, and of one that speaks just
/// this one in pages of two.
async fn peers(name: &str, which: Which) -> Vec<Peer> {
    let mut peers = Vec::new();
    for revision in Revision::ALL {
        let only = ["--protocol", revision.as_str(), "--page-size", "2"];
        peers.push(Peer::stdio(name, revision, &[]).await);
        peers.push(Peer::stdio(name, revision, &only).await);
        peers.push(Peer::http(ExampleArgs::new(which), revision).await);
        let paged = ExampleArgs {
            protocol: Spoken::Only(revision),
            page_size: Some(2),
            ..ExampleArgs::new(which)
        };
        peers.push(Peer::http(paged, revision).await);
    }
    peers
}

async fn list(peer: &mut Peer, method: &str, field: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut params = json!({});
    loop {
        let answer = peer.call(method, params).await;
        items.extend(answer["result"][field].as_array().unwrap().clone());
        match &answer["result"]["nextCursor"] {
            Value::Null => return items,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
}

async fn tool_names(peer: &mut Peer) -> Vec<String> {
    let tools = list(peer, "tools/list", "tools").await;
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn complete(peer: &mut Peer, reference: Value, argument: &str, value: &str) -> Value {
    let params = json!({ "ref": reference, "argument": { "name": argument, "value": value } });
    peer.call("completion/complete", params).await["result"]["completion"]["values"].take()
}

async fn read(peer: &mut Peer, uri: &str) -> Value {
    let answer = peer.call("resources/read", json!({ "uri": uri })).await;
    answer["result"]["contents"][0].clone()
}

#[tokio::test]
async fn travel_offers_the_same_in_every_revision() {
    for mut peer in peers("travel", Which::Travel).await {
        let revision = peer.revision;
        let names = tool_names(&mut peer).await;
        assert_eq!(names, ["searchFlights", "findBestFlight", "bookHotel"]);
        assert_eq!(
            list(&mut peer, "resources/templates/list", "resourceTemplates")
                .await
                .len(),
            2
        );

        let route = json!({ "origin": "New York", "destination": "BCN", "date": "2024-06-15" });
        let found = peer.tool("searchFlights", route.clone()).await["result"]["content"].take();
        let link = if revision >= Revision::V2025_06_18 {
            "resource_link"
        } else {
            "text"
        };
        assert_eq!(found[1]["type"], link, "{revision}");
        let best = peer.text("findBestFlight", route).await;
        assert!(best.contains("Best flight: DB-107"), "{revision}: {best}");

        let trip = json!({ "city": "Barcelona", "checkIn": "2024-06-15", "nights": 3 });
        let booked = peer.text("bookHotel", trip).await;
        if revision >= Revision::V2025_06_18 {
            assert!(
                booked.contains("suite, aisle seat, without insurance, $720"),
                "{booked}"
            );
            let steps: Vec<_> = peer
                .notes
                .iter()
                .map(|note| &note["params"]["progress"])
                .collect();
            assert_eq!(steps, [1, 2, 3, 4]);
        } else {
            assert!(booked.contains("elicitation"), "{booked}");
        }

        let arguments = json!({ "destination": "Paris", "travellers": "2" });
        let params = json!({ "name": "plan-vacation", "arguments": arguments });
        let prompt = peer.call("prompts/get", params).await;
        let text = prompt["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap();
        assert!(text.contains("destination: Paris"), "{text}");
        let params = json!({ "name": "plan-vacation" });
        assert_eq!(
            peer.call("prompts/get", params).await["error"]["code"],
            -32602
        );

        let prompt = json!({ "type": "ref/prompt", "name": "plan-vacation" });
        let proposals = complete(&mut peer, prompt, "destination", "Bar").await;
        assert_eq!(proposals, json!(["Barcelona (BCN)", "Barbados (BGI)"]));
        let template = "travel://flights/{origin}/{destination}";
        let template = json!({ "type": "ref/resource", "uri": template });
        let proposals = complete(&mut peer, template, "origin", "bar").await;
        assert_eq!(proposals, json!(["Barcelona (BCN)", "Barbados (BGI)"]));

        let flights = read(&mut peer, "travel://flights/BCN/Park%20City").await;
        let flights: Value = serde_json::from_str(flights["text"].as_str().unwrap()).unwrap();
        assert_eq!(flights.as_array().unwrap().len(), 47);
        assert!(read(&mut peer, "trips://history/barcelona-2023").await["text"].is_string());
    }
}

#[tokio::test]
async fn weather_offers_the_same_in_every_revision() {
    for mut peer in peers("weather", Which::Weather).await {
        let revision = peer.revision;
        assert_eq!(
            tool_names(&mut peer).await,
            ["checkWeather", "advanceForecast", "wait"]
        );
        let paris = json!({ "city": "Paris", "units": "imperial" });
        let answer = peer.tool("checkWeather", paris).await["result"].take();
        let structured = &answer["structuredContent"];
        assert_eq!(
            structured.is_object(),
            revision >= Revision::V2025_06_18,
            "{answer}"
        );
        assert!(
            answer["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("°F")
        );
        assert_eq!(
            peer.tool("checkWeather", json!({})).await["result"]["isError"],
            true
        );
        let nowhere = peer
            .tool("checkWeather", json!({ "city": "Atlantis" }))
            .await;
        assert_eq!(nowhere["result"]["isError"], true);

        peer.notes.clear();
        let storm = json!({ "city": "Reykjavík" });
        if !revision.is_modern() {
            peer.call("logging/setLevel", json!({ "level": "debug" }))
                .await;
        }
        let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
        let params = json!({ "name": "checkWeather", "arguments": storm, "_meta": meta });
        peer.call("tools/call", params).await;
        let levels: Vec<_> = peer
            .notes
            .iter()
            .map(|note| &note["params"]["level"])
            .collect();
        assert_eq!(levels, ["debug", "info", "warning"], "{revision}");

        let template = json!({ "type": "ref/resource", "uri": "weather://forecast/{city}/{date}" });
        let proposals = complete(&mut peer, template, "city", "Par").await;
        assert_eq!(proposals, json!(["Paris", "Park City"]));

        peer.notes.clear();
        let uri = "weather://forecast/park%20city/2024-06-15";
        let before = read(&mut peer, uri).await;
        let day = json!({ "city": "Park City", "date": "2024-06-15" });
        peer.tool("advanceForecast", day).await;
        assert_ne!(read(&mut peer, uri).await, before);

        peer.notes.clear();
        peer.tool("wait", json!({ "seconds": 0, "steps": 3 })).await;
        assert_eq!(peer.notes.len(), 3, "{revision}");
        let activity = read(&mut peer, "weather://activity").await;
        assert_eq!(
            activity["text"],
            r#"{"running":0,"finished":1,"cancelled":0}"#
        );
    }
}

#[tokio::test]
async fn calendar_offers_the_same_in_every_revision() {
    for mut peer in peers("calendar", Which::Calendar).await {
        let before = ["createCalendarEvent", "sendEmail", "listWorkspaces"];
        assert_eq!(tool_names(&mut peer).await, before);
        assert_eq!(
            peer.tool("cancelTrip", json!({})).await["error"]["code"],
            -32602
        );
        let event = json!({ "title": "Flight", "start": "2024-06-15", "trip": "barcelona" });
        let created = peer.tool("createCalendarEvent", event).await;
        let events = &created["result"]["content"][1]["resource"]["text"];
        assert!(events.as_str().unwrap().contains("Flight"), "{created}");
        assert_eq!(tool_names(&mut peer).await.last().unwrap(), "cancelTrip");
        assert_eq!(
            peer.text("cancelTrip", json!({})).await,
            "Cancelled 1 events"
        );
        assert_eq!(tool_names(&mut peer).await, before);

        assert_eq!(
            peer.text("listWorkspaces", json!({})).await,
            "Home: file:///home"
        );
        let mail = json!({ "to": "ann@example.com", "subject": "Trip", "body": "" });
        assert_eq!(
            peer.text("sendEmail", mail).await,
            "Sent to ann@example.com: Trip"
        );
        assert_eq!(
            list(&mut peer, "resources/list", "resources").await.len(),
            2
        );
        let passport = read(&mut peer, "calendar://passport").await;
        assert!(
            passport["blob"]
                .as_str()
                .unwrap()
                .starts_with("iVBORw0KGgo")
        );

        let missing = peer
            .call("resources/read", json!({ "uri": "calendar://none" }))
            .await;
        let code = if peer.revision.is_modern() {
            -32602
        } else {
            -32002
        };
        assert_eq!(missing["error"]["code"], code);
        assert_eq!(
            peer.call("prompts/list", json!({})).await["error"]["code"],
            -32601
        );
        let cursor = json!({ "cursor": "x" });
        assert_eq!(
            peer.call("tools/list", cursor).await["error"]["code"],
            -32602
        );
    }
}
