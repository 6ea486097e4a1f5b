//! Requests of servers: to the one client they belong to and back, or declined at once.

use crate::support::{
    Events, Standing, TestGateway, arguments, echoing, gateway,
    hb::{Hb, Reply, Script, Seen},
    sb, text, until,
};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::mpsc::UnboundedSender;

const ALL: &str =
    r#"{"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}}"#;

fn all() -> Value {
    serde_json::from_str(ALL).unwrap()
}

type Waiting = Arc<Mutex<HashMap<String, (UnboundedSender<Bytes>, Seen)>>>;

/// Gives a script a tool that asks on its call's stream, with the given raw id, and answers with the whole answer it got.
fn asking(script: Script, id: &'static str) -> Script {
    let waiting = Waiting::default();
    let answered = waiting.clone();
    script
        .on("tools/call", move |seen| {
            let asked = arguments(seen);
            if asked["method"].is_null() {
                return Reply::json(seen.result(text("no question")));
            }
            let (sender, reply) = Reply::live();
            let question = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{}}}"#,
                asked["method"], asked["params"]
            );
            sender
                .send(Bytes::from(format!("data: {question}\n\n")))
                .unwrap();
            let session = seen.header("mcp-session-id").unwrap_or_default().to_owned();
            waiting
                .lock()
                .unwrap()
                .insert(session, (sender, seen.clone()));
            reply
        })
        .on("response", move |seen| {
            let session = seen.header("mcp-session-id").unwrap_or_default();
            if let Some((sender, call)) = answered.lock().unwrap().remove(session) {
                let answer = call.result(text(String::from_utf8_lossy(&seen.body)));
                sender
                    .send(Bytes::from(format!("data: {answer}\n\n")))
                    .unwrap();
            }
            Reply::status(202)
        })
}

fn elicit(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": {"type": "object", "properties": {}}}})
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}).to_string()
}

/// The next question on a stream.
async fn question(events: &mut Events) -> Value {
    loop {
        let message = events.next().await.expect("a question");
        if message.get("method").is_some() && message.get("id").is_some() {
            return message;
        }
    }
}

async fn both(hb: &Hb) -> TestGateway {
    gateway(&format!(
        "servers: {{ one: {{ url: {:?} }}, two: {} }}\n",
        hb.url(),
        sb(&[], "")
    ))
    .await
}

#[tokio::test]
async fn a_question_in_a_call_reaches_the_client_at_once_and_its_answer_the_server() {
    let hb = asking(echoing(), "\"q-1\"").start().await;
    let gw = both(&hb).await;
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = gw.client("/mcp").revision(revision);
        client.initialize(all()).await;
        for (method, params, result) in [
            (
                "elicitation/create",
                json!({"message": "sure?", "requestedSchema": {"type": "object"}, "x-new": [1]}),
                json!({"action": "accept", "content": {"n": 9007199254740993u64}}),
            ),
            (
                "sampling/createMessage",
                json!({"messages": [], "maxTokens": 5}),
                json!({"role": "assistant", "content": {"type": "text", "text": "ü\u{2028}"}, "model": "m"}),
            ),
            (
                "roots/list",
                json!({}),
                json!({"roots": [{"uri": "file:///a"}]}),
            ),
        ] {
            for tool in ["one__echo", "two__ask"] {
                let body = call(7, tool, &json!({"method": method, "params": params}));
                let mut stream = client.send(Method::POST, &[], body).await.events();
                let asked = question(&mut stream).await;
                assert_eq!(
                    (&asked["method"], &asked["params"]),
                    (&json!(method), &params)
                );
                assert!(asked["id"].is_u64(), "an id of ours: {asked}");
                let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
                let accepted = client.post(&answer).await;
                assert_eq!(accepted.status, StatusCode::ACCEPTED);
                let done = stream.next().await.unwrap();
                assert_eq!(done["id"], 7);
                let told: Value =
                    serde_json::from_str(done["result"]["content"][0]["text"].as_str().unwrap())
                        .unwrap();
                assert_eq!(told["result"], result, "{tool}");
                let original = if tool == "one__echo" {
                    "q-1"
                } else {
                    told["id"].as_str().unwrap()
                };
                assert!(
                    told["id"] == original && (tool == "one__echo" || original.starts_with("sb-"))
                );
                assert_eq!(stream.next().await, None);
            }
        }
    }
}

