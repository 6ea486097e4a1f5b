//! What the operator hides, renames, describes and fixes; and endpoints of chosen servers.

use crate::support::{
    Client, gateway,
    keys::keys,
    stock::{Stock, at, servers},
};
use serde_json::{Value, json};

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "theirs", "inputSchema": {
        "type": "object", "required": ["db", "q"],
        "properties": {"db": {"type": "string"}, "q": {"type": "string"}, "n": {"type": "integer"}}}})
}

async fn said(client: &Client, name: &str, arguments: Value) -> Value {
    serde_json::from_str(&client.text(name, arguments).await).unwrap()
}

/// Paths on which a server `one` is seen, and what stands before its names there.
const PATHS: [(&str, &str); 2] = [("/mcp", "one__"), ("/mcp/one", "")];

#[tokio::test]
async fn hidden_tools_are_not_listed_and_cannot_be_called_by_any_name() {
    let stock = Stock::new(
        "one",
        json!({"tools": ["read_a", "read_b", "write_a", "drop"]}),
    );
    let hb = stock.legacy().start().await;
    let gw = gateway(&servers(&[(
        "one",
        at(&hb, "tools: { allow: [\"read_*\", drop], deny: [\"*_b\"] }"),
    )]))
    .await;
    for (path, prefix) in PATHS {
        let client = gw.client(path).connected().await;
        assert_eq!(
            client.tools().await,
            [format!("{prefix}read_a"), format!("{prefix}drop")]
        );
        assert_eq!(
            said(&client, &format!("{prefix}read_a"), json!({})).await["tool"],
            "read_a"
        );
        for hidden in ["read_b", "write_a", "nothing", "READ_A"] {
            for name in [
                hidden.to_owned(),
                format!("one__{hidden}"),
                format!("one__one__{hidden}"),
            ] {
                let answer = client.call(&name, json!({})).await;
                assert_eq!(answer["error"]["code"], -32602, "{path} {name}: {answer}");
                let modern = gw
                    .client(path)
                    .modern("tools/call", json!({"name": name}))
                    .await
                    .message()
                    .await;
                assert_eq!(modern["error"]["code"], -32602, "{path} {name}: {modern}");
            }
        }
    }
    let called = hb.seen().into_iter().filter(|s| s.method() == "tools/call");
    assert!(
        called
            .into_iter()
            .all(|s| s.json()["params"]["name"] == "read_a"),
        "nothing hidden reached the server"
    );
    gw.stop().await;
}

#[tokio::test]
async fn new_names_and_descriptions_hold_everywhere() {
    let stock = Stock::new(
        "one",
        json!({"tools": [tool("run"), tool("stop")], "prompts": ["ask", "tell"]}),
    );
    let hb = stock.legacy().start().await;
    let more = "tools: { rename: { run: query }, describe: { run: ours } }, prompts: { rename: { ask: inquire }, deny: [tell], describe: { ask: better } }";
    let gw = gateway(&servers(&[("one", at(&hb, more))])).await;
    for (path, prefix) in PATHS {
        let client = gw.client(path).connected().await;
        let list = client.request("tools/list", json!({})).await["result"]["tools"].clone();
        assert_eq!(
            (&list[0]["name"], &list[0]["description"]),
            (&json!(format!("{prefix}query")), &json!("ours"))
        );
        assert_eq!(
            (&list[1]["name"], &list[1]["description"]),
            (&json!(format!("{prefix}stop")), &json!("theirs"))
        );
        assert_eq!(
            said(&client, &format!("{prefix}query"), json!({})).await["tool"],
            "run"
        );
        let old = client.call(&format!("{prefix}run"), json!({})).await;
        assert_eq!(old["error"]["code"], -32602, "{path}: {old}");
        let prompts = client.request("prompts/list", json!({})).await["result"]["prompts"].clone();
        assert_eq!(prompts.as_array().map(Vec::len), Some(1), "{prompts}");
        assert_eq!(prompts[0]["description"], "better");
        let answer = client
            .request("prompts/get", json!({"name": format!("{prefix}inquire")}))
            .await;
        assert!(
            answer.to_string().contains("\\\"prompt\\\":\\\"ask\\\""),
            "{answer}"
        );
        let complete = json!({"ref": {"type": "ref/prompt", "name": format!("{prefix}inquire")}, "argument": {"name": "a", "value": ""}});
        let answer = client.request("completion/complete", complete).await;
        assert_eq!(
            answer["result"]["completion"]["values"],
            json!(["one: ask"]),
            "{answer}"
        );
        for name in ["ask", "tell"] {
            let answer = client
                .request("prompts/get", json!({"name": format!("{prefix}{name}")}))
                .await;
            assert_eq!(answer["error"]["code"], -32602, "{path} {name}: {answer}");
        }
    }
    gw.stop().await;
}

