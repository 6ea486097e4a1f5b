//! Revisions: settled with each client, checked on each request, and separate on each hop.

use crate::support::{arguments, echoing, gateway, hb::Reply, sb, text};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

fn initialize(version: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

#[tokio::test]
async fn a_known_revision_is_settled_on_and_an_unknown_one_gets_our_newest_with_sessions() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    for path in ["/mcp", "/mcp/one"] {
        for (asked, settled) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("2099-01-01", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
            ("foobar", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            for header in [None, Some("2025-11-25"), Some("2026-07-28")] {
                let headers: Vec<_> = header
                    .iter()
                    .map(|h| ("mcp-protocol-version", *h))
                    .collect();
                let response = gw
                    .client(path)
                    .send(Method::POST, &headers, initialize(json!(asked)).to_string())
                    .await;
                assert_eq!(response.status, StatusCode::OK, "{asked} {header:?}");
                assert!(response.headers.contains_key("mcp-session-id"));
                let answer = response.json().await;
                assert_eq!(
                    answer["result"]["protocolVersion"], settled,
                    "{asked} {header:?}: {answer}"
                );
            }
        }
    }
}

#[tokio::test]
async fn initialize_without_a_version_is_an_error_and_opens_no_session() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    for message in [
        initialize(Value::Null),
        initialize(json!(20251125)),
        json!({"jsonrpc": "2.0", "id": "i", "method": "initialize"}),
        json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {}}),
    ] {
        let response = gw.client("/mcp").post(&message).await;
        assert!(!response.headers.contains_key("mcp-session-id"));
        let answer = response.json().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!("i"), &json!(-32602)),
            "{message}"
        );
    }
    assert!(gw.router.sessions.is_empty());
}

#[tokio::test]
async fn a_version_that_is_none_is_refused_on_every_later_request() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    let call = json!({"jsonrpc": "2.0", "id": "mine", "method": "tools/call", "params": {"name": "one__echo"}}).to_string();
    for version in [
        "1999-01-01",
        "foobar",
        "",
        "2025-11-25, 2025-06-18",
        "2099-12-31",
        "DRAFT-2026",
    ] {
        let headers = [("mcp-protocol-version", version)];
        for (method, body) in [
            (Method::POST, &*call),
            (
                Method::POST,
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            ),
            (Method::GET, ""),
            (Method::DELETE, ""),
        ] {
            let response = client.send(method.clone(), &headers, body.to_owned()).await;
            assert_eq!(
                response.status,
                StatusCode::BAD_REQUEST,
                "{method} {version:?}"
            );
            let error = response.json().await;
            assert_eq!(error["error"]["code"], -32022, "{error}");
            let supported = error["error"]["data"]["supported"].as_array().unwrap();
            assert!(
                supported.contains(&json!("2025-11-25"))
                    && supported.contains(&json!("2026-07-28"))
            );
            assert_eq!(error["error"]["data"]["requested"], version);
            if body == call {
                assert_eq!(error["id"], "mine");
            }
        }
    }
    assert_eq!(hb.count("tools/call"), 0);
    // It was the header alone: the session lives.
    assert_eq!(client.text("one__echo", json!({})).await, "{}");
}

#[tokio::test]
async fn without_the_header_the_settled_revision_holds_and_an_older_one_is_taken() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = gw.client("/mcp").revision(revision).connected().await;
        for header in ["-", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo", "arguments": {}}}).to_string();
            let response = client
                .send(Method::POST, &[("mcp-protocol-version", header)], call)
                .await;
            assert_eq!(
                response.message().await["result"]["content"][0]["text"],
                "{}",
                "{revision} {header}"
            );
        }
    }
}

#[tokio::test]
async fn each_server_is_spoken_to_in_its_own_revision_whatever_the_client_speaks() {
    let only = |revision: &'static str| {
        echoing().on("initialize", move |seen| {
            Reply::json(seen.result(json!({"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "hb", "version": "1"}})))
        })
    };
    let mut servers = Vec::new();
    let mut yaml = String::from("servers:\n");
    for (name, revision) in [
        ("a", "2025-03-26"),
        ("b", "2025-06-18"),
        ("c", "2025-11-25"),
    ] {
        let hb = only(revision).start().await;
        yaml.push_str(&format!("  {name}: {{ url: {:?} }}\n", hb.url()));
        servers.push((name, revision, hb));
    }
    yaml.push_str(&format!(
        "  d: {}\n  e: {}\n",
        sb(&["--revision=2024-11-05"], ""),
        sb(&["--era=modern"], "")
    ));
    let gw = gateway(&yaml).await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = gw.client("/mcp").revision(revision).connected().await;
        assert_eq!(client.revision, revision);
        for name in ["a", "b", "c", "d", "e"] {
            assert_eq!(
                client.text(&format!("{name}__echo"), json!({"x": 1})).await,
                r#"{"x":1}"#,
                "{name} {revision}"
            );
        }
    }
    for (name, revision, hb) in &servers {
        let calls: Vec<_> = hb
            .seen()
            .into_iter()
            .filter(|s| s.method() == "tools/call")
            .collect();
        assert_eq!(calls.len(), 4, "{name}");
        assert!(
            calls
                .iter()
                .all(|c| c.header("mcp-protocol-version") == Some(revision)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_server_that_refuses_a_newer_revision_is_asked_again_in_its_own() {
    // It answers 400 and says in words what it speaks.
    let refusals = Arc::new(AtomicUsize::new(0));
    let counted = refusals.clone();
    let hb = echoing().on("initialize", move |seen| {
        let asked = seen.json()["params"]["protocolVersion"].as_str().unwrap_or_default().to_owned();
        if asked != "2025-03-26" {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut error = seen.error(-32602, "Unsupported protocol version");
            error["error"]["data"] = json!({"supported": ["2025-03-26", "2024-11-05"], "requested": asked});
            return Reply::json(error).with_status(400);
        }
        Reply::json(seen.result(json!({"protocolVersion": asked, "capabilities": {"tools": {}}, "serverInfo": {"name": "hb", "version": "1"}})))
    });
    let hb = hb
        .on("tools/call", |seen| {
            Reply::json(seen.result(text(arguments(seen).to_string())))
        })
        .start()
        .await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(client.revision, "2025-11-25");
    assert_eq!(
        client.text("one__echo", json!({"x": 1})).await,
        r#"{"x":1}"#
    );
    assert!(refusals.load(Ordering::SeqCst) >= 1);
}