#[tokio::test]
async fn a_servers_id_comes_back_to_it_exactly() {
    for id in [
        "1",
        "0",
        "-5",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""1""#,
        r#""""#,
        r#""ü\u00fc\/""#,
    ] {
        let hb = asking(echoing(), id).start().await;
        let gw = both(&hb).await;
        let mut client = gw.client("/mcp");
        client.initialize(all()).await;
        let mut stream = client
            .send(Method::POST, &[], call(1, "one__echo", &elicit("?")))
            .await
            .events();
        let asked = question(&mut stream).await;
        let answer = format!(
            r#"{{ "jsonrpc":"2.0", "id" : {}, "error":{{"code":-1.5e3,"message":"no","data":{{"z":1,"a":[null]}}}}}}"#,
            asked["id"]
        );
        client.send(Method::POST, &[], answer).await;
        let seen = hb.wait_for(|s| s.method() == "response").await;
        let told = String::from_utf8_lossy(&seen.body).into_owned();
        assert!(told.contains(&format!(r#""id" : {id},"#)), "{told}");
        assert!(
            told.contains(r#""error":{"code":-1.5e3,"message":"no","data":{"z":1,"a":[null]}}"#),
            "{told}"
        );
        stream.next().await.unwrap();
    }
}

#[tokio::test]
async fn equal_ids_of_two_servers_do_not_clash() {
    let (one, two) = (
        asking(echoing(), "1").start().await,
        asking(echoing(), "1").start().await,
    );
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }}, two: {{ url: {:?} }} }}\n",
        one.url(),
        two.url()
    ))
    .await;
    let mut client = gw.client("/mcp");
    client.initialize(all()).await;
    let mut first = client
        .send(Method::POST, &[], call(1, "one__echo", &elicit("for one")))
        .await
        .events();
    let mut second = client
        .send(Method::POST, &[], call(1, "two__echo", &elicit("for two")))
        .await
        .events();
    let (asked_one, asked_two) = (question(&mut first).await, question(&mut second).await);
    assert_ne!(asked_one["id"], asked_two["id"]);
    assert_eq!(
        (
            &asked_one["params"]["message"],
            &asked_two["params"]["message"]
        ),
        (&json!("for one"), &json!("for two"))
    );
    for asked in [&asked_two, &asked_one] {
        let said = asked["params"]["message"].clone();
        client.post(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"said": said}}})).await;
    }
    for (stream, said) in [(&mut first, "for one"), (&mut second, "for two")] {
        let done = stream.next().await.unwrap();
        assert!(
            done["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains(said),
            "{done}"
        );
    }
}

