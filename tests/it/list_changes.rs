//! K42: changes of lists reach who is concerned, once, and the next list is the new one.

use crate::support::{
    Client, gateway,
    hb::Reply,
    keys::keys,
    sb,
    stock::{Stock, at, example, servers},
};
use serde_json::json;
use std::time::Duration;

const A_MOMENT: Duration = Duration::from_millis(150);

async fn list(client: &Client, kind: &str) -> Vec<String> {
    match kind {
        "tools" => client.tools().await,
        "prompts" => client.names("prompts/list", "prompts", "name").await,
        "resources" => client.names("resources/list", "resources", "uri").await,
        _ => {
            client
                .names(
                    "resources/templates/list",
                    "resourceTemplates",
                    "uriTemplate",
                )
                .await
        }
    }
}

#[tokio::test]
async fn one_change_is_one_notification_and_the_next_list_is_the_new_one() {
    for path in ["/mcp", "/mcp/one"] {
        let stock = Stock::of_all("one");
        let hb = stock.streaming().start().await;
        let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
        let client = gw.client(path).connected().await;
        for kind in ["tools", "prompts", "resources", "templates"] {
            list(&client, kind).await;
        }
        // The gateway's own stream and the session's.
        stock.streams(2).await;
        let mut events = client.listen().await;
        for kind in ["tools", "prompts", "resources"] {
            stock.set(kind, json!(["new://1", "new://2"]));
            stock.set("templates", json!([format!("new://{kind}/{{x}}")]));
            stock.say_changed(kind);
            let note = events.next().await.unwrap();
            assert_eq!(
                note["method"],
                format!("notifications/{kind}/list_changed"),
                "{path}"
            );
            let twins = (client.twin(), client.twin());
            let (first, second) = tokio::join!(list(&twins.0, kind), list(&twins.1, kind));
            assert_eq!(
                (first.len(), second.len()),
                (2, 2),
                "{path}: both lists are new: {first:?} {second:?}"
            );
            assert!(
                events.is_silent_for(A_MOMENT).await,
                "{path}: one change, one notification"
            );
        }
        assert_eq!(
            list(&client, "templates").await,
            ["new://resources/{x}"],
            "{path}"
        );
        gw.stop().await;
    }
}

#[tokio::test]
async fn a_burst_of_changes_is_told_as_few_and_the_last_one_counts() {
    let stock = Stock::of_all("one");
    let hb = stock.streaming().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    client.tools().await;
    stock.streams(2).await;
    let mut events = client.listen().await;
    for n in 0..20 {
        stock.set("tools", json!([format!("t{n}")]));
        stock.say_changed("tools");
    }
    let mut notes = 0;
    while !events.is_silent_for(A_MOMENT).await {
        notes += 1;
        // The one that ended the silence was taken: what is listed now may already be the last.
        if notes > 3 {
            break;
        }
    }
    assert!(notes <= 2, "{notes} notifications for one burst");
    assert_eq!(client.tools().await, ["one__t19"]);
    gw.stop().await;
}

#[tokio::test]
async fn sessions_without_a_link_of_their_own_hear_of_it_too() {
    let stock = Stock::of_all("one");
    let hb = stock.streaming().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    stock.streams(1).await;
    let idle = gw.client("/mcp").connected().await;
    let mut events = idle.listen().await;
    stock.set("tools", json!(["new"]));
    stock.say_changed("tools");
    let note = events.next().await.unwrap();
    assert_eq!(note["method"], "notifications/tools/list_changed");
    assert!(events.is_silent_for(A_MOMENT).await, "once");
    assert_eq!(idle.tools().await, ["one__new"]);
    gw.stop().await;
}

#[tokio::test]
async fn a_tool_that_a_call_adds_is_listed_when_its_announcement_is_there() {
    let gw = gateway(&servers(&[(
        "calendar",
        example(&["calendar", "--protocol", "2025-11-25"], ""),
    )]))
    .await;
    let client = gw.client("/mcp").connected().await;
    let other = gw.client("/mcp").connected().await;
    let before = client.tools().await;
    assert_eq!(other.tools().await, before);
    let (mut events, mut others) = (client.listen().await, other.listen().await);
    let booking = json!({"title": "Flight", "start": "2024-06-15T10:00", "trip": "Barcelona"});
    let answer = client.call("calendar__createCalendarEvent", booking).await;
    assert!(
        answer.get("result").is_some() && answer["result"]["isError"] != true,
        "{answer}"
    );
    events.next_of("notifications/tools/list_changed").await;
    let after = client.tools().await;
    assert!(
        after.contains(&"calendar__cancelTrip".to_owned()),
        "{after:?}"
    );
    assert_eq!(
        other.tools().await,
        before,
        "the other session's process knows nothing of it"
    );
    assert!(others.is_silent_for(A_MOMENT).await);
    assert!(
        client
            .call("calendar__cancelTrip", json!({"trip": "Barcelona"}))
            .await
            .get("result")
            .is_some()
    );
    let unknown = other
        .call("calendar__cancelTrip", json!({"trip": "Barcelona"}))
        .await;
    assert_ne!(unknown["result"]["isError"], json!(false), "{unknown}");
    gw.stop().await;
}