#[tokio::test]
async fn fixed_parameters_are_hidden_and_nobody_can_set_them() {
    let hb = Stock::new("one", json!({"tools": [tool("run"), tool("free")]}))
        .legacy()
        .start()
        .await;
    let modern = Stock::new("new", json!({"tools": [tool("run")]}))
        .modern()
        .start()
        .await;
    let fix = "tools: { fix: { run: { db: prod, n: 7, deep: { a: [1] } } } }";
    let gw = gateway(&servers(&[
        ("one", at(&hb, fix)),
        ("new", at(&modern, fix)),
    ]))
    .await;
    let fixed = json!({"db": "prod", "n": 7, "deep": {"a": [1]}});
    for (path, name) in [
        ("/mcp", "one__run"),
        ("/mcp/one", "run"),
        ("/mcp", "new__run"),
        ("/mcp/new", "run"),
    ] {
        let client = gw.client(path).connected().await;
        let list = client.request("tools/list", json!({})).await["result"]["tools"].clone();
        let shown = list
            .as_array()
            .unwrap()
            .iter()
            .find(|t| t["name"] == name)
            .unwrap();
        assert_eq!(shown["inputSchema"]["required"], json!(["q"]), "{path}");
        assert_eq!(
            shown["inputSchema"]["properties"],
            json!({"q": {"type": "string"}}),
            "{path}"
        );
        for arguments in [
            json!({"q": "x", "db": "mine", "n": 1}),
            json!({"q": "x"}),
            json!({}),
            Value::Null,
        ] {
            let mut params = json!({"name": name});
            if !arguments.is_null() {
                params["arguments"] = arguments.clone();
            }
            for answer in [
                client.request("tools/call", params.clone()).await,
                gw.client(path)
                    .modern("tools/call", params.clone())
                    .await
                    .message()
                    .await,
            ] {
                let text = answer["result"]["content"][0]["text"]
                    .as_str()
                    .unwrap_or_else(|| panic!("{answer}"));
                let sent = serde_json::from_str::<Value>(text).unwrap()["arguments"].clone();
                for (key, value) in fixed.as_object().unwrap() {
                    assert_eq!(&sent[key], value, "{path} {arguments}");
                }
                assert_eq!(sent.get("q"), arguments.get("q"), "{path} {arguments}");
            }
        }
    }
    let client = gw.client("/mcp/one").connected().await;
    assert_eq!(
        said(&client, "free", json!({"db": "mine"})).await["arguments"],
        json!({"db": "mine"})
    );
    gw.stop().await;
}

#[tokio::test]
async fn hidden_resources_cannot_be_read_by_any_spelling() {
    let stock = Stock::new(
        "one",
        json!({
        "resources": ["file:///pub/a", "file:///secret/b"],
        "templates": ["file:///pub/{name}", "file:///secret/{name}", "file:///{+any}"]}),
    );
    let hb = stock.legacy().start().await;
    let other = Stock::of_all("two").legacy().start().await;
    for more in [
        "resources: { deny: [\"file:///secret/*\"] }",
        "resources: { allow: [\"file:///pub/*\"] }",
    ] {
        let gw = gateway(&servers(&[("one", at(&hb, more)), ("two", at(&other, ""))])).await;
        for path in ["/mcp", "/mcp/one"] {
            let client = gw.client(path).connected().await;
            let never_listed = gw.client(path).connected().await;
            let uris = client.names("resources/list", "resources", "uri").await;
            assert!(
                uris.contains(&"file:///pub/a".to_owned())
                    && !uris.contains(&"file:///secret/b".to_owned()),
                "{uris:?}"
            );
            for client in [&client, &never_listed] {
                for uri in ["file:///pub/a", "file:///pub/z"] {
                    let answer = client.request("resources/read", json!({"uri": uri})).await;
                    assert!(
                        answer.get("result").is_some(),
                        "{more} {path} {uri}: {answer}"
                    );
                }
                for uri in [
                    "file:///secret/b",
                    "file:///secret/other",
                    "one+file:///secret/b",
                    "one+file:///secret/other",
                ] {
                    for method in ["resources/read", "resources/subscribe"] {
                        let answer = client.request(method, json!({"uri": uri})).await;
                        let code = answer["error"]["code"].as_i64();
                        assert!(
                            matches!(code, Some(-32002 | -32602)),
                            "{more} {path} {method} {uri}: {answer}"
                        );
                    }
                    let modern = gw
                        .client(path)
                        .modern("resources/read", json!({"uri": uri}))
                        .await
                        .message()
                        .await;
                    assert_eq!(
                        modern["error"]["code"], -32602,
                        "{more} {path} {uri}: {modern}"
                    );
                }
                let complete = json!({"ref": {"type": "ref/resource", "uri": "file:///secret/{name}"}, "argument": {"name": "name", "value": ""}});
                let answer = client.request("completion/complete", complete).await;
                assert_eq!(answer["error"]["code"], -32602, "{more} {path}: {answer}");
            }
        }
        gw.stop().await;
    }
    let asked: Vec<String> = hb
        .seen()
        .iter()
        .map(|s| s.json()["params"].to_string())
        .collect();
    assert!(
        !asked.iter().any(|p| p.contains("secret")),
        "nothing hidden reached the server"
    );
}