#[tokio::test]
async fn what_the_client_did_not_declare_is_declined_at_once() {
    let hb = asking(echoing(), "\"q\"").start().await;
    let gw = both(&hb).await;
    let url = json!({"method": "elicitation/create", "params": {"mode": "url", "message": "go", "url": "https://example.com", "elicitationId": "e"}});
    let sampling =
        json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
    let roots = json!({"method": "roots/list", "params": {}});
    let unknown = json!({"method": "vendor/question", "params": {}});
    let form = elicit("?");
    let cases = [
        (
            json!({}),
            vec![
                (&form, false),
                (&url, false),
                (&sampling, false),
                (&roots, false),
            ],
        ),
        (
            json!({"elicitation": {}}),
            vec![(&form, true), (&url, false), (&sampling, false)],
        ),
        (
            json!({"elicitation": {"url": {}}}),
            vec![(&form, false), (&url, true)],
        ),
        (
            json!({"elicitation": {"form": {}}, "roots": {}}),
            vec![(&form, true), (&url, false), (&roots, true)],
        ),
        (
            json!({"sampling": {}}),
            vec![(&sampling, true), (&form, false), (&roots, false)],
        ),
        (json!({"experimental": {"x": {}}}), vec![(&unknown, true)]),
    ];
    for (capabilities, questions) in cases {
        let mut client = gw.client("/mcp");
        client.initialize(capabilities.clone()).await;
        for (asked, reaches) in questions {
            for tool in ["one__echo", "two__ask"] {
                let response = client.send(Method::POST, &[], call(1, tool, asked)).await;
                if !reaches {
                    // The server was told, and its tool went on.
                    let done = response.message().await;
                    let told = done["result"]["content"][0]["text"]
                        .as_str()
                        .unwrap()
                        .to_owned();
                    assert!(
                        told.contains("-32601"),
                        "{capabilities} {asked} {tool}: {told}"
                    );
                    continue;
                }
                let mut stream = response.events();
                let shown = question(&mut stream).await;
                client
                    .post(&json!({"jsonrpc": "2.0", "id": shown["id"], "result": {}}))
                    .await;
                assert_eq!(stream.next().await.unwrap()["id"], 1);
            }
        }
    }
}

#[tokio::test]
async fn a_modern_client_is_not_asked_and_the_server_does_not_hang() {
    let hb = asking(echoing(), "5").start().await;
    let gw = both(&hb).await;
    for tool in ["one__echo", "two__ask"] {
        for asked in [
            elicit("?"),
            json!({"method": "sampling/createMessage", "params": {}}),
            json!({"method": "roots/list", "params": {}}),
        ] {
            let params = json!({"name": tool, "arguments": asked});
            let done = gw
                .client("/mcp")
                .modern("tools/call", params)
                .await
                .message()
                .await;
            let told = done["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or_else(|| panic!("{done}"));
            assert!(told.contains("error"), "{told}");
        }
    }
}

#[tokio::test]
async fn each_question_takes_one_answer_and_only_from_its_own_session() {
    let hb = asking(echoing(), "1").start().await;
    let gw = both(&hb).await;
    let (mut client, mut other) = (gw.client("/mcp"), gw.client("/mcp"));
    client.initialize(all()).await;
    other.initialize(all()).await;
    let mut stream = client
        .send(Method::POST, &[], call(1, "one__echo", &elicit("?")))
        .await
        .events();
    let asked = question(&mut stream).await;
    let answer = |text: &str| json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"by": text}}});
    let as_text =
        json!({"jsonrpc": "2.0", "id": asked["id"].to_string(), "result": {"by": "text"}});
    let unknown = json!({"jsonrpc": "2.0", "id": 4711, "result": {"by": "nobody"}});
    for (from, message) in [
        (&other, answer("other")),
        (&client, unknown),
        (&client, as_text),
        (&client, answer("owner")),
        (&client, answer("owner again")),
    ] {
        assert_eq!(from.post(&message).await.status, StatusCode::ACCEPTED);
    }
    let done = stream.next().await.unwrap();
    let told = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(told.contains(r#""by":"owner""#), "{told}");
    assert_eq!(hb.count("response"), 1);
}

#[tokio::test]
async fn a_client_that_reads_no_events_is_asked_on_its_standing_stream() {
    let hb = asking(echoing(), "1").start().await;
    let gw = both(&hb).await;
    let mut client = gw.client("/mcp");
    client.initialize(all()).await;
    for tool in ["one__echo", "two__ask"] {
        let mut standing = client.listen().await;
        let headers = [("accept", "application/json")];
        let (response, ()) = tokio::join!(
            client.send(Method::POST, &headers, call(3, tool, &elicit("?"))),
            async {
                let asked = question(&mut standing).await;
                client.post(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})).await;
            }
        );
        assert!(!response.is_stream());
        assert!(
            response.message().await["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("decline")
        );
    }
}