#[tokio::test]
async fn notifications_of_one_callers_process_are_nobody_elses() {
    let (auth, tokens) = keys(&["ann", "bob"]);
    let gw = gateway(&format!("{auth}{}", servers(&[("one", sb(&[], ""))]))).await;
    let ann = gw.client("/mcp").key(&tokens[0]).connected().await;
    let bob = gw.client("/mcp").key(&tokens[1]).connected().await;
    ann.tools().await;
    bob.tools().await;
    let (mut anns, mut bobs) = (ann.listen().await, bob.listen().await);
    ann.text(
        "one__notify",
        json!({"method": "notifications/tools/list_changed", "params": {}}),
    )
    .await;
    anns.next_of("notifications/tools/list_changed").await;
    assert!(bobs.is_silent_for(A_MOMENT).await);
    gw.stop().await;
}

#[tokio::test]
async fn on_a_shared_process_everyone_hears_of_a_change_once() {
    let gw = gateway(&servers(&[("one", sb(&[], "isolation: shared"))])).await;
    let (ann, bob) = (
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
    );
    ann.tools().await;
    bob.tools().await;
    let (mut anns, mut bobs) = (ann.listen().await, bob.listen().await);
    ann.text(
        "one__notify",
        json!({"method": "notifications/prompts/list_changed", "params": {}}),
    )
    .await;
    for events in [&mut anns, &mut bobs] {
        let note = events.next().await.unwrap();
        assert_eq!(note["method"], "notifications/prompts/list_changed");
        assert!(events.is_silent_for(A_MOMENT).await);
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_server_without_a_standing_stream_makes_no_storm() {
    let quiet = Stock::of_all("quiet").legacy().start().await;
    let loud = Stock::of_all("loud");
    let hb = loud.streaming().start().await;
    let gw = gateway(&servers(&[
        ("quiet", at(&quiet, "")),
        ("loud", at(&hb, "")),
    ]))
    .await;
    let client = gw.client("/mcp").connected().await;
    let tools = client.tools().await;
    loud.streams(2).await;
    let mut events = client.listen().await;
    assert!(
        events.is_silent_for(Duration::from_millis(500)).await,
        "nothing changed"
    );
    assert_eq!(quiet.count("GET"), 2, "asked once by each link");
    loud.say_changed("tools");
    events.next_of("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, tools);
    gw.stop().await;
}

#[tokio::test]
async fn a_redeployed_server_with_other_tools_is_noticed() {
    let stock = Stock::of_all("one");
    let hb = stock.legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    client.tools().await;
    stock.set("tools", json!(["redeployed"]));
    hb.forget_sessions();
    // Any use of the server finds out, and then the list is asked for anew.
    client
        .request("prompts/get", json!({"name": "one__one-prompt"}))
        .await;
    assert_eq!(client.tools().await, ["one__redeployed"]);
    gw.stop().await;
}

#[tokio::test]
async fn a_change_while_the_list_is_fetched_is_not_lost() {
    let stock = Stock::new("one", json!({"tools": ["old"]}));
    let gate = crate::support::hb::Gate::new();
    let (held, answering) = (gate.clone(), stock.clone());
    let slow = std::sync::atomic::AtomicBool::new(false);
    let script = stock.streaming();
    let answer = script.answer_to("tools/list");
    let hb = script
        .on("tools/list", move |seen| {
            // The third request (after the gateway's own and the first of the session) holds an old answer back.
            let mine = seen.header("mcp-session-id") == Some("session-2");
            let reply: Reply = answer(seen);
            match mine && !slow.swap(mine, std::sync::atomic::Ordering::SeqCst) {
                true => reply.gate_head(&held),
                false => reply,
            }
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let twin = client.twin();
    let early = tokio::spawn(async move { twin.tools().await });
    hb.wait_for(|s| s.method() == "tools/list" && s.header("mcp-session-id") == Some("session-2"))
        .await;
    stock.streams(2).await;
    let mut events = client.listen().await;
    answering.set("tools", json!(["new"]));
    stock.say_changed("tools");
    events.next_of("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, ["one__new"]);
    gate.open();
    assert_eq!(early.await.unwrap(), ["one__old"]);
    assert_eq!(
        client.tools().await,
        ["one__new"],
        "the late answer replaces nothing newer"
    );
    gw.stop().await;
}
