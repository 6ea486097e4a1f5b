//! K45: servers of both eras side by side; what changes between the eras; and a clear word where something cannot be carried.

use crate::support::{
    caller::{Caller, MODERN, names},
    gateway,
    hb::{Hb, Reply},
    sb,
    stock::{Stock, at, servers},
};
use serde_json::{Value, json};

#[tokio::test]
async fn many_servers_of_both_eras_are_all_listed_to_both() {
    let mut hbs = Vec::new();
    for n in 0..9 {
        let stock = Stock::new(&format!("s{n}"), json!({"tools": ["t"]}));
        let script = match n % 3 {
            2 => stock.legacy().on("server/discover", |_| Reply::status(404)),
            _ => stock.modern(),
        };
        hbs.push((format!("s{n}"), script.start().await));
    }
    let all: Vec<(&str, String)> = hbs
        .iter()
        .map(|(name, hb)| (name.as_str(), at(hb, "")))
        .collect();
    let gw = gateway(&servers(&all)).await;
    for revision in ["2025-06-18", MODERN] {
        let caller = Caller::of(&gw, revision).await;
        let tools = caller.result("list", "tools/list", json!({})).await;
        let wanted: Vec<String> = (0..9).map(|n| format!("s{n}__t")).collect();
        assert_eq!(names(&tools, "tools"), wanted, "{revision}");
        for name in wanted {
            caller
                .result("call", "tools/call", json!({"name": name, "arguments": {}}))
                .await;
        }
    }
    gw.stop().await;
}

#[tokio::test]
async fn servers_with_and_without_sessions_stand_side_by_side() {
    let with = Stock::of_all("with").legacy().start().await;
    let without = Stock::of_all("without")
        .legacy()
        .without_sessions()
        .start()
        .await;
    let gw = gateway(&servers(&[
        ("with", at(&with, "")),
        ("without", at(&without, "")),
    ]))
    .await;
    for revision in ["2025-03-26", "2025-11-25", MODERN] {
        let caller = Caller::of(&gw, revision).await;
        for server in ["with", "without"] {
            let call = json!({"name": format!("{server}__{server}-tool"), "arguments": {}});
            let called = caller.result("call", "tools/call", call).await;
            assert!(
                called["content"][0]["text"]
                    .as_str()
                    .unwrap()
                    .contains(server)
            );
        }
    }
    assert!(
        without
            .seen()
            .iter()
            .all(|s| s.header("mcp-session-id").is_none())
    );
    gw.stop().await;
}

#[tokio::test]
async fn each_client_is_served_in_its_own_era_by_a_server_of_both() {
    let gw = gateway(&servers(&[("one", sb(&["--era=both"], ""))])).await;
    let legacy = gw.client("/mcp").connected().await;
    let declared = legacy.text("one__declared", json!({})).await;
    assert!(
        declared.contains("\"name\":\"test\"") && declared.contains("protocolVersion"),
        "{declared}"
    );
    let params = json!({"name": "one__declared", "arguments": {}});
    let answer = gw
        .client("/mcp")
        .modern("tools/call", params)
        .await
        .message()
        .await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("io.modelcontextprotocol/protocolVersion"),
        "{text}"
    );
    gw.stop().await;
}

