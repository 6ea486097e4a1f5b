//! POST of 2026-07-28 clients: the body is the truth, and every header has to agree with it.

use crate::support::{
    TestGateway, arguments, echoing, gateway,
    hb::{Hb, Reply},
    listing, modern_echoing, sb, text,
};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn meta() -> Value {
    json!({VERSION: "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}, CAPABILITIES: {}})
}

fn body(method: &str, params: Value) -> Value {
    let mut params = params;
    if params.get("_meta").is_none() {
        params["_meta"] = meta();
    }
    json!({"jsonrpc": "2.0", "id": "m", "method": method, "params": params})
}

/// The headers that fit a call of `name`, with some replaced; `-` takes one out.
fn headers<'a>(name: &'a str, changed: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", name),
    ];
    headers.retain(|(n, _)| !changed.iter().any(|(c, _)| c == n));
    headers.extend(changed.iter().filter(|(_, v)| *v != "-"));
    headers
}

struct Answer {
    status: u16,
    json: Value,
    headers: HeaderMap,
}

impl Answer {
    fn code(&self) -> (u16, i64) {
        (
            self.status,
            self.json["error"]["code"].as_i64().unwrap_or(0),
        )
    }
}

async fn post(gw: &TestGateway, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut all = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    all.extend(headers);
    let response = gw
        .client(path)
        .raw(Method::POST, &all, body.to_owned())
        .await;
    let (status, headers) = (response.status.as_u16(), response.headers.clone());
    let bytes = response.bytes().await;
    let json = serde_json::from_slice(&bytes).unwrap_or_default();
    Answer {
        status,
        json,
        headers,
    }
}

async fn both_eras() -> (TestGateway, Hb, Hb) {
    let (old, new) = (echoing().start().await, modern_echoing().start().await);
    let yaml = format!(
        "servers: {{ old: {{ url: {:?} }}, new: {{ url: {:?} }}, local: {} }}\n",
        old.url(),
        new.url(),
        sb(&[], "")
    );
    (gateway(&yaml).await, old, new)
}

