//! Event streams of calls in every legal form, and their resumption (K10, K13, K14).

use super::{
    hb::{Gate, Hb, Reply},
    *,
};

/// The answer's text, laid out as `form` says.
fn written(form: &str, message: &Value) -> String {
    let text = message.to_string();
    let pretty = serde_json::to_string_pretty(message).unwrap();
    let lines = |end: &str| {
        let lines = pretty.lines().map(|l| format!("data: {l}{end}"));
        lines.collect::<String>() + end
    };
    match form {
        "lf" => format!("data: {text}\n\n"),
        "crlf" => format!("event: message\r\ndata: {text}\r\n\r\n"),
        "cr" => format!("data: {text}\r\r"),
        "no space" => format!("data:{text}\n\n"),
        "many lines" => lines("\n"),
        "many lines, crlf" => lines("\r\n"),
        "mixed" => format!(
            "\u{feff}: hi\n\nid: 1\nretry: 10\ndata: \n\nid\nunknown: x\ndata: {text}\r\n\n"
        ),
        "comments" => format!(": a\n: b\n\n:\ndata: {text}\n: c\n\n: d\n\n"),
        other => panic!("{other}"),
    }
}

const FORMS: [&str; 8] = [
    "lf",
    "crlf",
    "cr",
    "no space",
    "many lines",
    "many lines, crlf",
    "mixed",
    "comments",
];

#[tokio::test]
async fn every_legal_form_is_read_however_it_is_cut() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let name = tool(seen);
            let (form, piece) = name.split_once('/').unwrap();
            let answer =
                seen.result(json!({"text": "漢字かな交じり文 🌉 é", "list": [1, {"a": null}]}));
            let text = written(form, &answer);
            Reply::events()
                .raw(text)
                .in_pieces_of(piece.parse().unwrap())
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    for form in FORMS {
        for piece in [1, 2, 3, 7, 1000] {
            let answer = call(&link, &format!("{form}/{piece}")).await;
            let answer = answer.unwrap_or_else(|fault| panic!("{form}/{piece}: {fault}"));
            let text = &answer["result"]["text"];
            assert_eq!(text, "漢字かな交じり文 🌉 é", "{form}/{piece}");
        }
    }
}

#[tokio::test]
async fn the_answer_may_be_any_event_and_what_follows_it_is_not_delivered() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}});
            Reply::events()
                .raw("id: 0\ndata:\n\n")
                .message(seen.progress(1))
                .message(log)
                .raw("event: ping\ndata: {\"not\": \"a message\"}\n\n")
                .message(seen.result(json!({"done": true})))
                .message(seen.progress(2))
        })
        .start()
        .await;
    let (link, ear) = legacy(&hb).await;
    let request = tool_call(&link, "a");
    let id = request.id;
    link.call(request).await.unwrap();
    let heard = ear.heard();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].0["params"]["progress"], 1);
    assert_eq!(heard[1].0["method"], "notifications/message");
    assert!(heard.iter().all(|(_, call)| *call == Some(id)));
}

#[tokio::test]
async fn a_request_of_the_server_arrives_while_the_call_runs() {
    let gate = Gate::new();
    let held = gate.clone();
    let hb = Hb::legacy()
        .on("tools/call", move |seen| {
            let ask = json!({"jsonrpc": "2.0", "id": "e/1", "method": "elicitation/create", "params": {}});
            Reply::events().message(ask).gate(&held).message(seen.result(json!({})))
        })
        .start()
        .await;
    let (link, ear) = legacy(&hb).await;
    let request = tool_call(&link, "a");
    let id = request.id;
    let answering = async {
        ear.until(|e| !e.heard().is_empty()).await;
        let (ask, call) = ear.heard().remove(0);
        assert_eq!((ask["id"].as_str(), call), (Some("e/1"), Some(id)));
        let answer = json!({"jsonrpc": "2.0", "id": "e/1", "result": {"action": "accept"}});
        link.post(answer.to_string().into()).await.unwrap();
        hb.wait_for(|s| s.method() == "response").await;
        gate.open();
    };
    let (answer, ()) = tokio::join!(link.call(request), answering);
    assert!(answer.is_ok());
}

