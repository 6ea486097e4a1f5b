//! K29, K30: what is advertised is what works; log levels go to who has them.

use crate::support::{
    gateway,
    hb::{Hb, Reply},
    sb,
    stock::{Stock, at, servers},
};
use serde_json::{Value, json};

async fn greeting(gw: &crate::support::TestGateway, path: &str) -> Value {
    gw.client(path).initialize(json!({})).await
}

async fn discovered(gw: &crate::support::TestGateway, path: &str) -> Value {
    let answer = gw
        .client(path)
        .modern("server/discover", json!({}))
        .await
        .message()
        .await;
    answer["result"].clone()
}

#[tokio::test]
async fn a_server_of_tools_only_makes_a_gateway_of_tools_only() {
    let stock = Stock::new(
        "one",
        json!({"tools": ["t"], "capabilities": {"tools": {}}}),
    );
    for script in [stock.legacy(), stock.modern()] {
        let hb = script.start().await;
        let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
        for path in ["/mcp", "/mcp/one"] {
            for answer in [greeting(&gw, path).await, discovered(&gw, path).await] {
                let capabilities = answer["capabilities"].as_object().unwrap();
                assert_eq!(
                    capabilities.keys().collect::<Vec<_>>(),
                    ["tools"],
                    "{path}: {answer}"
                );
            }
            let client = gw.client(path).connected().await;
            for (method, params) in [
                ("prompts/list", json!({})),
                ("resources/list", json!({})),
                ("resources/templates/list", json!({})),
                ("prompts/get", json!({"name": "x"})),
                ("resources/read", json!({"uri": "a://x"})),
                (
                    "completion/complete",
                    json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
                ),
                ("resources/subscribe", json!({"uri": "a://x"})),
                ("no/such-method", json!({})),
            ] {
                // The path of one server passes what it does not know; the scripted server answers with what it was asked.
                if path == "/mcp" {
                    let answer = client.request(method, params.clone()).await;
                    let unknown = answer["error"]["code"] == -32601;
                    let passed = method == "no/such-method" && answer.get("result").is_some();
                    assert!(unknown || passed, "{method}: {answer}");
                }
            }
        }
        gw.stop().await;
    }
}

#[tokio::test]
async fn an_unknown_method_of_several_servers_is_unknown() {
    let one = Stock::of_all("one").legacy().start().await;
    let two = Stock::of_all("two").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let answer = client.request("com.example/thing", json!({"a": 1})).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let modern = gw
        .client("/mcp")
        .modern("com.example/thing", json!({}))
        .await;
    assert_eq!(modern.status, 404);
    assert_eq!(modern.json().await["error"]["code"], -32601);
    // On the path of one server it is that server's business.
    let client = gw.client("/mcp/one").connected().await;
    let answer = client.request("com.example/thing", json!({"a": 1})).await;
    assert_eq!(answer["result"]["params"], json!({"a": 1}), "{answer}");
    gw.stop().await;
}

