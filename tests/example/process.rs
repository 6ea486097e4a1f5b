//! An example server as a process: how it ends, what it does with calls that are cancelled, and subscriptions
//! that share its stdout.

use std::time::Instant;

use serde_json::{Value, json};

use crate::peer::{Process, initialize, modern, request, soon};

fn wait(seconds: f64, steps: u32) -> Value {
    let arguments = json!({ "seconds": seconds, "steps": steps });
    json!({ "name": "wait", "arguments": arguments, "_meta": { "progressToken": 7 } })
}

async fn terminate(process: &Process) {
    let id = process.child.id().unwrap().to_string();
    let killed = tokio::process::Command::new("kill").arg(id).status().await;
    assert!(killed.unwrap().success());
}

#[tokio::test]
async fn the_end_of_stdin_ends_the_process_after_quick_calls() {
    let mut server = Process::start(&["weather"]);
    server.send(&initialize("2025-11-25")).await;
    server
        .send(&request(1, "tools/call", wait(3600.0, 1)))
        .await;
    server.send(&request(2, "tools/list", json!({}))).await;
    let started = Instant::now();
    server.close_stdin();
    assert_eq!(server.receive().await["id"], "init");
    assert_eq!(server.receive().await["id"], 2);
    assert_eq!(server.receive().await, Value::Null);
    assert!(soon(server.child.wait()).await.unwrap().success());
    assert!(started.elapsed().as_secs() < 10);
}

#[tokio::test]
async fn a_signal_ends_the_process_while_a_call_runs() {
    let mut server = Process::start(&["weather"]);
    server.ask(initialize("2025-11-25")).await;
    server
        .send(&request(1, "tools/call", wait(3600.0, 1)))
        .await;
    server.ask(request(2, "ping", json!({}))).await;
    terminate(&server).await;
    assert!(soon(server.child.wait()).await.unwrap().success());
}

#[tokio::test]
async fn a_signal_ends_an_http_process() {
    let mut server = Process::start(&["weather", "--http", "127.0.0.1:0"]);
    // Its first line is no message, but it is the sign that it listens.
    server.close_stdin();
    let line = soon(server.line()).await;
    assert!(
        line.starts_with("listening on http://127.0.0.1:") && line.ends_with("/mcp"),
        "{line}"
    );
    terminate(&server).await;
    assert!(soon(server.child.wait()).await.unwrap().success());
}

#[tokio::test]
async fn bad_arguments_on_the_command_line_are_refused() {
    for arguments in [
        &["nowhere"] as &[&str],
        &["travel", "--protocol", "2025-01-01"],
        &["travel", "--page-size", "0"],
        &["travel", "--http", "nowhere"],
    ] {
        let mut server = Process::start(arguments);
        assert!(
            !soon(server.child.wait()).await.unwrap().success(),
            "{arguments:?}"
        );
    }
}

#[tokio::test]
async fn a_cancelled_call_stops_and_is_not_answered() {
    for legacy in [true, false] {
        let ask = |id: u64, method: &str, params: Value| {
            if legacy {
                request(id, method, params)
            } else {
                modern(id, method, params)
            }
        };
        let mut server = Process::start(&["weather"]);
        if legacy {
            server.ask(initialize("2025-11-25")).await;
        }
        server.send(&ask(1, "tools/call", wait(3600.0, 1))).await;
        let params = json!({ "requestId": 1, "reason": "no patience" });
        let note =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        server.send(&note).await;
        let mut id = 1;
        loop {
            id += 1;
            let uri = json!({ "uri": "weather://activity" });
            let answer = server.ask(ask(id, "resources/read", uri)).await;
            assert_eq!(answer["id"], id, "only reads are answered: {answer}");
            let activity = answer["result"]["contents"][0]["text"].as_str().unwrap();
            if activity == r#"{"running":0,"finished":0,"cancelled":1}"# {
                break;
            }
            assert!(id < 10_000, "{activity}");
        }
    }
}

