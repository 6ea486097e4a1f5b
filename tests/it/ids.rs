//! JSON-RPC ids: the client's come back exactly, the server's are ours, and none is ever mixed up.

use crate::support::{
    Client, TestGateway, arguments, echoing, gateway,
    hb::{Gate, Hb, Reply},
    modern_echoing, sb, text,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

/// Ids as they stand in a message.
const IDS: [&str; 12] = [
    r#""1""#,
    "1",
    "0",
    "-1",
    "9007199254740993",
    "123456789012345678901234567890",
    r#""ü\u00fc""#,
    r#""""#,
    r#""a\/b""#,
    "\"\u{2028}\"",
    r#""null""#,
    r#""\ud83d\ude80 \n""#,
];

async fn three_servers(old: &Hb, new: &Hb) -> TestGateway {
    let yaml = format!(
        "servers: {{ old: {{ url: {:?} }}, new: {{ url: {:?} }}, local: {} }}\n",
        old.url(),
        new.url(),
        sb(&[], "isolation: shared")
    );
    gateway(&yaml).await
}

fn message(id: &str, method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

#[tokio::test]
async fn every_id_comes_back_exactly_whoever_answers() {
    let (old, new) = (echoing().start().await, modern_echoing().start().await);
    let gw = three_servers(&old, &new).await;
    let cases = [
        ("/mcp", "tools/call", json!({"name": "old__echo"})),
        ("/mcp", "tools/call", json!({"name": "new__echo"})),
        ("/mcp", "tools/call", json!({"name": "local__echo"})),
        ("/mcp", "tools/call", json!({"name": "nobody__knows"})),
        ("/mcp", "tools/call", json!({})),
        ("/mcp", "tools/list", json!({})),
        ("/mcp", "ping", json!({})),
        ("/mcp", "no/such/method", json!({})),
        ("/mcp/old", "tools/call", json!({"name": "echo"})),
        ("/mcp/old", "vendor/method", json!({})),
        ("/mcp/local", "tools/call", json!({"name": "echo"})),
    ];
    for path in ["/mcp", "/mcp/old", "/mcp/local"] {
        let client = gw.client(path).connected().await;
        for (_, method, params) in cases.iter().filter(|(p, ..)| *p == path) {
            for id in IDS {
                for accept in ["application/json", "text/event-stream"] {
                    let headers = [("accept", accept)];
                    let response = client
                        .send(Method::POST, &headers, message(id, method, params))
                        .await;
                    let answer = response.text().await;
                    assert!(
                        answer.contains(&format!(r#""id":{id},"#))
                            || answer.contains(&format!(r#""id":{id}}}"#)),
                        "{method} {params} {id}: {answer}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn a_modern_clients_ids_come_back_exactly() {
    let (old, new) = (echoing().start().await, modern_echoing().start().await);
    let gw = three_servers(&old, &new).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let client = gw.client("/mcp");
    for name in ["old__echo", "new__echo", "local__echo", "nobody__knows"] {
        for id in IDS {
            let headers = [
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", name),
            ];
            let params = json!({"name": name, "_meta": meta});
            let answer = client
                .send(Method::POST, &headers, message(id, "tools/call", &params))
                .await
                .text()
                .await;
            assert!(
                answer.contains(&format!(r#""id":{id},"#)),
                "{name} {id}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_no_id_is_refused_at_once_and_reaches_no_server() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    for revision in ["2025-03-26", "2025-11-25"] {
        for path in ["/mcp", "/mcp/one"] {
            let client = gw.client(path).revision(revision).connected().await;
            for id in [
                "null", "1.5", "1.0", "1e3", "true", "{}", "[1]", "-", "01", "+1",
            ] {
                let call = message(id, "tools/call", &json!({"name": "echo"}));
                let response = client.send(Method::POST, &[], call).await;
                assert_eq!(response.status, StatusCode::BAD_REQUEST, "{id}");
                let error = response.json().await;
                let code = error["error"]["code"].as_i64().unwrap();
                assert!(
                    code == -32600 || (code == -32700 && ["-", "01", "+1"].contains(&id)),
                    "{id}: {error}"
                );
                assert!(error["id"].is_null());
            }
        }
    }
    assert_eq!(hb.count("tools/call"), 0);
}

#[tokio::test]
async fn a_request_without_an_id_is_refused_and_never_run() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    for path in ["/mcp", "/mcp/one"] {
        let client = gw.client(path).connected().await;
        // So that its link to the server is open and a notification would go out.
        client
            .text(if path == "/mcp" { "one__echo" } else { "echo" }, json!({}))
            .await;
        let before = hb.seen().len();
        for method in [
            "tools/call",
            "tools/list",
            "resources/read",
            "prompts/get",
            "ping",
            "initialize",
            "logging/setLevel",
            "completion/complete",
        ] {
            let response = client
                .notify(method, json!({"name": "echo", "arguments": {"harm": true}}))
                .await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{method}");
            assert_eq!(response.json().await["error"]["code"], -32600);
        }
        let modern = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
        ];
        let body = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}})
            .to_string();
        assert_eq!(
            client.send(Method::POST, &modern, body).await.status,
            StatusCode::BAD_REQUEST
        );
        assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
        assert_eq!(hb.seen().len(), before, "{:?}", hb.methods());
    }
}

#[tokio::test]
async fn servers_get_integer_ids_each_once() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let option = format!("--journal={}", journal.path().display());
    let hb = echoing().start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }}, two: {} }}\n",
        hb.url(),
        sb(&[&option], "isolation: shared")
    ))
    .await;
    let (a, b) = (
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
    );
    for client in [&a, &b] {
        for id in IDS {
            for tool in ["one__echo", "two__echo"] {
                let response = client
                    .send(
                        Method::POST,
                        &[],
                        message(id, "tools/call", &json!({"name": tool})),
                    )
                    .await;
                assert_eq!(response.status, StatusCode::OK);
            }
        }
    }
    let mut seen: HashMap<String, HashSet<u64>> = HashMap::new();
    for call in hb.seen().iter().filter(|s| s.method() == "tools/call") {
        let session = call.header("mcp-session-id").unwrap().to_owned();
        let id = call
            .id()
            .as_u64()
            .unwrap_or_else(|| panic!("{}", call.id()));
        assert!(seen.entry(session).or_default().insert(id), "{id} twice");
    }
    assert_eq!(
        seen.values().map(HashSet::len).sum::<usize>(),
        2 * IDS.len()
    );
    let lines = std::fs::read_to_string(journal.path()).unwrap();
    let mut ids = HashSet::new();
    for line in lines
        .lines()
        .filter_map(|l| l.strip_prefix("in "))
        .filter(|l| l.contains("tools/call"))
    {
        let message: Value = serde_json::from_str(line).unwrap();
        assert!(
            ids.insert(message["id"].as_u64().unwrap_or_else(|| panic!("{line}"))),
            "{line}"
        );
    }
    assert_eq!(ids.len(), 2 * IDS.len());
}

/// Calls with one id for all, answered in an order that has nothing to do with theirs.
async fn equal_ids_at_a_time(
    client: &Client,
    tool: &str,
    count: usize,
    release: impl AsyncFnOnce(),
) {
    let ask = |n: usize| async move {
        let params = json!({"name": tool, "arguments": {"text": format!("mine-{n}"), "n": n}});
        let accept = [
            "application/json",
            "text/event-stream",
            "application/json, text/event-stream",
        ][n % 3];
        let headers = [("accept", accept)];
        let answer = client
            .send(Method::POST, &headers, message("1", "tools/call", &params))
            .await
            .message()
            .await;
        (n, answer)
    };
    let asking = futures_util::future::join_all((0..count).map(ask));
    let (answers, ()) = tokio::join!(asking, release());
    for (n, answer) in answers {
        assert_eq!(answer["id"], 1, "{answer}");
        assert_eq!(
            answer["result"]["content"][0]["text"],
            format!("mine-{n}"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn calls_of_one_session_with_equal_ids_never_cross_over_http() {
    let gates: Arc<Mutex<HashMap<u64, Gate>>> = Arc::default();
    let held = gates.clone();
    let hb = echoing().on("tools/call", move |seen| {
        let gate = Gate::new();
        let n = arguments(seen)["n"].as_u64().unwrap();
        held.lock().unwrap().insert(n, gate.clone());
        let answer = seen.result(text(arguments(seen)["text"].as_str().unwrap()));
        match n % 2 {
            0 => Reply::json(answer).gate_head(&gate),
            _ => Reply::events().gate(&gate).message(answer),
        }
    });
    let hb = hb.start().await;
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\nstreams: {{ silence: 50ms }}\n",
        hb.url()
    ))
    .await;
    let client = gw.client("/mcp/one").connected().await;
    equal_ids_at_a_time(&client, "echo", 20, async || {
        hb.wait_for_nth(20, |seen| seen.method() == "tools/call")
            .await;
        for n in (0..20).map(|n| (n * 7 + 3) % 20) {
            let gate = gates.lock().unwrap()[&n].clone();
            gate.open();
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn calls_of_one_session_with_equal_ids_never_cross_on_a_process() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let option = format!("--journal={}", journal.path().display());
    let gw = gateway(&format!(
        "servers: {{ one: {} }}\nstreams: {{ silence: 50ms }}\n",
        sb(&[&option], "")
    ))
    .await;
    let client = gw.client("/mcp/one").connected().await;
    let other = client.twin();
    let held = || {
        std::fs::read_to_string(journal.path())
            .unwrap_or_default()
            .matches("\"hold\"")
            .count()
    };
    equal_ids_at_a_time(&client, "hold", 20, async || {
        crate::support::until("all are held", || held() == 20).await;
        // `release` answers the last one first.
        assert_eq!(other.text("release", json!({})).await, "released");
    })
    .await;
}
