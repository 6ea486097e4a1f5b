//! Event streams of servers, in every legal form, end to end.

use crate::support::{
    TestGateway, echoing, gateway,
    hb::{Hb, Reply, Seen},
    text,
};
use serde_json::{Value, json};
use std::time::Duration;

const TEXT: &str = "日本語 🚀 ü \u{2028} line";

async fn over(hb: &Hb) -> TestGateway {
    gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await
}

/// A message as one event with these line ends, its JSON spread over several `data` lines.
fn spread(message: &Value, end: &str, space: &str) -> String {
    let pretty = serde_json::to_string_pretty(message).unwrap();
    let lines: Vec<String> = pretty
        .lines()
        .map(|l| format!("data:{space}{l}{end}"))
        .collect();
    format!("event: message{end}{}{end}", lines.concat())
}

/// An answer in so many odd forms; each is legal.
fn forms(seen: &Seen) -> Vec<(String, String)> {
    let answer = seen.result(text(TEXT));
    let note = seen.progress(1);
    let mut forms = Vec::new();
    for (name, end) in [("LF", "\n"), ("CRLF", "\r\n"), ("CR", "\r")] {
        for (spaced, space) in [("a space", " "), ("no space", "")] {
            let before = format!(
                ": comment{end}{end}:{end}id: 1{end}{end}data:{end}{end}retry: 1000{end}{end}id{end}data{end}{end}"
            );
            let body = format!(
                "{before}{}{}",
                spread(&note, end, space),
                spread(&answer, end, space)
            );
            forms.push((format!("{name}, {spaced}"), body));
        }
    }
    forms.push((
        "a byte order mark".into(),
        format!("\u{feff}data: {answer}\n\n"),
    ));
    forms.push((
        "unknown fields".into(),
        format!("foo: bar\nevent: message\nid: a\u{0}b\ndata: {answer}\nbaz\n\n"),
    ));
    forms.push((
        "another event first".into(),
        format!("event: ping\ndata: {{}}\n\nevent: ping\ndata: not json\n\ndata: {answer}\n\n"),
    ));
    forms.push((
        "an empty name".into(),
        format!("event:\ndata: {answer}\n\n"),
    ));
    forms.push((
        "the answer of nobody first".into(),
        format!(
            "data: {}\n\ndata: {answer}\n\n",
            json!({"jsonrpc": "2.0", "id": 987654, "result": {}})
        ),
    ));
    forms.push(("a request and a log first".into(), format!(
        "data: {}\n\ndata: {}\n\ndata: {answer}\n\n",
        json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}),
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}),
    )));
    forms
}

const FORMS: usize = 12;

#[tokio::test]
async fn every_legal_form_of_a_stream_is_read_however_it_is_cut_into_pieces() {
    let hb = echoing().on("tools/call", |seen| {
        let arguments = &seen.json()["params"]["arguments"];
        let (_, body) = forms(seen).swap_remove(arguments["form"].as_u64().unwrap() as usize);
        Reply::events()
            .raw(body)
            .in_pieces_of(arguments["piece"].as_u64().unwrap() as usize)
    });
    let hb = hb.start().await;
    let gw = over(&hb).await;
    let client = gw.client("/mcp").connected().await;
    for form in 0..FORMS {
        for piece in [1, 2, 3, 7, 64, 100_000] {
            let answer = client
                .call("one__echo", json!({"form": form, "piece": piece}))
                .await;
            assert_eq!(
                answer["result"]["content"][0]["text"], TEXT,
                "form {form}, pieces of {piece}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn what_reaches_the_client_is_one_line_of_data_whatever_the_server_sent() {
    let hb = echoing()
        .on("tools/call", |seen| {
            Reply::events()
                .raw(spread(&seen.progress(1), "\r\n", " "))
                .raw(spread(&seen.result(text(TEXT)), "\r", ""))
                .in_pieces_of(1)
        })
        .start()
        .await;
    let gw = over(&hb).await;
    let client = gw.client("/mcp").connected().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo", "_meta": {"progressToken": 1}}});
    let raw = client.post(&call).await.text().await;
    let data = raw.lines().filter(|l| l.starts_with("data: {")).count();
    assert_eq!(data, 2, "{raw}");
    assert!(raw.contains(TEXT), "{raw}");
}

#[tokio::test]
async fn the_same_over_the_standing_stream() {
    let hb = echoing().on("GET", |_| {
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": TEXT}});
        Reply::events().raw(": hello\r\n\r\n").raw(spread(&log, "\r\n", " ")).in_pieces_of(1).silence()
    });
    let hb = hb.start().await;
    let gw = over(&hb).await;
    let client = gw.client("/mcp").connected().await;
    client.text("one__echo", json!({})).await;
    assert_eq!(
        client.listen().await.next().await.unwrap()["params"]["data"],
        TEXT
    );
}

#[tokio::test]
async fn an_error_in_a_stream_or_a_body_is_an_error_for_the_client() {
    let error = |seen: &Seen| {
        let mut error = seen.error(-32042, "no");
        error["error"]["data"] = json!({"deep": [1, {"x": null}]});
        error
    };
    let as_json = echoing()
        .on("tools/call", move |seen| Reply::json(error(seen)))
        .start()
        .await;
    let as_400 = echoing()
        .on("tools/call", move |seen| {
            Reply::json(error(seen)).with_status(400)
        })
        .start()
        .await;
    let as_events = echoing()
        .on("tools/call", move |seen| {
            Reply::events().message(error(seen))
        })
        .start()
        .await;
    for hb in [&as_json, &as_400, &as_events] {
        let gw = over(hb).await;
        let client = gw.client("/mcp").connected().await;
        for accept in ["application/json", "text/event-stream"] {
            let call = json!({"jsonrpc": "2.0", "id": "e", "method": "tools/call", "params": {"name": "one__echo"}}).to_string();
            let response = client
                .send(http::Method::POST, &[("accept", accept)], call)
                .await;
            assert_eq!(response.status, 200);
            let answer = response.message().await;
            assert_eq!(
                answer,
                json!({"jsonrpc": "2.0", "id": "e", "error": {"code": -32042, "message": "no", "data": {"deep": [1, {"x": null}]}}})
            );
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_or_garbles_without_an_answer_is_a_clear_error() {
    let hb = echoing().on(
        "tools/call",
        |seen| match seen.json()["params"]["arguments"]["how"].as_str().unwrap() {
            "ends" => Reply::events().message(seen.progress(1)),
            "cut" => Reply::events()
                .raw(format!("data: {}", seen.result(text("half"))))
                .cut_short(),
            "unfinished" => Reply::events().raw(format!("data: {}\n", seen.result(text("half")))),
            "garbled" => Reply::events()
                .raw("data: {\"jsonrpc\": oops\n\n")
                .wait(Duration::ZERO),
            _ => Reply::status(200).header("content-type", "text/event-stream"),
        },
    );
    let hb = hb.start().await;
    let gw = over(&hb).await;
    let client = gw.client("/mcp").connected().await;
    for how in ["ends", "cut", "unfinished", "garbled", "empty"] {
        let answer = client.call("one__echo", json!({"how": how})).await;
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["data"]["server"]),
            (&json!(-31001), &json!("one")),
            "{how}: {answer}"
        );
    }
}