#[tokio::test]
async fn endpoints_show_the_servers_and_tools_that_were_chosen_for_them() {
    let one = Stock::of_all("one").legacy().start().await;
    let two = Stock::new(
        "two",
        json!({"tools": ["a", "b"], "resources": ["two://x"]}),
    )
    .legacy()
    .start()
    .await;
    let all = servers(&[("one", at(&one, "")), ("two", at(&two, ""))]);
    let endpoints = "endpoints:\n  /mcp: { servers: [two, one] }\n  /some: { servers: [two], tools: { deny: [\"*__b\"] } }\n  /bare: { servers: [two], names: bare, tools: { allow: [a] } }\n";
    let gw = gateway(&format!("{endpoints}single_server: false\n{all}")).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(
        client.tools().await,
        ["two__a", "two__b", "one__one-tool"],
        "in the endpoint's order"
    );
    let some = gw.client("/some").connected().await;
    assert_eq!(some.tools().await, ["two__a"]);
    assert_eq!(
        some.call("two__b", json!({})).await["error"]["code"],
        -32602
    );
    assert_eq!(
        some.call("one__one-tool", json!({})).await["error"]["code"],
        -32602
    );
    some.request("resources/read", json!({"uri": "one+one://thing"}))
        .await;
    some.request("resources/read", json!({"uri": "one://thing"}))
        .await;
    assert_eq!(
        one.count("resources/read"),
        0,
        "a server that is not of the endpoint is never reached"
    );
    let bare = gw.client("/bare").connected().await;
    assert_eq!(bare.tools().await, ["a"]);
    assert_eq!(said(&bare, "a", json!({})).await["tool"], "a");
    assert_eq!(bare.call("b", json!({})).await["error"]["code"], -32602);
    let none = gw
        .client("/mcp/one")
        .post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        .await;
    assert_eq!(none.status, 404);
    assert_eq!(one.count("tools/call"), 0);
    gw.stop().await;
}

#[tokio::test]
async fn a_session_of_one_endpoint_is_unknown_on_another() {
    let one = Stock::of_all("one").legacy().start().await;
    let two = Stock::of_all("two").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    let client = gw.client("/mcp/one").connected().await;
    let mut stray = gw.client("/mcp/two");
    stray.session = client.session.clone();
    let answer = stray
        .post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        .await;
    assert_eq!(answer.status, 404);
    gw.stop().await;
}

#[tokio::test]
async fn hidden_things_stay_hidden_when_their_server_is_away_or_comes_back() {
    let stock = Stock::new("one", json!({"tools": ["good", "bad"]}));
    let hb = stock.streaming().start().await;
    let gw = gateway(&servers(&[(
        "one",
        at(&hb, "tools: { deny: [bad, worse] }"),
    )]))
    .await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(client.tools().await, ["one__good"]);
    stock.streams(2).await;
    let mut events = client.listen().await;
    stock.set("tools", json!(["good", "bad", "worse", "new"]));
    stock.say_changed("tools");
    events.next_of("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, ["one__good", "one__new"]);
    for name in ["one__bad", "one__worse"] {
        assert_eq!(client.call(name, json!({})).await["error"]["code"], -32602);
    }
    gw.stop().await;
}

#[tokio::test]
async fn callers_with_keys_of_their_own_get_backend_sessions_of_their_own() {
    let (auth, tokens) = keys(&["ann", "bob"]);
    let hb = Stock::of_all("one").legacy().start().await;
    let gw = gateway(&format!("{auth}{}", servers(&[("one", at(&hb, ""))]))).await;
    for token in &tokens {
        let client = gw.client("/mcp").key(token).connected().await;
        client.text("one__one-tool", json!({})).await;
        let params = json!({"name": "one__one-tool", "arguments": {}});
        let modern = gw
            .client("/mcp")
            .key(token)
            .modern("tools/call", params)
            .await;
        assert_eq!(modern.status, 200);
    }
    let calls: Vec<String> = hb
        .seen()
        .iter()
        .filter(|s| s.method() == "tools/call")
        .map(|s| s.header("mcp-session-id").unwrap().to_owned())
        .collect();
    let mut distinct = calls.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((calls.len(), distinct.len()), (4, 4), "{calls:?}");
    assert!(
        hb.seen()
            .iter()
            .all(|s| s.header("authorization").is_none()),
        "no caller's key is passed on"
    );
    gw.stop().await;
}
