//! The edge: what clients accept, who may call from a browser, under which names and paths.

use crate::support::{Wire, echoing, gateway, keys::keys};
use http::{Method, StatusCode};
use serde_json::{Value, json};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn the_answer_has_a_form_that_the_client_accepts() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo"}})
            .to_string();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).to_string();
    for (accept, form) in [
        ("application/json, text/event-stream", "json"),
        ("text/event-stream, application/json", "json"),
        ("application/json", "json"),
        ("application/json;charset=utf-8", "json"),
        ("application/json; q=0.5, text/event-stream; q=0.9", "json"),
        ("APPLICATION/JSON", "json"),
        ("application/*", "json"),
        ("*/*", "json"),
        ("text/html, */*;q=0.1", "json"),
        ("-", "json"),
        ("text/event-stream", "events"),
        ("text/*", "events"),
        ("text/event-stream, application/json;q=0", "events"),
        ("text/html", "none"),
        ("application/json;q=0", "none"),
        ("*/*;q=0", "none"),
        ("", "none"),
    ] {
        for (session, body) in [(true, PING), (true, &*call), (false, &*initialize)] {
            let mut headers = vec![("accept", accept)];
            if !session {
                headers.push(("mcp-session-id", "-"));
                headers.push(("mcp-protocol-version", "-"));
            }
            let response = client.send(Method::POST, &headers, body.to_owned()).await;
            let status = if form == "none" {
                StatusCode::NOT_ACCEPTABLE
            } else {
                StatusCode::OK
            };
            assert_eq!(response.status, status, "{accept}");
            assert_eq!(response.is_stream(), form == "events", "{accept}");
            assert!(response.message().await.is_object());
        }
    }
}

#[tokio::test]
async fn servers_are_always_offered_both_forms_whatever_the_client_sends() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    for accept in ["application/json", "text/event-stream", "*/*"] {
        let client = gw.client("/mcp").connected().await;
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo"}}).to_string();
        client.send(Method::POST, &[("accept", accept)], call).await;
    }
    for seen in hb.seen().iter().filter(|s| s.verb == "POST") {
        let accept = seen.header("accept").unwrap_or_default();
        assert!(
            accept.contains("application/json") && accept.contains("text/event-stream"),
            "{}: {accept}",
            seen.method()
        );
        assert_eq!(seen.header("content-type"), Some("application/json"));
    }
}

#[tokio::test]
async fn only_json_is_taken_in() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\n", hb.url())).await;
    let client = gw.client("/mcp").connected().await;
    for (kind, status) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON ;charset=UTF-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/jsonp", 415),
        ("-", 415),
    ] {
        let response = client
            .send(Method::POST, &[("content-type", kind)], PING)
            .await;
        assert_eq!(response.status.as_u16(), status, "{kind}");
    }
}

const NEEDED: [&str; 9] = [
    "authorization",
    "content-type",
    "accept",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-param-region",
];

#[tokio::test]
async fn a_preflight_needs_no_key_and_allows_every_verb_and_header_of_the_protocol() {
    let hb = echoing().start().await;
    let (auth, _) = keys(&["ann"]);
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\norigins: [\"https://app.example.com\"]\n{auth}",
        hb.url()
    ))
    .await;
    for origin in [
        "https://app.example.com",
        "http://localhost:3000",
        "http://127.0.0.1:6274",
    ] {
        for path in ["/mcp", "/mcp/", "/mcp/one"] {
            for verb in ["POST", "GET", "DELETE"] {
                let wanted = NEEDED.join(", ");
                let headers = [
                    ("origin", origin),
                    ("access-control-request-method", verb),
                    ("access-control-request-headers", &*wanted),
                ];
                let response = gw.client(path).raw(Method::OPTIONS, &headers, "").await;
                assert!(response.status.is_success(), "{}", response.status);
                let header = |name: &str| {
                    response
                        .headers
                        .get(name)
                        .map(|v| v.to_str().unwrap().to_ascii_lowercase())
                        .unwrap_or_default()
                };
                assert_eq!(header("access-control-allow-origin"), origin);
                assert!(
                    header("access-control-allow-methods").contains(&verb.to_ascii_lowercase())
                );
                let allowed = header("access-control-allow-headers");
                assert!(NEEDED.iter().all(|n| allowed.contains(n)), "{allowed}");
            }
        }
    }
    let headers = [
        ("origin", "https://evil.example"),
        ("access-control-request-method", "POST"),
    ];
    let response = gw.client("/mcp").raw(Method::OPTIONS, &headers, "").await;
    assert!(!response.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn real_responses_and_errors_alike_expose_what_a_page_needs() {
    let hb = echoing().start().await;
    let (auth, keys) = keys(&["ann"]);
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{auth}",
        hb.url()
    ))
    .await;
    let origin = ("origin", "http://localhost:3000");
    let client = gw.client("/mcp").key(&keys[0]).connected().await;
    let nobody = gw.client("/mcp");
    let responses = [
        (200, client.send(Method::POST, &[origin], PING).await),
        (
            202,
            client
                .send(
                    Method::POST,
                    &[origin],
                    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                )
                .await,
        ),
        (200, client.send(Method::GET, &[origin], "").await),
        (400, client.send(Method::POST, &[origin], "{").await),
        (401, nobody.send(Method::POST, &[origin], PING).await),
        (401, nobody.send(Method::GET, &[origin], "").await),
        (
            404,
            client
                .send(Method::POST, &[origin, ("mcp-session-id", "gone")], PING)
                .await,
        ),
        (
            406,
            client
                .send(Method::POST, &[origin, ("accept", "text/html")], PING)
                .await,
        ),
        (
            415,
            client
                .send(Method::POST, &[origin, ("content-type", "text/html")], PING)
                .await,
        ),
        (204, client.send(Method::DELETE, &[origin], "").await),
    ];
    for (status, response) in responses {
        assert_eq!(response.status.as_u16(), status);
        let header = |name: &str| {
            response
                .headers
                .get(name)
                .map(|v| v.to_str().unwrap().to_ascii_lowercase())
                .unwrap_or_default()
        };
        assert_eq!(header("access-control-allow-origin"), origin.1, "{status}");
        let exposed = header("access-control-expose-headers");
        assert!(
            exposed.contains("mcp-session-id") && exposed.contains("www-authenticate"),
            "{status}: {exposed}"
        );
        assert!(header("vary").contains("origin"), "{status}");
        assert_eq!(
            status == 401,
            response.headers.contains_key("www-authenticate")
        );
    }
}