#[tokio::test]
async fn batches_of_an_older_server_are_taken_apart() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let batch = json!([
                seen.progress(1),
                seen.result(json!({"n": 1})),
                seen.progress(2)
            ]);
            match tool(seen).as_str() {
                "json" => Reply::json(batch),
                _ => Reply::events().message(batch),
            }
        })
        .start()
        .await;
    let (link, ear) = legacy(&hb).await;
    assert_eq!(call(&link, "json").await.unwrap()["result"]["n"], 1);
    assert_eq!(call(&link, "events").await.unwrap()["result"]["n"], 1);
    assert_eq!(ear.heard().len(), 2);
}

/// A server that ends the call's first stream after an event with id `1`, and goes on by GET.
async fn broken<F>(cut: bool, rest: F) -> Hb
where
    F: Fn(&Value) -> Reply + Send + Sync + 'static,
{
    let asked = Arc::new(Mutex::new(Value::Null));
    let note = asked.clone();
    Hb::legacy()
        .on("tools/call", move |seen| {
            *note.lock().unwrap() = seen.result(json!({"resumed": true}));
            let reply = Reply::events()
                .raw("id: 1\nretry: 20\ndata: \n\n")
                // Not complete, so it does not count.
                .raw("id: 2\ndata: {\"jsonrpc\"");
            if cut { reply.cut() } else { reply }
        })
        .on("GET", move |seen| match seen.header("last-event-id") {
            None => Reply::status(405),
            Some(_) => rest(&asked.lock().unwrap()),
        })
        .start()
        .await
}

#[tokio::test]
async fn a_stream_that_ends_early_is_resumed_and_the_call_not_sent_again() {
    for cut in [true, false] {
        let hb = broken(cut, |answer| Reply::events().message(answer.clone())).await;
        let (link, _) = legacy(&hb).await;
        let answer = call(&link, "a").await.unwrap();
        assert_eq!(answer["result"]["resumed"], true);
        assert_eq!(hb.count("tools/call"), 1);
        let get = hb.wait_for(|s| s.header("last-event-id").is_some()).await;
        assert_eq!(get.header("last-event-id"), Some("1"));
        assert_eq!(get.header("mcp-session-id"), Some("session-1"));
        assert_eq!(get.header("accept"), Some("text/event-stream"));
        assert!(get.header("content-type").is_none());
    }
}

#[tokio::test]
async fn a_server_may_let_itself_be_polled() {
    let polls = Arc::new(Mutex::new(0));
    let count = polls.clone();
    let hb = broken(false, move |answer| {
        let mut polls = count.lock().unwrap();
        *polls += 1;
        match *polls {
            1 => Reply::events().raw("id: 2\nretry: 10\ndata:\n\n"),
            2 => Reply::status(503),
            3 => Reply::events().raw("id: 3\ndata:\n\n").cut(),
            _ => Reply::events().message_with_id("4", answer.clone()),
        }
    })
    .await;
    let (link, _) = legacy(&hb).await;
    assert!(call(&link, "a").await.is_ok());
    let lasts: Vec<String> = hb
        .seen()
        .iter()
        .filter_map(|s| s.header("last-event-id").map(str::to_owned))
        .collect();
    assert_eq!(lasts, ["1", "2", "2", "3"]);
    assert_eq!(hb.count("tools/call"), 1);
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_is_a_crash_of_the_call_only() {
    let hb = broken(true, |_| Reply::status(405)).await;
    let (link, _) = legacy(&hb).await;
    let fault = call(&link, "a").await.unwrap_err();
    assert!(matches!(fault, Fault::Crashed { .. }), "{fault:?}");
    assert!(fault.may_have_run());
    assert!(link.is_alive());
}

#[tokio::test]
async fn resuming_for_ever_is_ended_by_the_calls_own_limit() {
    let hb = broken(false, |_| {
        Reply::events().raw("id: 2\nretry: 10\ndata:\n\n").silence()
    })
    .await;
    let mut settings = settings(&hb);
    settings.call = Duration::from_millis(600);
    let (link, _) = legacy_with(settings).await;
    assert!(matches!(call(&link, "a").await, Err(Fault::TimedOut(_))));
    hb.wait_for(|s| s.method() == "notifications/cancelled")
        .await;
}

#[tokio::test]
async fn a_modern_stream_that_breaks_is_not_resumed() {
    let hb = Hb::modern()
        .on("tools/call", |_| {
            Reply::events().raw("id: 1\ndata:\n\n").cut()
        })
        .start()
        .await;
    let (link, _) = modern_with(settings(&hb)).await;
    assert!(matches!(call(&link, "a").await, Err(Fault::Crashed { .. })));
    assert_eq!(hb.count("GET"), 0);
}