#[tokio::test]
async fn a_question_outside_any_call_goes_to_its_session_and_waits_for_its_stream() {
    let (script, standing) = Standing::on(echoing());
    let hb = script.start().await;
    let gw = both(&hb).await;
    let (mut client, mut other) = (gw.client("/mcp"), gw.client("/mcp"));
    client.initialize(all()).await;
    other.initialize(all()).await;
    other.text("one__echo", json!({})).await;
    let mut uninvolved = other.listen().await;
    client.text("one__echo", json!({})).await;
    let session = hb
        .seen()
        .iter()
        .rev()
        .find(|s| s.method() == "tools/call")
        .unwrap()
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    standing.say(
        &session,
        &json!({"jsonrpc": "2.0", "id": "outside", "method": "roots/list"}),
    );
    let mut stream = client.listen().await;
    let asked = question(&mut stream).await;
    assert_eq!(asked["method"], "roots/list");
    client
        .post(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}))
        .await;
    let seen = hb.wait_for(|s| s.method() == "response").await;
    assert_eq!(
        (seen.json()["id"].clone(), seen.header("mcp-session-id")),
        (json!("outside"), Some(&*session))
    );
    assert!(uninvolved.is_silent_for(Duration::from_millis(50)).await);
}

#[tokio::test]
async fn roots_asked_for_right_after_the_start_reach_the_client() {
    let gw = gateway(&format!(
        "servers: {{ two: {} }}\n",
        sb(&["--ask-roots"], "")
    ))
    .await;
    let mut client = gw.client("/mcp");
    client.initialize(all()).await;
    let mut stream = client.listen().await;
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "two__echo", "arguments": {}}});
    let response = client.post(&call).await;
    // It belongs to the call that caused the start; if that is answered already, to the standing stream.
    let asked = match response.is_stream() {
        true => question(&mut response.events()).await,
        false => question(&mut stream).await,
    };
    assert_eq!(asked["method"], "roots/list");
    client
        .post(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}))
        .await;
}

#[tokio::test]
async fn a_question_taken_back_is_taken_back_from_the_client() {
    let (script, standing) = Standing::on(echoing());
    let hb = script.start().await;
    let gw = both(&hb).await;
    let mut client = gw.client("/mcp");
    client.initialize(all()).await;
    client.text("one__echo", json!({})).await;
    let session = hb
        .seen()
        .iter()
        .rev()
        .find(|s| s.method() == "tools/call")
        .unwrap()
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    let mut stream = client.listen().await;
    standing.say(
        &session,
        &json!({"jsonrpc": "2.0", "id": 41, "method": "roots/list"}),
    );
    let asked = question(&mut stream).await;
    standing.say(&session, &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 41, "reason": "never mind"}}));
    let cancelled = stream.next_of("notifications/cancelled").await;
    assert_eq!(
        (
            &cancelled["params"]["requestId"],
            &cancelled["params"]["reason"]
        ),
        (&asked["id"], &json!("never mind"))
    );
    client
        .post(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}))
        .await;
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
    assert_eq!(hb.count("response"), 0);
}

#[tokio::test]
async fn a_server_that_waits_for_a_client_that_is_gone_is_told() {
    let (script, standing) = Standing::on(echoing());
    let hb = script.start().await;
    let gw = both(&hb).await;
    let mut client = gw.client("/mcp");
    client.initialize(all()).await;
    client.text("one__echo", json!({})).await;
    let session = hb
        .seen()
        .iter()
        .rev()
        .find(|s| s.method() == "tools/call")
        .unwrap()
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    let mut stream = client.listen().await;
    standing.say(
        &session,
        &json!({"jsonrpc": "2.0", "id": "left", "method": "roots/list"}),
    );
    question(&mut stream).await;
    client.delete().await;
    let ended = hb
        .wait_for(|s| s.verb == "DELETE" || s.method() == "response")
        .await;
    if ended.method() == "response" {
        assert_eq!(ended.json()["id"], "left");
        assert!(ended.json()["error"]["code"].is_i64());
    }
}