#[tokio::test]
async fn a_legacy_client_gets_no_schema_that_it_would_refuse() {
    let tool =
        json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}});
    let stock = Stock::new(
        "one",
        json!({"tools": [tool, {"name": "u", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}]}),
    );
    let hb = stock
        .modern()
        .on("tools/call", |seen| {
            let result =
                json!({"resultType": "complete", "content": [], "structuredContent": [1, 2]});
            Reply::json(seen.result(result))
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    for (path, prefix) in [("/mcp", "one__"), ("/mcp/one", "")] {
        let client = gw.client(path).connected().await;
        let list = client.request("tools/list", json!({})).await;
        let tools = &list["result"]["tools"];
        assert!(tools[0].get("outputSchema").is_none(), "{path}: {list}");
        assert!(tools[1].get("outputSchema").is_some(), "{path}: {list}");
        let answer = client.call(&format!("{prefix}t"), json!({})).await;
        assert_eq!(
            answer["result"]["content"],
            json!([{"type": "text", "text": "[1,2]"}]),
            "{path}: {answer}"
        );
        let modern = gw
            .client(path)
            .modern("tools/list", json!({}))
            .await
            .message()
            .await;
        assert!(
            modern["result"]["tools"][0].get("outputSchema").is_some(),
            "{path}: {modern}"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn annotated_arguments_travel_in_headers_whoever_calls() {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer", "x-mcp-header": "N"}}});
    let tool = json!({"name": "t", "inputSchema": schema});
    let bad = json!({"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}}});
    let stock = Stock::new("one", json!({"tools": [tool, bad]}));
    let hb = stock.modern().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    for (n, (path, name)) in [("/mcp", "one__t"), ("/mcp/one", "t")]
        .into_iter()
        .enumerate()
    {
        let client = gw.client(path).connected().await;
        assert_eq!(
            client.tools().await,
            [name],
            "a tool with a bad annotation cannot be called that way"
        );
        client
            .text(name, json!({"region": "\u{e9}u", "n": 7}))
            .await;
        let seen = hb.wait_for_nth(n + 1, |s| s.method() == "tools/call").await;
        assert!(
            seen.header("mcp-param-region")
                .is_some_and(|v| v.starts_with("=?base64?")),
            "{:?}",
            seen.headers
        );
        assert_eq!(seen.header("mcp-param-n"), Some("7"));
        assert_eq!(seen.header("mcp-name"), Some("t"));
        assert_eq!(seen.header("mcp-method"), Some("tools/call"));
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_schema_that_changed_without_a_word_is_read_anew_when_its_headers_are_refused() {
    let tool = |header: &str| json!({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": header}}}});
    let stock = Stock::new("one", json!({"tools": [tool("Old")]}));
    let script = stock.modern();
    let answer = script.answer_to("tools/call");
    let wanted = |seen: &crate::support::hb::Seen| {
        seen.header("mcp-param-new").is_some() || seen.header("mcp-param-old").is_some()
    };
    let hb = script
        .on("tools/call", move |seen| {
            match (wanted(seen), seen.header("mcp-param-old")) {
                (true, None) => answer(seen),
                _ => Reply::json(seen.error(-32020, "Header mismatch")).with_status(400),
            }
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    for (path, name) in [("/mcp", "one__t"), ("/mcp/one", "t")] {
        stock.set("tools", json!([tool("Old")]));
        let client = gw.client(path).connected().await;
        client.tools().await;
        stock.set("tools", json!([tool("New")]));
        assert!(
            client.text(name, json!({"a": "x"})).await.contains("one"),
            "{path}"
        );
        stock.set("tools", json!([tool("Old")]));
        let answer = client.call(name, json!({})).await;
        assert_eq!(
            answer["error"]["code"], -31001,
            "{path}: refused again: {answer}"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn what_needs_translation_gets_a_clear_error_and_never_hangs() {
    let old = Stock::of_all("old").legacy().start().await;
    let new = Stock::of_all("new")
        .modern()
        .on("tools/call", |seen| {
            Reply::json(seen.result(json!({"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}, "requestState": "s"})))
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("old", at(&old, "")), ("new", at(&new, ""))])).await;
    // A subscription of the modern era needs a modern server.
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let refused = gw
        .client("/mcp/old")
        .modern("subscriptions/listen", listen.clone())
        .await;
    assert_eq!(refused.status, 404);
    let error = refused.json().await["error"].clone();
    assert_eq!(error["code"], -32601);
    assert!(
        error["message"].as_str().unwrap().contains("`old`"),
        "{error}"
    );
    assert_eq!(
        old.count("subscriptions/listen"),
        0,
        "the server was not asked what it cannot know"
    );
    let refused = gw
        .client("/mcp")
        .modern("subscriptions/listen", listen)
        .await
        .message()
        .await;
    assert_eq!(refused["error"]["code"], -31006, "{refused}");
    // A modern server's question cannot be carried to a legacy client yet.
    let client = gw.client("/mcp").connected().await;
    let answer = client.call("new__new-tool", json!({})).await;
    assert_eq!(answer["error"]["code"], -31006, "{answer}");
    let answer = client
        .request("resources/subscribe", json!({"uri": "new://thing"}))
        .await;
    assert_eq!(answer["error"]["code"], -31006, "{answer}");
    // To a modern client it passes.
    let passed = gw
        .client("/mcp")
        .modern(
            "tools/call",
            json!({"name": "new__new-tool", "arguments": {}}),
        )
        .await
        .message()
        .await;
    assert_eq!(passed["result"]["requestState"], "s", "{passed}");
    gw.stop().await;
}

#[tokio::test]
async fn a_subscription_passes_to_a_modern_server() {
    let hb = Stock::of_all("one")
        .modern()
        .on("subscriptions/listen", |seen| {
            let id = seen.id();
            let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
            let note = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
            Reply::events()
                .message(note("notifications/subscriptions/acknowledged", json!({"_meta": meta, "notifications": {"toolsListChanged": true}})))
                .message(note("notifications/tools/list_changed", json!({"_meta": meta})))
                .silence()
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp/one");
    let response = client
        .modern(
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
        )
        .await;
    let mut events = response.events();
    for method in [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ] {
        let message = events.next().await.unwrap();
        assert_eq!(message["method"], method);
        let tag = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(tag, &json!(1), "the client's own id: {message}");
    }
    drop(events);
    hb.wait_until_open(1).await;
    gw.stop().await;
}

#[tokio::test]
async fn questions_of_a_legacy_server_to_a_modern_client_are_declined_at_once() {
    let gw = gateway(&servers(&[("one", sb(&[], ""))])).await;
    for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
        let params = json!({"name": "one__ask", "arguments": {"method": method, "params": {}}});
        let answer = gw
            .client("/mcp")
            .modern("tools/call", params)
            .await
            .message()
            .await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("-32601"), "{method}: {text}");
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_server_of_http_and_sse_alone_gets_a_word_that_says_so() {
    let hb = Hb::bare().otherwise(|_| Reply::status(405)).start().await;
    let good = Stock::of_all("good").legacy().start().await;
    let gw = gateway(&servers(&[("old", at(&hb, "")), ("good", at(&good, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let answer = client.call("old__x", json!({})).await;
    assert_eq!(answer["error"]["code"], -31001, "{answer}");
    assert!(
        client
            .text("good__good-tool", json!({}))
            .await
            .contains("good")
    );
    gw.stop().await;
}

#[tokio::test]
async fn a_fixed_protocol_is_not_asked_about() {
    let legacy = Stock::of_all("one").legacy().start().await;
    let modern = Stock::of_all("two").modern().start().await;
    let gw = gateway(&servers(&[
        ("one", at(&legacy, "protocol: 2025-06-18")),
        ("two", at(&modern, "protocol: modern")),
    ]))
    .await;
    for revision in ["2025-11-25", MODERN] {
        let caller = Caller::of(&gw, revision).await;
        for server in ["one", "two"] {
            caller
                .result(
                    "call",
                    "tools/call",
                    json!({"name": format!("{server}__{server}-tool"), "arguments": {}}),
                )
                .await;
        }
    }
    assert_eq!(
        (legacy.count("server/discover"), modern.count("initialize")),
        (0, 0)
    );
    let asked = legacy.wait_for(|s| s.method() == "initialize").await;
    assert_eq!(asked.json()["params"]["protocolVersion"], "2025-06-18");
    gw.stop().await;
}