#[tokio::test]
async fn a_question_of_a_cancelled_call_is_withdrawn() {
    let mut server = Process::start(&["calendar"]);
    server.ask(initialize("2025-11-25")).await;
    let call = json!({ "name": "listWorkspaces" });
    let question = server.ask(request(5, "tools/call", call)).await;
    assert_eq!(question["method"], "roots/list");
    let params = json!({ "requestId": 5 });
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    let withdrawn = server.ask(note).await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
}

#[tokio::test]
async fn a_client_that_cannot_answer_gets_a_tool_error() {
    let mut server = Process::start(&["calendar"]);
    server.ask(initialize("2025-11-25")).await;
    let call = json!({ "name": "listWorkspaces" });
    let question = server.ask(request(5, "tools/call", call)).await;
    let error = json!({ "code": -32601, "message": "no roots here" });
    let refusal = json!({ "jsonrpc": "2.0", "id": question["id"], "error": error });
    let answer = server.ask(refusal).await;
    assert_eq!(answer["result"]["isError"], true);
}

#[tokio::test]
async fn subscriptions_share_stdout_and_say_which_they_are() {
    let id = "io.modelcontextprotocol/subscriptionId";
    let uri = "weather://forecast/Paris/2024-06-15";
    let mut server = Process::start(&["weather"]);
    let all = json!({
        "toolsListChanged": true, "promptsListChanged": true,
        "resourceSubscriptions": [uri, "weather://forecast/Atlantis/2024-06-15"],
    });
    let params = json!({ "notifications": all });
    let first = server
        .ask(modern("sub", "subscriptions/listen", params))
        .await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"][id], "sub");
    assert_eq!(
        first["params"]["notifications"],
        json!({ "resourceSubscriptions": [uri] })
    );
    let params = json!({ "notifications": {} });
    let second = server.ask(modern(8, "subscriptions/listen", params)).await;
    assert_eq!(second["params"]["_meta"][id], 8);

    let day = json!({ "city": "Paris", "date": "2024-06-15" });
    let advance = json!({ "name": "advanceForecast", "arguments": day });
    let news = server.ask(modern(9, "tools/call", advance.clone())).await;
    assert_eq!(news["method"], "notifications/resources/updated");
    assert_eq!(news["params"]["_meta"][id], "sub");
    assert_eq!(news["params"]["uri"], uri);
    assert_eq!(server.receive().await["id"], 9);

    server.close_stdin();
    let mut ends = [server.receive().await, server.receive().await];
    ends.sort_by_key(|end| end["id"].to_string());
    assert_eq!(ends[0]["result"]["_meta"][id], "sub");
    assert_eq!(ends[1]["result"]["_meta"][id], 8);
    assert_eq!(server.receive().await, Value::Null);
}

#[tokio::test]
async fn a_cancelled_subscription_hears_no_more() {
    let mut server = Process::start(&["calendar"]);
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let first = server.ask(modern(1, "subscriptions/listen", params)).await;
    assert_eq!(
        first["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    let book = |id: u64, tool: &str| {
        let arguments = json!({ "title": "Flight", "start": "2024-06-15", "trip": "paris" });
        modern(
            id,
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    };
    let news = server.ask(book(2, "createCalendarEvent")).await;
    assert_eq!(news["method"], "notifications/tools/list_changed");
    assert_eq!(server.receive().await["id"], 2);
    let params = json!({ "requestId": 1 });
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    server.send(&note).await;
    let mut id = 2;
    loop {
        // The subscription ends soon; from then on nothing comes between the answers.
        id += 1;
        let tool = if id % 2 == 1 {
            "cancelTrip"
        } else {
            "createCalendarEvent"
        };
        let answer = server.ask(book(id, tool)).await;
        if answer["id"] == id {
            break;
        }
        assert_eq!(server.receive().await["id"], id);
        assert!(id < 10_000);
    }
}