#[tokio::test]
async fn the_ladder_of_checks_holds_on_every_endpoint_and_nothing_refused_reaches_a_server() {
    let (gw, old, new) = both_eras().await;
    for (path, name) in [
        ("/mcp", "old__echo"),
        ("/mcp", "new__echo"),
        ("/mcp/old", "echo"),
        ("/mcp/new", "echo"),
    ] {
        let call = body("tools/call", json!({"name": name, "arguments": {}}));
        let with_meta = |meta: Value| body("tools/call", json!({"name": name, "_meta": meta}));
        let mut other_name = call.clone();
        other_name["params"]["name"] = "danger".into();
        let unknown = body("no/such/method", json!({}));
        let cases: Vec<(&str, Vec<(&str, &str)>, Value, (u16, i64))> = vec![
            (
                "another method in the header",
                headers(name, &[("mcp-method", "tools/list")]),
                call.clone(),
                (400, -32020),
            ),
            (
                "a method in another case",
                headers(name, &[("mcp-method", "Tools/Call")]),
                call.clone(),
                (400, -32020),
            ),
            (
                "no method in the header",
                headers(name, &[("mcp-method", "-")]),
                call.clone(),
                (400, -32020),
            ),
            (
                "an empty method",
                headers(name, &[("mcp-method", "")]),
                call.clone(),
                (400, -32020),
            ),
            (
                "two methods in the header",
                headers(
                    name,
                    &[("mcp-method", "tools/call"), ("mcp-method", "tools/list")],
                ),
                call.clone(),
                (400, -32020),
            ),
            (
                "another name in the body",
                headers(name, &[]),
                other_name,
                (400, -32020),
            ),
            (
                "no name in the header",
                headers(name, &[("mcp-name", "-")]),
                call.clone(),
                (400, -32020),
            ),
            (
                "two names in the header",
                headers(name, &[("mcp-name", name), ("mcp-name", "danger")]),
                call.clone(),
                (400, -32020),
            ),
            (
                "a broken encoding of the name",
                headers(name, &[("mcp-name", "=?base64?%%?=")]),
                call.clone(),
                (400, -32020),
            ),
            (
                "another version in the body",
                headers(name, &[]),
                with_meta(json!({VERSION: "2025-11-25", CAPABILITIES: {}})),
                (400, -32020),
            ),
            (
                "an unknown version in the body",
                headers(name, &[]),
                with_meta(json!({VERSION: "2099-01-01", CAPABILITIES: {}})),
                (400, -32020),
            ),
            (
                "no version in the header",
                headers(name, &[("mcp-protocol-version", "-")]),
                call.clone(),
                (400, -32020),
            ),
            (
                "a legacy version in the header",
                headers(name, &[("mcp-protocol-version", "2025-11-25")]),
                call.clone(),
                (400, -32020),
            ),
            (
                "no _meta",
                headers(name, &[]),
                json!({"jsonrpc": "2.0", "id": "m", "method": "tools/call", "params": {"name": name}}),
                (400, -32602),
            ),
            (
                "no params",
                headers(name, &[("mcp-method", "tools/list")]),
                json!({"jsonrpc": "2.0", "id": "m", "method": "tools/list"}),
                (400, -32602),
            ),
            (
                "no version in _meta",
                headers(name, &[]),
                with_meta(json!({CAPABILITIES: {}})),
                (400, -32602),
            ),
            (
                "no capabilities in _meta",
                headers(name, &[]),
                with_meta(json!({VERSION: "2026-07-28"})),
                (400, -32602),
            ),
            (
                "capabilities that are none",
                headers(name, &[]),
                with_meta(json!({VERSION: "2026-07-28", CAPABILITIES: true})),
                (400, -32602),
            ),
            (
                "a version nobody speaks",
                headers(name, &[("mcp-protocol-version", "2099-01-01")]),
                with_meta(json!({VERSION: "2099-01-01", CAPABILITIES: {}})),
                (400, -32022),
            ),
            (
                "an unknown method",
                headers(name, &[("mcp-method", "no/such/method")]),
                unknown,
                (404, -32601),
            ),
        ];
        for (what, headers, body, wanted) in cases {
            // A method that nobody here knows may be one of a server that is alone.
            if what == "an unknown method" && path != "/mcp" {
                continue;
            }
            let answer = post(&gw, path, &headers, &body.to_string()).await;
            assert_eq!(
                answer.code(),
                wanted,
                "{path} {name}: {what}: {}",
                answer.json
            );
            assert_eq!(answer.json["id"], "m", "{what}");
            assert_eq!(answer.headers["content-type"], "application/json");
        }
        let late = post(
            &gw,
            path,
            &headers(name, &[("mcp-protocol-version", "2099-01-01")]),
            &call.to_string(),
        )
        .await;
        let supported = late.json["error"]["data"]["supported"]
            .as_array()
            .unwrap()
            .clone();
        assert!(
            supported.contains(&json!("2026-07-28"))
                && late.json["error"]["data"]["requested"] == "2099-01-01"
        );
        assert_eq!(
            old.count("tools/call") + new.count("tools/call"),
            0,
            "{path} {name}"
        );
        assert_eq!(
            post(&gw, path, &headers(name, &[]), &call.to_string())
                .await
                .status,
            200,
            "{path} {name}"
        );
        assert_eq!(
            post(
                &gw,
                path,
                &headers(
                    name,
                    &[("mcp-name", &drawbridge::mcp::header::encode(name))]
                ),
                &call.to_string()
            )
            .await
            .status,
            200
        );
        let sealed = format!(
            "=?base64?{}?=",
            base64::Engine::encode(&base64::engine::general_purpose::STANDARD, name)
        );
        assert_eq!(
            post(
                &gw,
                path,
                &headers(name, &[("mcp-name", &sealed)]),
                &call.to_string()
            )
            .await
            .status,
            200
        );
        old.forget();
        new.forget();
    }
}