#[tokio::test]
async fn a_page_from_elsewhere_is_refused_before_anything_else() {
    let hb = echoing().start().await;
    let (auth, keys) = keys(&["ann"]);
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\norigins: [\"https://app.example.com\"]\n{auth}",
        hb.url()
    ))
    .await;
    let client = gw.client("/mcp").key(&keys[0]).connected().await;
    for origin in [
        "https://evil.example",
        "null",
        "https://app.example.com.evil.example",
        "http://app.example.com",
        "https://app.example.com:444",
        "http://localhost.evil.example",
        "file://",
        "",
    ] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let response = client.send(method, &[("origin", origin)], PING).await;
            assert_eq!(response.status, StatusCode::FORBIDDEN, "{origin:?}");
            assert!(!response.headers.contains_key("access-control-allow-origin"));
            assert!(
                response.json().await["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("Origin")
            );
        }
    }
    assert_eq!(
        client
            .send(Method::POST, &[("origin", "https://app.example.com")], PING)
            .await
            .status,
        StatusCode::OK
    );
    assert_eq!(
        client
            .post(&serde_json::from_str::<Value>(PING).unwrap())
            .await
            .status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_listed_host_is_served_and_any_other_name_is_not() {
    let hb = echoing().start().await;
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\nhosts: [internal.example, \"ported.example:8443\"]\npublic_url: https://public.example/gate\n", hb.url())).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).to_string();
    for (host, status) in [
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("127.0.0.1:9999", 200),
        ("[::1]:80", 200),
        ("public.example", 200),
        ("Public.Example:443", 200),
        ("internal.example:1234", 200),
        ("ported.example:8443", 200),
        ("ported.example", 403),
        ("ported.example:8444", 403),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("public.example.evil", 403),
        ("evil.example/localhost", 403),
        ("", 403),
    ] {
        let mut wire = Wire::to(gw.address).await;
        let text = format!(
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json\r\ncontent-length: {}\r\n\r\n{initialize}",
            initialize.len()
        );
        wire.send(text).await;
        let got = wire.status().await;
        assert!(
            got == status || (status == 403 && got == 400),
            "{host:?}: {got}"
        );
    }
    // The line itself may name the host, and then that one counts.
    let mut wire = Wire::to(gw.address).await;
    wire.send(
        "POST http://evil.example/mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    assert_eq!(wire.status().await, 403);
    let mut wire = Wire::to(gw.address).await;
    wire.send("GET /healthz HTTP/1.1\r\nhost: whatever.example\r\n\r\n")
        .await;
    assert_eq!(wire.status().await, 200);
}

#[tokio::test]
async fn both_spellings_of_a_path_are_served_without_a_redirect() {
    let hb = echoing().start().await;
    let (auth, keys) = keys(&["ann"]);
    let gw = gateway(&format!("servers: {{ one: {{ url: {:?} }} }}\nendpoints: {{ /mcp: {{}}, /tools/deep: {{ servers: [one] }} }}\n{auth}", hb.url())).await;
    for path in [
        "/mcp",
        "/mcp/",
        "/mcp/one",
        "/mcp/one/",
        "/tools/deep",
        "/tools/deep/",
    ] {
        let client = gw
            .client(path)
            .key(&keys[0])
            .header("x-forwarded-proto", "https")
            .connected()
            .await;
        let names = client.tools().await;
        assert_eq!(names.len(), 1, "{path}");
        // The two spellings are one endpoint.
        let mut other = client.twin();
        other.url = match path.strip_suffix('/') {
            Some(without) => gw.url(without),
            None => gw.url(&format!("{path}/")),
        };
        assert_eq!(other.tools().await, names);
        assert_eq!(
            gw.client(path).send(Method::POST, &[], PING).await.status,
            StatusCode::UNAUTHORIZED
        );
        assert_eq!(
            gw.client(path).send(Method::GET, &[], "").await.status,
            StatusCode::UNAUTHORIZED
        );
    }
    for path in ["/", "/mc", "/mcp/two", "/mcp/one/more", "/tools"] {
        let response = gw
            .client(path)
            .key(&keys[0])
            .send(Method::POST, &[], PING)
            .await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
        assert!(response.json().await["error"]["code"].is_i64());
    }
}