#[tokio::test]
async fn a_server_that_crashes_takes_its_question_back() {
    let gw = gateway(&format!("servers: {{ two: {} }}\n", sb(&[], ""))).await;
    let mut client = gw.client("/mcp");
    client.initialize(all()).await;
    let mut standing = client.listen().await;
    let mut stream = client
        .send(Method::POST, &[], call(1, "two__ask", &elicit("?")))
        .await
        .events();
    let asked = question(&mut stream).await;
    let crash = client.call("two__crash", json!({})).await;
    assert!(crash["error"]["code"].is_i64());
    let failed = stream.next().await.unwrap();
    assert_eq!(
        (&failed["id"], &failed["error"]["code"]),
        (&json!(1), &json!(-31001))
    );
    let cancelled = standing.next_of("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
}

#[tokio::test]
async fn pings_of_servers_are_answered_in_calls_and_outside() {
    let (script, standing) = Standing::on(asking(echoing(), "\"are you there\""));
    let hb = script.start().await;
    let gw = both(&hb).await;
    // Without any capability, without any stream.
    let client = gw.client("/mcp").connected().await;
    for tool in ["one__echo", "two__ask"] {
        let answer = client
            .send(
                Method::POST,
                &[],
                call(1, tool, &json!({"method": "ping", "params": {}})),
            )
            .await;
        let mut pinged = Vec::new();
        let done = match answer.is_stream() {
            false => answer.json().await,
            true => {
                let mut stream = answer.events();
                loop {
                    let message = stream.next().await.unwrap();
                    if message["method"] != "ping" {
                        break message;
                    }
                    client
                        .post(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}))
                        .await;
                    pinged.push(message);
                }
            }
        };
        assert!(
            done["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains(r#""result":{}"#),
            "{done} {pinged:?}"
        );
    }
    let before = hb.count("response");
    standing.say_to_all(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    // The session's link, and the one that the gateway keeps for itself.
    let seen = hb
        .wait_for_nth(before + 2, |s| s.method() == "response")
        .await
        .json();
    assert_eq!((&seen["id"], &seen["result"]), (&json!("p"), &json!({})));
}

#[tokio::test]
async fn what_a_client_sends_reaches_the_server_once_and_never_comes_back() {
    let (script, standing) = Standing::on(echoing());
    let hb = script.start().await;
    let gw = both(&hb).await;
    let mut client = gw.client("/mcp");
    client.initialize(all()).await;
    client.text("one__echo", json!({})).await;
    let session = hb
        .seen()
        .iter()
        .rev()
        .find(|s| s.method() == "tools/call")
        .unwrap()
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    let mut stream = client.listen().await;
    standing.say(
        &session,
        &json!({"jsonrpc": "2.0", "id": 3, "method": "roots/list"}),
    );
    let asked = question(&mut stream).await;
    client
        .post(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}))
        .await;
    client
        .notify("notifications/roots/list_changed", json!({}))
        .await;
    client
        .notify("notifications/cancelled", json!({"requestId": 999}))
        .await;
    client
        .notify(
            "notifications/progress",
            json!({"progressToken": 999, "progress": 1}),
        )
        .await;
    let mine = |method: &'static str| {
        let session = session.clone();
        hb.seen()
            .iter()
            .filter(|s| s.method() == method && s.header("mcp-session-id") == Some(&session))
            .count()
    };
    until("the server heard of the roots", || {
        mine("notifications/roots/list_changed") == 1
    })
    .await;
    until("and got the answer", || mine("response") == 1).await;
    assert!(stream.is_silent_for(Duration::from_millis(100)).await);
    assert_eq!(
        (
            mine("notifications/initialized"),
            mine("response"),
            mine("notifications/roots/list_changed")
        ),
        (1, 1, 1)
    );
    assert_eq!(
        (
            mine("notifications/cancelled"),
            mine("notifications/progress")
        ),
        (0, 0)
    );
}