#[tokio::test]
async fn what_has_no_place_in_this_revision_is_refused_as_it_says() {
    let (gw, _old, _new) = both_eras().await;
    let with = |method: &'static str| headers("-", &[("mcp-method", method), ("mcp-name", "-")]);
    for method in [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "initialize",
        "roots/list",
        "sampling/createMessage",
        "elicitation/create",
        "notifications/initialized",
    ] {
        let answer = post(
            &gw,
            "/mcp",
            &with(method),
            &body(method, json!({"uri": "a:b", "level": "info"})).to_string(),
        )
        .await;
        assert_eq!(answer.code(), (404, -32601), "{method}: {}", answer.json);
    }
    let response = post(
        &gw,
        "/mcp",
        &with("tools/call"),
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    )
    .await;
    assert_eq!(response.code(), (400, -32600));
    let error = post(
        &gw,
        "/mcp",
        &with("tools/call"),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
    )
    .await;
    assert_eq!(error.code(), (400, -32600));
    let note = post(
        &gw,
        "/mcp",
        &with("notifications/cancelled"),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    )
    .await;
    assert_eq!(note.status, 202);
    let batch = post(
        &gw,
        "/mcp",
        &with("tools/call"),
        &format!("[{}]", body("tools/list", json!({}))),
    )
    .await;
    assert_eq!(batch.code(), (400, -32600));
    let garbage = post(&gw, "/mcp", &with("tools/call"), "{").await;
    assert_eq!(garbage.code(), (400, -32700));
    for verb in [Method::GET, Method::DELETE] {
        for session in ["mcp-session-id", "x-other"] {
            let refused = gw
                .client("/mcp")
                .raw(
                    verb.clone(),
                    &[
                        ("mcp-protocol-version", "2026-07-28"),
                        (session, "what ever"),
                    ],
                    "",
                )
                .await;
            assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED);
            assert_eq!(refused.headers["allow"], "POST");
        }
    }
}

#[tokio::test]
async fn a_session_id_and_an_event_id_mean_nothing_to_a_modern_request() {
    let (gw, _old, _new) = both_eras().await;
    for id in ["unknown", "", "ü"] {
        let call = body(
            "tools/call",
            json!({"name": "new__echo", "arguments": {"a": 1}}),
        );
        let headers = headers(
            "new__echo",
            &[("mcp-session-id", id), ("last-event-id", "7-1")],
        );
        let answer = post(&gw, "/mcp", &headers, &call.to_string()).await;
        assert_eq!(
            answer.json["result"]["content"][0]["text"], r#"{"a":1}"#,
            "{}",
            answer.json
        );
        assert!(!answer.headers.contains_key("mcp-session-id"));
    }
    assert!(gw.router.sessions.is_empty());
}

#[tokio::test]
async fn legacy_requests_are_not_measured_by_these_headers() {
    let (gw, _old, _new) = both_eras().await;
    let client = gw.client("/mcp").connected().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "old__echo", "arguments": {}}}).to_string();
    for lie in [
        ("mcp-method", "tools/list"),
        ("mcp-name", "danger"),
        ("mcp-name", "=?base64?%%?="),
        ("mcp-param-x", "1"),
    ] {
        let response = client.send(Method::POST, &[lie], call.clone()).await;
        assert_eq!(
            response.message().await["result"]["content"][0]["text"],
            "{}",
            "{lie:?}"
        );
    }
}

