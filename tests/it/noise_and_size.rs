//! K17, K19, K20: lines that are no messages, messages of any size and form, and the bounds on both.

use crate::support::{
    Wire, gateway, sb,
    stock::{Stock, at, servers},
};
use serde_json::json;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn noise_on_stdout_costs_no_message_and_is_counted() {
    let gw = gateway(&format!("servers: {{ one: {} }}\n", sb(&["--noisy"], ""))).await;
    for path in ["/mcp", "/mcp/one"] {
        let prefix = if path == "/mcp" { "one__" } else { "" };
        let client = gw.client(path).connected().await;
        assert!(client.tools().await.contains(&format!("{prefix}echo")));
        for n in 0..5 {
            let text = client.text(&format!("{prefix}echo"), json!({"n": n})).await;
            assert_eq!(text, json!({"n": n}).to_string());
        }
    }
    let client = gw.client("/mcp");
    let params = json!({"name": "one__echo", "arguments": {"m": 1}});
    let answer = client.modern("tools/call", params).await.message().await;
    assert_eq!(
        answer["result"]["content"][0]["text"], "{\"m\":1}",
        "{answer}"
    );
    assert!(gw.router.servers[0].metrics.noise.get() > 0);
    gw.stop().await;
}

#[tokio::test]
async fn odd_lines_between_messages_are_not_glued_to_them() {
    let gw = gateway(&format!("servers: {{ one: {} }}\n", sb(&[], ""))).await;
    let client = gw.client("/mcp").connected().await;
    for noise in [
        "[INFO] started \u{1f680}",
        "-32",
        "{broken",
        "{\"id\":1}",
        "[]",
        "[1,2]",
        "null",
        "\"text\"",
        "\u{feff}",
        "{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}",
    ] {
        let text = client
            .text("one__raw", json!({"text": noise, "chunk": 1}))
            .await;
        assert_eq!(text, "written", "after {noise:?}");
        assert_eq!(
            client.text("one__echo", json!({"a": noise})).await,
            json!({"a": noise}).to_string()
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_message_of_five_mebibytes_is_the_same_however_it_is_cut() {
    let gw = gateway(&format!("servers: {{ one: {} }}\n", sb(&[], ""))).await;
    let client = gw.client("/mcp").connected().await;
    for chunk in [5 * MIB + 200, 64 << 10] {
        let arguments = json!({"bytes": 5 * MIB, "chunk": chunk, "id_last": true});
        let text = client.text("one__big", arguments).await;
        assert_eq!(text.len(), 5 * MIB);
        assert!(text.bytes().all(|b| b == b'x'));
    }
    gw.stop().await;
}

#[tokio::test]
async fn large_arguments_reach_both_transports_whole() {
    let stock = Stock::of_all("two").legacy().start().await;
    let gw = gateway(&servers(&[("one", sb(&[], "")), ("two", at(&stock, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let text = "\u{e9}\u{1f680}\n\"".repeat(MIB / 2);
    for tool in ["one__echo", "two__two-tool"] {
        let answer = client.text(tool, json!({"t": text})).await;
        assert!(
            answer.contains(&json!(text).to_string()),
            "{tool} got it whole"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn characters_survive_every_way_there_and_back() {
    let hb = Stock::of_all("two").legacy().start().await;
    let gw = gateway(&servers(&[("one", sb(&[], "")), ("two", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let text = "a\u{2028}b\u{2029}c\u{85}d \u{1f469}\u{200d}\u{1f680} \u{4e2d}\u{6587} \u{0}\u{7f}\u{fffd}";
    for chunk in [1, 3, 1000] {
        let got = client
            .text("one__text", json!({"text": text, "chunk": chunk}))
            .await;
        assert_eq!(got, text);
    }
    let got = client.text("one__echo", json!({"t": text})).await;
    assert_eq!(got, json!({"t": text}).to_string());
    let got = client.text("two__two-tool", json!({"t": text})).await;
    let said: serde_json::Value = serde_json::from_str(&got).unwrap();
    assert_eq!(said["arguments"]["t"], text);
    gw.stop().await;
}

#[tokio::test]
async fn a_lone_byte_in_an_answer_fails_or_mends_that_answer_at_once() {
    let gw = gateway(&format!("servers: {{ one: {} }}\n", sb(&[], ""))).await;
    let client = gw.client("/mcp").connected().await;
    client.tools().await;
    let began = Instant::now();
    let answer = client.call("one__bad-utf8", json!({})).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(
        answer.get("error").is_some() || answer["result"]["content"][0]["text"].is_string(),
        "{answer}"
    );
    assert_eq!(client.text("one__echo", json!({})).await, "{}");
    gw.stop().await;
}

#[tokio::test]
async fn an_answer_over_the_cap_fails_its_call_and_no_other() {
    let gw = gateway(&format!(
        "servers: {{ one: {} }}\n",
        sb(&[], "limits: { frame: 256KiB }")
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let twin = client.twin();
    let other = tokio::spawn(async move { twin.text("one__sleep", json!({"ms": 300})).await });
    for id_last in [false, true] {
        let answer = client
            .call("one__big", json!({"bytes": MIB, "id_last": id_last}))
            .await;
        assert_eq!(answer["error"]["code"], -31001, "{answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("`one`"),
            "{answer}"
        );
    }
    assert_eq!(other.await.unwrap(), "slept");
    assert_eq!(
        client
            .text("one__big", json!({"bytes": 200 << 10}))
            .await
            .len(),
        200 << 10
    );
    gw.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_413_and_an_error_in_json() {
    let gw = gateway(&format!(
        "limits: {{ body: 64KiB }}\nservers: {{ one: {} }}\n",
        sb(&[], "")
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let fits = "x".repeat(60 << 10);
    assert!(
        client
            .text("one__echo", json!({"t": fits}))
            .await
            .contains(&fits)
    );
    let large = "x".repeat(65 << 10);
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "one__echo", "arguments": {"t": large}}});
    let refused = client.post(&message).await;
    assert_eq!(refused.status, 413);
    let body = refused.json().await;
    assert_eq!(body["jsonrpc"], "2.0");
    assert!(body["error"]["code"].is_i64(), "{body}");
    let modern = client
        .modern(
            "tools/call",
            json!({"name": "one__echo", "arguments": {"t": large}}),
        )
        .await;
    assert_eq!(modern.status, 413);
    // The session is none the worse.
    assert_eq!(client.text("one__echo", json!({})).await, "{}");
    gw.stop().await;
}

#[tokio::test]
async fn a_body_that_never_ends_is_cut_off_at_the_limit() {
    let gw = gateway(&format!(
        "limits: {{ body: 64KiB }}\nservers: {{ one: {} }}\n",
        sb(&[], "")
    ))
    .await;
    let mut wire = Wire::to(gw.address).await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    assert!(wire.send(head).await);
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    let mut sent = 0;
    // Far more than any buffer on the way holds; a gateway that reads on would take it all.
    while sent < 64 * MIB && wire.send(&chunk).await {
        sent += 0x4000;
        if !wire.read.is_empty() {
            break;
        }
        let mut byte = [0u8; 512];
        if let Ok(n) = wire.stream.try_read(&mut byte) {
            wire.read.extend_from_slice(&byte[..n]);
        }
    }
    assert!(sent < 32 * MIB, "{sent} bytes were taken");
    assert_eq!(wire.status().await, 413);
    gw.stop().await;
}

#[tokio::test]
async fn an_announced_giant_is_refused_before_it_is_sent() {
    let gw = gateway(&format!("servers: {{ one: {} }}\n", sb(&[], ""))).await;
    let mut wire = Wire::to(gw.address).await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: 2147483648\r\n\r\n";
    assert!(wire.send(head).await);
    assert_eq!(wire.status().await, 413);
    gw.stop().await;
}