#[tokio::test]
async fn capabilities_are_the_union_of_what_the_servers_have() {
    let one = Stock::new(
        "one",
        json!({"tools": ["t"], "capabilities": {"tools": {"listChanged": false}, "logging": {}}}),
    )
    .legacy()
    .start()
    .await;
    let two = Stock::new("two", json!({"prompts": ["a", "b", "c", "d"], "resources": ["a://x"], "capabilities": {
        "prompts": {}, "resources": {"subscribe": true}, "completions": {},
        "experimental": {"x": {"y": 1}},
        "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}})).legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    let answer = greeting(&gw, "/mcp").await;
    let capabilities = &answer["capabilities"];
    for (path, value) in [
        ("/tools/listChanged", json!(true)),
        ("/prompts/listChanged", json!(true)),
        ("/resources/listChanged", json!(true)),
        ("/resources/subscribe", json!(true)),
        ("/logging", json!({})),
        ("/completions", json!({})),
        ("/experimental/x/y", json!(1)),
        (
            "/extensions/io.modelcontextprotocol~1ui/mimeTypes/0",
            json!("text/html;profile=mcp-app"),
        ),
    ] {
        assert_eq!(
            capabilities.pointer(path),
            Some(&value),
            "{path} in {answer}"
        );
    }
    let client = gw.client("/mcp").connected().await;
    assert_eq!(
        client.names("prompts/list", "prompts", "name").await.len(),
        4
    );
    let modern = discovered(&gw, "/mcp").await;
    assert_eq!(
        modern["capabilities"]["extensions"], capabilities["extensions"],
        "{modern}"
    );
    assert_eq!(
        modern["capabilities"].pointer("/resources/subscribe"),
        None,
        "what is not carried is not promised"
    );
    gw.stop().await;
}

#[tokio::test]
async fn one_server_alone_introduces_itself_and_several_are_introduced() {
    let one = Stock::new("one", json!({"tools": ["t"], "instructions": "Be kind."}))
        .legacy()
        .start()
        .await;
    let two = Stock::new("two", json!({"tools": ["t"], "instructions": "Be quick."}))
        .legacy()
        .start()
        .await;
    let three = Stock::new("three", json!({"tools": ["t"]}))
        .legacy()
        .start()
        .await;
    let hidden = at(&three, "tools: { deny: [x] }");
    let gw = gateway(&servers(&[
        ("one", at(&one, "")),
        ("two", at(&two, "")),
        ("three", hidden),
    ]))
    .await;
    let all = greeting(&gw, "/mcp").await;
    let text = all["instructions"].as_str().unwrap();
    assert_eq!(text, "## one\n\nBe kind.\n\n## two\n\nBe quick.");
    assert_eq!(all["serverInfo"]["name"], "drawbridge");
    let alone = greeting(&gw, "/mcp/one").await;
    assert_eq!(
        (&alone["instructions"], &alone["serverInfo"]["name"]),
        (&json!("Be kind."), &json!("one"))
    );
    // Also where something of it is hidden.
    assert_eq!(
        greeting(&gw, "/mcp/three").await["serverInfo"]["name"],
        "three"
    );
    let modern = discovered(&gw, "/mcp").await;
    assert_eq!(modern["instructions"], text);
    gw.stop().await;
}

#[tokio::test]
async fn a_level_goes_to_the_servers_that_have_levels_and_the_answer_is_good() {
    let with = Stock::new("with", json!({"tools": ["t"]}))
        .legacy()
        .start()
        .await;
    let without = Stock::new(
        "without",
        json!({"tools": ["t"], "capabilities": {"tools": {}}}),
    )
    .legacy()
    .start()
    .await;
    let late = Stock::new("late", json!({"tools": ["t"]}))
        .legacy()
        .start()
        .await;
    let gw = gateway(&servers(&[
        ("with", at(&with, "")),
        ("without", at(&without, "")),
        ("late", at(&late, "")),
        ("local", sb(&[], "")),
    ]))
    .await;
    let client = gw.client("/mcp").connected().await;
    for server in ["with", "without"] {
        client.text(&format!("{server}__t"), json!({})).await;
    }
    let answer = client
        .request("logging/setLevel", json!({"level": "debug"}))
        .await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    let seen = with.wait_for(|s| s.method() == "logging/setLevel").await;
    assert_eq!(seen.json()["params"]["level"], "debug");
    // A server that is opened later is told before its first call.
    client.text("late__t", json!({})).await;
    let methods = late.methods();
    let level = methods
        .iter()
        .rposition(|m| m == "logging/setLevel")
        .expect("it was told");
    let call = methods.iter().rposition(|m| m == "tools/call").unwrap();
    assert!(level < call, "{methods:?}");
    assert_eq!(without.count("logging/setLevel"), 0);
    for level in [json!("loud"), json!(7), json!(null)] {
        let answer = client
            .request("logging/setLevel", json!({"level": level}))
            .await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    gw.stop().await;
}

#[tokio::test]
async fn levels_of_servers_without_any_are_an_unknown_method() {
    let hb = Stock::new(
        "one",
        json!({"tools": ["t"], "capabilities": {"tools": {}}}),
    )
    .legacy()
    .start()
    .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let answer = client
        .request("logging/setLevel", json!({"level": "info"}))
        .await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    gw.stop().await;
}

#[tokio::test]
async fn log_messages_reach_the_session_that_asked_and_at_its_level() {
    let stock = Stock::new("one", json!({"tools": ["t"]}));
    let log = |level: &str, text: &str| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": text, "logger": "l"}});
    let hb = stock
        .legacy()
        .on("tools/call", move |seen| {
            Reply::events()
                .message(log("info", "quiet"))
                .message(log("error", "loud"))
                .message(seen.result(json!({"content": []})))
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let loud = gw.client("/mcp").connected().await;
    let other = gw.client("/mcp").connected().await;
    loud.request("logging/setLevel", json!({"level": "error"}))
        .await;
    let mut others = other.listen().await;
    let message =
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "one__t"}});
    let mut events = loud.post(&message).await.events();
    let mut got = Vec::new();
    while let Some(message) = events.next().await {
        got.push(message);
    }
    assert_eq!(got.len(), 2, "{got:?}");
    assert_eq!(
        got[0]["params"],
        json!({"level": "error", "data": "loud", "logger": "l"})
    );
    assert_eq!(got[1]["id"], 9);
    assert!(
        others
            .is_silent_for(std::time::Duration::from_millis(100))
            .await
    );
    // A modern client gets what its own request asks for.
    for (level, wanted) in [(None, 0), (Some("info"), 2), (Some("error"), 1)] {
        let mut params = json!({"name": "one__t", "arguments": {}});
        if let Some(level) = level {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
        }
        let response = gw.client("/mcp").modern("tools/call", params).await;
        let mut logs = 0;
        if response.is_stream() {
            let mut events = response.events();
            while let Some(message) = events.next().await {
                logs += usize::from(message["method"] == "notifications/message");
            }
        }
        assert_eq!(logs, wanted, "{level:?}");
    }
    gw.stop().await;
}

#[tokio::test]
async fn no_servers_at_all_is_a_gateway_with_no_tools() {
    let gw = gateway("servers: {}\n").await;
    let mut client = gw.client("/mcp");
    let greeting = client.initialize(json!({})).await;
    assert!(
        greeting["capabilities"].get("prompts").is_none(),
        "{greeting}"
    );
    assert_eq!(client.tools().await, Vec::<String>::new());
    assert_eq!(client.call("x", json!({})).await["error"]["code"], -32602);
    gw.stop().await;
}

#[tokio::test]
async fn revisions_are_negotiated_on_each_side_by_itself() {
    let hb = Hb::legacy()
        .on("initialize", |seen| {
            Reply::json(seen.result(json!({"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}})))
        })
        .on("tools/list", |seen| Reply::json(seen.result(json!({"tools": [{"name": "t"}]}))))
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    for (asked, settled) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        for path in ["/mcp", "/mcp/one"] {
            let mut client = gw.client(path).revision(asked);
            let greeting = client.initialize(json!({})).await;
            assert_eq!(greeting["protocolVersion"], settled, "{path} {asked}");
            assert_eq!(client.tools().await.len(), 1);
        }
    }
    let spoken = hb.seen().into_iter().filter(|s| s.method() == "tools/list");
    assert!(
        spoken
            .into_iter()
            .all(|s| s.header("mcp-protocol-version") == Some("2025-03-26"))
    );
    gw.stop().await;
}