#[tokio::test]
async fn headers_towards_a_server_are_made_anew_from_what_it_gets() {
    let strange = "ünï / co\u{301}de";
    let hb = modern_echoing().on("tools/list", move |seen| {
        let mut result = listing(&["echo", strange]);
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
        result["resultType"] = "complete".into();
        Reply::json(seen.result(result))
    });
    let hb = hb.start().await;
    let gw = gateway(&format!("servers: {{ new: {{ url: {:?} }} }}\n", hb.url())).await;
    let tools = gw.client("/mcp").connected().await.tools().await;
    let exposed = tools.iter().find(|t| *t != "new__echo").unwrap().clone();
    let call = body("tools/call", json!({"name": exposed, "arguments": {}}));
    let more = [
        ("mcp-extra", "1"),
        ("cookie", "c=1"),
        ("authorization", "Bearer x"),
        ("x-api-key", "k"),
    ];
    assert_eq!(
        post(&gw, "/mcp", &headers(&exposed, &more), &call.to_string())
            .await
            .status,
        200
    );
    // A legacy client's call carries the same headers.
    gw.client("/mcp")
        .connected()
        .await
        .call(&exposed, json!({}))
        .await;
    let seen: Vec<_> = hb
        .seen()
        .into_iter()
        .filter(|s| s.method() == "tools/call")
        .collect();
    assert_eq!(seen.len(), 2);
    for call in seen {
        assert_eq!(call.json()["params"]["name"], strange);
        assert_eq!(
            call.header("mcp-name"),
            Some(&*drawbridge::mcp::header::encode(strange))
        );
        assert_eq!(
            (
                call.header("mcp-method"),
                call.header("mcp-protocol-version")
            ),
            (Some("tools/call"), Some("2026-07-28"))
        );
        assert_eq!(call.json()["params"]["_meta"][VERSION], "2026-07-28");
        for kept_back in [
            "mcp-extra",
            "cookie",
            "authorization",
            "x-api-key",
            "mcp-session-id",
            "origin",
        ] {
            assert_eq!(call.header(kept_back), None, "{kept_back}");
        }
        assert!(call.header("host").unwrap().starts_with("127.0.0.1:"));
        assert_eq!(
            call.headers.iter().filter(|(n, _)| n == "mcp-name").count(),
            1
        );
    }
}

