//! K11, K14: event streams of servers in every legal form, or none at all, as a client of the gateway sees them.

use crate::support::{
    gateway,
    hb::{Hb, Reply, Script},
    stock::{Stock, at, servers},
};
use serde_json::{Value, json};

const TEXT: &str = "\u{4e2d}\u{6587} \u{1f469}\u{200d}\u{1f680} \u{2028}\n\"x\"";

fn answering<F>(reply: F) -> Script
where
    F: Fn(Value, Value) -> Reply + Send + Sync + 'static,
{
    Stock::new("one", json!({"tools": ["t"]}))
        .legacy()
        .on("tools/call", move |seen| {
            let answer = seen.result(json!({"content": [{"type": "text", "text": TEXT}]}));
            reply(seen.progress(1), answer)
        })
}

fn pretty(message: &Value, line: &str, end: &str) -> String {
    let text = serde_json::to_string_pretty(message).unwrap();
    let lines: Vec<String> = text.lines().map(|l| format!("{line}{l}{end}")).collect();
    format!("{}{end}", lines.concat())
}

#[tokio::test]
async fn a_stream_in_any_legal_form_brings_the_answer_whole() {
    let forms: Vec<(&str, Script)> = vec![
        (
            "line feeds",
            answering(|_, a| {
                Reply::events()
                    .raw(pretty(&a, "data: ", "\n"))
                    .in_pieces_of(1)
            }),
        ),
        (
            "carriage returns and line feeds",
            answering(|_, a| {
                Reply::events()
                    .raw(pretty(&a, "data: ", "\r\n"))
                    .in_pieces_of(1)
            }),
        ),
        (
            "carriage returns",
            answering(|_, a| {
                Reply::events()
                    .raw(pretty(&a, "data:", "\r"))
                    .in_pieces_of(1)
            }),
        ),
        (
            "comments first",
            answering(|_, a| Reply::events().raw(": ka\n\n:\n\n").message(a)),
        ),
        (
            "an empty event first",
            answering(|_, a| {
                Reply::events()
                    .raw("id: 0\nretry: 10\ndata:\n\n")
                    .message(a)
                    .in_pieces_of(3)
            }),
        ),
        (
            "other events first",
            answering(|p, a| {
                Reply::events()
                    .raw("event: ping\ndata: {}\n\n")
                    .message(p)
                    .message_with_id("7", a)
            }),
        ),
        (
            "a byte order mark",
            answering(|_, a| Reply::events().raw("\u{feff}").message(a)),
        ),
        (
            "progress first",
            answering(|p, a| {
                Reply::events()
                    .message(p.clone())
                    .message(p)
                    .message(a)
                    .in_pieces_of(2)
            }),
        ),
        (
            "more after it",
            answering(|p, a| Reply::events().message(a).message(p)),
        ),
        (
            "no end",
            answering(|_, a| Reply::events().message(a).silence()),
        ),
    ];
    for (form, script) in forms {
        let hb = script.start().await;
        let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
        for (path, tool) in [("/mcp", "one__t"), ("/mcp/one", "t")] {
            let client = gw.client(path).connected().await;
            assert_eq!(client.text(tool, json!({})).await, TEXT, "{form}");
            let modern = gw
                .client(path)
                .modern("tools/call", json!({"name": tool}))
                .await
                .message()
                .await;
            assert_eq!(modern["result"]["content"][0]["text"], TEXT, "{form}");
        }
        gw.stop().await;
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_an_error_of_its_call_only() {
    let hb = answering(|p, _| Reply::events().message(p).cut())
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let answer = client.call("one__t", json!({})).await;
    assert_eq!(answer["error"]["code"], -31001, "{answer}");
    assert_eq!(answer["error"]["data"]["retrySafe"], false);
    assert_eq!(client.tools().await, ["one__t"]);
    assert_eq!(
        hb.count("tools/call"),
        1,
        "what may have run is not sent again"
    );
    gw.stop().await;
}

#[tokio::test]
async fn one_server_without_a_standing_stream_costs_the_others_nothing() {
    for refusal in [405, 404, 400, 406, 501] {
        let quiet = Stock::of_all("quiet")
            .legacy()
            .on("GET", move |_| Reply::status(refusal))
            .start()
            .await;
        let loud = Stock::of_all("loud");
        let hb = loud.streaming().start().await;
        let gw = gateway(&servers(&[
            ("quiet", at(&quiet, "")),
            ("loud", at(&hb, "")),
        ]))
        .await;
        let client = gw.client("/mcp").connected().await;
        for server in ["quiet", "loud"] {
            client
                .text(&format!("{server}__{server}-tool"), json!({}))
                .await;
        }
        loud.streams(2).await;
        let mut events = client.listen().await;
        loud.say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hello"}}));
        let note = events.next_of("notifications/message").await;
        assert_eq!(note["params"]["data"], "hello", "{refusal}");
        assert!(quiet.count("GET") <= 2, "{refusal}: {:?}", quiet.methods());
        gw.stop().await;
    }
}

#[tokio::test]
async fn a_session_with_no_streaming_server_has_a_stream_all_the_same() {
    let quiet = Stock::of_all("quiet").legacy().start().await;
    let gw = gateway(&servers(&[("quiet", at(&quiet, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    client.text("quiet__quiet-tool", json!({})).await;
    assert!(
        events
            .is_silent_for(std::time::Duration::from_millis(100))
            .await
    );
    gw.stop().await;
}

#[tokio::test]
async fn messages_before_the_answer_to_initialize_are_not_lost() {
    let hb = Hb::legacy()
        .on("initialize", |seen| {
            let result = json!({"protocolVersion": seen.json()["params"]["protocolVersion"], "capabilities": {"tools": {}, "logging": {}}, "serverInfo": {"name": "e", "version": "1"}});
            Reply::events()
                .message(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "early"}}))
                .message(seen.result(result))
        })
        .on("tools/list", |seen| Reply::json(seen.result(json!({"tools": [{"name": "t"}]}))))
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    client.tools().await;
    let note = events.next_of("notifications/message").await;
    assert_eq!(note["params"]["data"], "early");
    gw.stop().await;
}