/// A modern server with a tool whose parameters travel in headers.
async fn with_params() -> Hb {
    let server = modern_echoing().on("tools/list", |seen| {
        let annotated = json!({"name": "query", "inputSchema": {"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "deep": {"type": "object", "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry-Run"}}},
            "free": {"type": "string"}}}});
        let bad = |name: &str, header: Value| json!({"name": name, "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "x-mcp-header": header}}}});
        let tools = json!([annotated, bad("crlf", json!("A\r\nHost: evil")), bad("colon", json!("Authorization: x")), bad("empty", json!("")), bad("number", json!(7)), {"name": "plain", "inputSchema": {"type": "object"}}]);
        Reply::json(seen.result(json!({"tools": tools, "resultType": "complete", "ttlMs": 60000, "cacheScope": "public"})))
    });
    server.start().await
}

#[tokio::test]
async fn parameters_in_headers_have_to_say_what_the_arguments_say() {
    let hb = with_params().await;
    let gw = gateway(&format!("servers: {{ new: {{ url: {:?} }} }}\n", hb.url())).await;
    for (path, name) in [("/mcp", "new__query"), ("/mcp/new", "query")] {
        let call = |arguments: Value| {
            body("tools/call", json!({"name": name, "arguments": arguments})).to_string()
        };
        let full = call(json!({"region": "eu ü", "count": 42, "deep": {"dry": true}, "free": "x"}));
        let region = "=?base64?ZXUgw7w=?=";
        let good = [
            ("mcp-param-region", region),
            ("mcp-param-count", "42"),
            ("mcp-param-dry-run", "true"),
        ];
        let ran = hb.count("tools/call");
        for (what, params, text) in [
            (
                "another value",
                vec![("mcp-param-region", "us"), good[1], good[2]],
                &full,
            ),
            ("one is missing", vec![good[0], good[2]], &full),
            ("all are missing", vec![], &full),
            (
                "a broken encoding",
                vec![("mcp-param-region", "=?base64?*?="), good[1], good[2]],
                &full,
            ),
            ("one too many", vec![good[0]], &call(json!({"free": "x"}))),
            (
                "a null that is said",
                vec![("mcp-param-region", "null")],
                &call(json!({"region": null})),
            ),
            (
                "two of one",
                vec![good[0], good[1], ("mcp-param-count", "43"), good[2]],
                &full,
            ),
            (
                "a word for a number",
                vec![good[0], ("mcp-param-count", "forty-two"), good[2]],
                &full,
            ),
        ] {
            let answer = post(&gw, path, &headers(name, &params), text).await;
            assert_eq!(
                answer.code(),
                (400, -32020),
                "{path}: {what}: {}",
                answer.json
            );
        }
        assert_eq!(hb.count("tools/call"), ran, "{path}");
        for (params, text) in [
            (good.to_vec(), full.clone()),
            (
                vec![good[0], ("mcp-param-count", "42.0"), good[2]],
                full.clone(),
            ),
            (vec![], call(json!({"region": null, "free": "y"}))),
            (vec![], call(json!({}))),
            // One that no schema names passes and means nothing.
            (vec![("mcp-param-other", "1")], call(json!({}))),
        ] {
            let answer = post(&gw, path, &headers(name, &params), &text).await;
            assert_eq!(answer.status, 200, "{path}: {params:?}: {}", answer.json);
        }
    }
}

#[tokio::test]
async fn for_a_legacy_client_the_gateway_makes_the_parameters_headers() {
    let hb = with_params().await;
    let gw = gateway(&format!("servers: {{ new: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    let answer = client
        .call(
            "new__query",
            json!({"region": " a\r\nHost: evil", "count": -7, "deep": {"dry": false}, "free": "x"}),
        )
        .await;
    assert!(answer["result"].is_object(), "{answer}");
    let seen = hb.wait_for(|s| s.method() == "tools/call").await;
    assert_eq!(
        seen.header("mcp-param-region"),
        Some(&*drawbridge::mcp::header::encode(" a\r\nHost: evil"))
    );
    assert_eq!(
        (
            seen.header("mcp-param-count"),
            seen.header("mcp-param-dry-run"),
            seen.header("mcp-param-free")
        ),
        (Some("-7"), Some("false"), None)
    );
    assert!(seen.header("host").unwrap().starts_with("127.0.0.1"));
}

#[tokio::test]
async fn a_tool_whose_annotations_would_spoil_headers_is_left_out_and_cannot_be_called() {
    let hb = with_params().await;
    let gw = gateway(&format!("servers: {{ new: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(client.tools().await, ["new__query", "new__plain"]);
    for name in ["new__crlf", "new__colon", "new__empty", "new__number"] {
        assert_eq!(
            client.call(name, json!({"x": "1"})).await["error"]["code"],
            -32602
        );
        let call = body("tools/call", json!({"name": name, "arguments": {"x": "1"}})).to_string();
        assert_eq!(
            post(&gw, "/mcp", &headers(name, &[]), &call).await.json["error"]["code"],
            -32602
        );
    }
    assert_eq!(hb.count("tools/call"), 0);
}

#[tokio::test]
async fn a_fixed_parameter_travels_in_its_header_too() {
    let hb = with_params().await;
    let gw = gateway(&format!(
        "servers: {{ new: {{ url: {:?}, tools: {{ fix: {{ query: {{ region: eu }} }} }} }} }}\n",
        hb.url()
    ))
    .await;
    for (path, name) in [("/mcp", "new__query"), ("/mcp/new", "query")] {
        let before = hb.count("tools/call");
        let call = body(
            "tools/call",
            json!({"name": name, "arguments": {"count": 1}}),
        )
        .to_string();
        assert_eq!(
            post(
                &gw,
                path,
                &headers(name, &[("mcp-param-count", "1")]),
                &call
            )
            .await
            .status,
            200
        );
        gw.client(path)
            .connected()
            .await
            .call(name, json!({"count": 1}))
            .await;
        // One that the caller may not choose is not taken from it either.
        let own = body(
            "tools/call",
            json!({"name": name, "arguments": {"count": 1, "region": "us"}}),
        )
        .to_string();
        post(
            &gw,
            path,
            &headers(
                name,
                &[("mcp-param-count", "1"), ("mcp-param-region", "us")],
            ),
            &own,
        )
        .await;
        let seen = hb.seen();
        let calls: Vec<_> = seen
            .iter()
            .filter(|s| s.method() == "tools/call")
            .skip(before)
            .collect();
        assert_eq!(calls.len(), 3, "{path}");
        for call in calls {
            assert_eq!(
                arguments(call),
                json!({"count": 1, "region": "eu"}),
                "{path}"
            );
            let regions: Vec<_> = call
                .headers
                .iter()
                .filter(|(n, _)| n == "mcp-param-region")
                .map(|(_, v)| v.as_str())
                .collect();
            assert_eq!(
                (regions, call.header("mcp-param-count")),
                (vec!["eu"], Some("1")),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn errors_have_the_status_that_the_revision_gives_them() {
    let coded = |code: i64| {
        move |seen: &crate::support::hb::Seen| {
            Reply::json(seen.error(code, "no")).with_status(if code == -32601 { 404 } else { 200 })
        }
    };
    for (code, status) in [
        (-32602, 200),
        (-32603, 200),
        (-32042, 200),
        (-32000, 200),
        (-32601, 404),
        (7, 200),
    ] {
        let (old, new) = (
            echoing().on("tools/call", coded(code)).start().await,
            modern_echoing().on("tools/call", coded(code)).start().await,
        );
        let gw = gateway(&format!(
            "servers: {{ old: {{ url: {:?} }}, new: {{ url: {:?} }} }}\n",
            old.url(),
            new.url()
        ))
        .await;
        let name = "new__echo";
        let call = body("tools/call", json!({"name": name})).to_string();
        let answer = post(&gw, "/mcp", &headers(name, &[]), &call).await;
        assert_eq!(answer.code(), (status, code), "{}", answer.json);
    }
    let (gw, _old, _new) = both_eras().await;
    let unknown = body("tools/call", json!({"name": "nobody"})).to_string();
    assert_eq!(
        post(&gw, "/mcp", &headers("nobody", &[]), &unknown)
            .await
            .code(),
        (200, -32602)
    );
}

#[tokio::test]
async fn closing_the_stream_of_a_modern_call_cancels_it() {
    let old = echoing()
        .on("tools/call", |seen| {
            Reply::events().message(seen.progress(1)).silence()
        })
        .start()
        .await;
    let new = modern_echoing()
        .on("tools/call", |seen| {
            Reply::events().message(seen.progress(1)).silence()
        })
        .start()
        .await;
    let yaml = format!(
        "servers: {{ old: {{ url: {:?} }}, new: {{ url: {:?} }} }}\nstreams: {{ silence: 50ms }}\n",
        old.url(),
        new.url()
    );
    let gw = gateway(&yaml).await;
    let client = gw.client("/mcp");
    for name in ["old__echo", "new__echo"] {
        let mut stream = client
            .modern(
                "tools/call",
                json!({"name": name, "_meta": {"progressToken": 1}}),
            )
            .await
            .events();
        stream.next_of("notifications/progress").await;
        drop(stream);
    }
    let call = old.wait_for(|s| s.method() == "tools/call").await;
    let told = old
        .wait_for(|s| s.method() == "notifications/cancelled")
        .await;
    assert_eq!(told.json()["params"]["requestId"], call.id());
    new.wait_until_open(new.connections().saturating_sub(1))
        .await;
    crate::support::until("nothing runs", || gw.router.calls() == 0).await;
    assert_eq!(new.count("notifications/cancelled"), 0);
}

#[tokio::test]
async fn text_for_a_tool_is_the_same_in_both_directions() {
    let old = echoing()
        .on("tools/call", |seen| {
            Reply::json(seen.result(text(arguments(seen).to_string())))
        })
        .start()
        .await;
    let gw = gateway(&format!("servers: {{ old: {{ url: {:?} }} }}\n", old.url())).await;
    let said = json!({"t": "日本語 \u{2028} 🚀", "n": 9007199254740993u64});
    let answer = gw
        .client("/mcp")
        .modern(
            "tools/call",
            json!({"name": "old__echo", "arguments": said}),
        )
        .await
        .json()
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], said.to_string());
    assert_eq!(answer["result"]["resultType"], "complete");
}
