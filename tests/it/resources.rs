//! K27: resources, templates, prompts and completion of several servers on one endpoint.

use crate::support::{
    Client, gateway,
    hb::Reply,
    stock::{Stock, at, example, servers},
};
use serde_json::{Value, json};

/// What a read of `uri` says; the URI that its contents bear.
async fn read(client: &Client, uri: &str) -> (String, String) {
    let answer = client.request("resources/read", json!({"uri": uri})).await;
    let contents = &answer["result"]["contents"][0];
    let part = |member: &str| {
        contents[member]
            .as_str()
            .unwrap_or_else(|| panic!("{uri}: {answer}"))
            .to_owned()
    };
    (part("text"), part("uri"))
}

async fn uris(client: &Client) -> Vec<String> {
    client.names("resources/list", "resources", "uri").await
}

async fn templates(client: &Client) -> Vec<String> {
    client
        .names(
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
        )
        .await
}

#[tokio::test]
async fn one_uri_of_two_servers_is_two_and_each_reads_its_own() {
    let offer =
        json!({"resources": ["timezone://info", "x://only"], "templates": ["file:///p/{id}.txt"]});
    let one = Stock::new("one", offer.clone()).legacy().start().await;
    let two = Stock::new("two", json!({"resources": ["timezone://info"], "templates": ["file:///p/{id}.txt", "mine://{a}"]})).legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(
        uris(&client).await,
        ["one+timezone://info", "x://only", "two+timezone://info"]
    );
    assert_eq!(
        templates(&client).await,
        [
            "one+file:///p/{id}.txt",
            "two+file:///p/{id}.txt",
            "mine://{a}"
        ]
    );
    for server in ["one", "two"] {
        for uri in ["timezone://info", "file:///p/7.txt"] {
            let shown = format!("{server}+{uri}");
            let (text, own) = read(&client, &shown).await;
            assert_eq!(
                text,
                format!("{server}: {uri}"),
                "the server saw its own URI"
            );
            if uri.starts_with("timezone") {
                assert_eq!(own, shown, "and the client its");
            }
        }
    }
    assert_eq!(
        read(&client, "x://only").await,
        ("one: x://only".into(), "x://only".into())
    );
    assert_eq!(
        read(&client, "one+x://only").await.0,
        "one: x://only",
        "the long form is always accepted"
    );
    assert_eq!(read(&client, "mine://b").await.0, "two: mine://b");
    for uri in ["timezone://info", "file:///p/7.txt"] {
        let answer = client.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(
            text.contains(&format!("one+{uri}")) && text.contains(&format!("two+{uri}")),
            "{text}"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_uri_is_read_from_whoever_lists_it_then_by_template_then_by_scheme() {
    let one = Stock::new("one", json!({"resources": ["file:///a", "one:///x"], "templates": ["file:///logs/{name}", "db://{table}"]})).legacy().start().await;
    let two = Stock::new("two", json!({"resources": ["file:///b", "two:///y", "only://1"], "templates": ["file:///logs/today/{+path}"]})).legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    for client in [
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
    ] {
        for (uri, server) in [
            ("file:///a", "one"),
            ("file:///b", "two"),
            ("file:///logs/x", "one"),
            ("file:///logs/today/a/b", "two"),
            ("db://users", "one"),
            ("only://2", "two"),
            ("one:///z", "one"),
            ("two:///z", "two"),
        ] {
            assert_eq!(read(&client, uri).await.0, format!("{server}: {uri}"));
        }
        for uri in ["nobody://1", "file:///c", "plain", "", "nobody+file:///a"] {
            let answer = client.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
        }
    }
    let modern = gw
        .client("/mcp")
        .modern("resources/read", json!({"uri": "nobody://1"}))
        .await
        .message()
        .await;
    assert_eq!(modern["error"]["code"], -32602, "{modern}");
    gw.stop().await;
}

#[tokio::test]
async fn schemes_that_look_like_servers_are_no_servers() {
    let git = Stock::new("git", json!({"resources": ["ssh://host/own", "git://x"]}))
        .legacy()
        .start()
        .await;
    let other = Stock::new("other", json!({"resources": ["git+ssh://host/repo", "git://y"], "templates": ["git+file:///{+path}"]})).legacy().start().await;
    let gw = gateway(&servers(&[
        ("git", at(&git, "")),
        ("other", at(&other, "")),
    ]))
    .await;
    let client = gw.client("/mcp").connected().await;
    for (uri, server, seen) in [
        ("git://x", "git", "git://x"),
        ("git://y", "other", "git://y"),
        ("git+ssh://host/repo", "other", "git+ssh://host/repo"),
        ("git+file:///a/b", "other", "git+file:///a/b"),
        ("git+ssh://host/own", "git", "ssh://host/own"),
        ("other+git+ssh://host/repo", "other", "git+ssh://host/repo"),
    ] {
        assert_eq!(
            read(&client, uri).await.0,
            format!("{server}: {seen}"),
            "{uri}"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn links_and_embedded_resources_bear_the_uri_that_finds_their_server() {
    let stock = Stock::new(
        "one",
        json!({"tools": ["t"], "resources": ["a://x", "a://y"], "prompts": ["p"]}),
    );
    let hb = stock
        .legacy()
        .on("tools/call", |seen| {
            Reply::json(seen.result(json!({
                "content": [
                    {"type": "resource_link", "uri": "a://x", "name": "x"},
                    {"type": "resource", "resource": {"uri": "a://x", "text": "a://x"}},
                    {"type": "resource_link", "uri": "a://y", "name": "y"},
                    {"type": "text", "text": "a://x"}],
                "structuredContent": {"uri": "a://x"}})))
        })
        .on("prompts/get", |seen| {
            let block = json!({"type": "resource", "resource": {"uri": "a://x", "text": "t"}});
            Reply::json(seen.result(json!({"messages": [{"role": "user", "content": block}]})))
        })
        .start()
        .await;
    let two = Stock::new("two", json!({"resources": ["a://x"]}))
        .legacy()
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, "")), ("two", at(&two, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let result = client.call("one__t", json!({})).await["result"].clone();
    assert_eq!(result["content"][0]["uri"], "one+a://x");
    assert_eq!(result["content"][1]["resource"]["uri"], "one+a://x");
    assert_eq!(
        result["content"][1]["resource"]["text"], "a://x",
        "text is the tool's own"
    );
    assert_eq!(result["content"][2]["uri"], "a://y");
    assert_eq!(result["structuredContent"]["uri"], "a://x");
    let result = client
        .request("prompts/get", json!({"name": "one__p"}))
        .await["result"]
        .clone();
    assert_eq!(
        result["messages"][0]["content"]["resource"]["uri"],
        "one+a://x"
    );
    gw.stop().await;
}

#[tokio::test]
async fn updates_of_a_followed_resource_reach_its_followers_under_their_uri() {
    let stock = Stock::new("one", json!({"resources": ["a://x", "a://y"]}));
    let one = stock.streaming().start().await;
    let two = Stock::new("two", json!({"resources": ["a://x"]}))
        .legacy()
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    let follower = gw.client("/mcp").connected().await;
    let other = gw.client("/mcp").connected().await;
    uris(&follower).await;
    read(&other, "a://y").await;
    let answer = follower
        .request("resources/subscribe", json!({"uri": "one+a://x"}))
        .await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    let seen = one.wait_for(|s| s.method() == "resources/subscribe").await;
    assert_eq!(seen.json()["params"]["uri"], "a://x");
    assert_eq!(two.count("resources/subscribe"), 0);
    stock.streams(3).await;
    let (mut events, mut others) = (follower.listen().await, other.listen().await);
    let updated = |uri: &str| json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri, "x": 1}});
    stock.say(&updated("a://y"));
    stock.say(&updated("a://x"));
    let got = events.next_of("notifications/resources/updated").await;
    assert_eq!(got["params"], json!({"uri": "one+a://x", "x": 1}));
    follower
        .request("resources/unsubscribe", json!({"uri": "one+a://x"}))
        .await;
    let seen = one
        .wait_for(|s| s.method() == "resources/unsubscribe")
        .await;
    assert_eq!(seen.json()["params"]["uri"], "a://x");
    stock.say(&updated("a://x"));
    stock.say_changed("tools");
    // What was said after it is there, so nothing else was.
    for events in [&mut events, &mut others] {
        let next = events.next().await.unwrap();
        assert_eq!(next["method"], "notifications/tools/list_changed", "{next}");
    }
    gw.stop().await;
}

#[tokio::test]
async fn prompts_and_completion_reach_their_server_with_its_own_names() {
    let one = Stock::of_all("one").legacy().start().await;
    let two = Stock::of_all("two").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    let mut client = gw.client("/mcp");
    let greeting = client.initialize(json!({})).await;
    for capability in ["prompts", "resources", "completions", "tools"] {
        assert!(
            greeting["capabilities"].get(capability).is_some(),
            "{greeting}"
        );
    }
    assert_eq!(
        client.names("prompts/list", "prompts", "name").await,
        ["one__one-prompt", "two__two-prompt"]
    );
    let arguments = json!({"a": "1", "b": "\u{e9}"});
    let answer = client
        .request(
            "prompts/get",
            json!({"name": "two__two-prompt", "arguments": arguments}),
        )
        .await;
    let text = answer["result"]["messages"][0]["content"]["text"]
        .as_str()
        .unwrap();
    let said: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        said,
        json!({"server": "two", "prompt": "two-prompt", "arguments": arguments})
    );
    for (reference, server, seen) in [
        (
            json!({"type": "ref/prompt", "name": "one__one-prompt"}),
            "one",
            "one-prompt",
        ),
        (
            json!({"type": "ref/prompt", "name": "two__two-prompt", "title": "t"}),
            "two",
            "two-prompt",
        ),
        (
            json!({"type": "ref/resource", "uri": "two://item/{id}"}),
            "two",
            "two://item/{id}",
        ),
        (
            json!({"type": "ref/resource", "uri": "one://thing"}),
            "one",
            "one://thing",
        ),
        (
            json!({"type": "ref/resource", "uri": "one+one://item/{id}"}),
            "one",
            "one://item/{id}",
        ),
    ] {
        let params = json!({"ref": reference, "argument": {"name": "id", "value": "B"}, "context": {"arguments": {"c": "d"}}});
        let answer = client.request("completion/complete", params.clone()).await;
        assert_eq!(
            answer["result"]["completion"]["values"],
            json!([format!("{server}: {seen}")]),
            "{answer}"
        );
        let hb = if server == "one" { &one } else { &two };
        let last = hb
            .seen()
            .into_iter()
            .rfind(|s| s.method() == "completion/complete")
            .unwrap();
        assert_eq!(
            last.json()["params"]["context"],
            params["context"],
            "the rest is unchanged"
        );
    }
    for reference in [
        json!({"type": "ref/prompt", "name": "one__nothing"}),
        json!({"type": "ref/other", "name": "x"}),
        json!({"type": "ref/prompt"}),
        json!({}),
        json!("x"),
    ] {
        let answer = client
            .request(
                "completion/complete",
                json!({"ref": reference, "argument": {"name": "a", "value": ""}}),
            )
            .await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_modern_client_reads_and_completes_across_servers() {
    let one = Stock::of_all("one").legacy().start().await;
    let two = Stock::of_all("two").modern().start().await;
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    let client = gw.client("/mcp");
    for server in ["one", "two"] {
        for (method, params) in [
            (
                "resources/read",
                json!({"uri": format!("{server}://thing")}),
            ),
            (
                "resources/read",
                json!({"uri": format!("{server}+{server}://thing")}),
            ),
            (
                "resources/read",
                json!({"uri": format!("{server}://item/9")}),
            ),
            (
                "prompts/get",
                json!({"name": format!("{server}__{server}-prompt")}),
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/resource", "uri": format!("{server}://item/{{id}}")}, "argument": {"name": "id", "value": ""}}),
            ),
        ] {
            let answer = client.modern(method, params.clone()).await.message().await;
            assert_eq!(
                answer["result"]["resultType"], "complete",
                "{method} {params}: {answer}"
            );
            assert!(answer.to_string().contains(server), "{answer}");
        }
    }
    gw.stop().await;
}

#[tokio::test]
async fn followers_of_a_shared_process_are_counted() {
    const URI: &str = "weather://forecast/Paris/2024-06-15";
    let weather = example(
        &["weather", "--protocol", "2025-11-25"],
        "isolation: shared",
    );
    let gw = gateway(&servers(&[("weather", weather)])).await;
    let [first, second, third] = [
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
        gw.client("/mcp").connected().await,
    ];
    for client in [&first, &second, &third] {
        let answer = client
            .request("resources/subscribe", json!({"uri": URI}))
            .await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    let mut events = second.listen().await;
    let change = async |client: &Client| {
        let answer = client
            .call(
                "weather__advanceForecast",
                json!({"city": "Paris", "date": "2024-06-15"}),
            )
            .await;
        assert!(answer.get("result").is_some(), "{answer}");
    };
    // One leaves in order and one just goes: whoever stays is told.
    first
        .request("resources/unsubscribe", json!({"uri": URI}))
        .await;
    third.delete().await;
    change(&first).await;
    let got = events.next_of("notifications/resources/updated").await;
    assert_eq!(got["params"]["uri"], URI);
    assert!(
        first
            .listen()
            .await
            .is_silent_for(std::time::Duration::from_millis(100))
            .await
    );
    second
        .request("resources/unsubscribe", json!({"uri": URI}))
        .await;
    change(&first).await;
    assert!(
        events
            .is_silent_for(std::time::Duration::from_millis(100))
            .await,
        "nobody follows any more"
    );
    gw.stop().await;
}

#[tokio::test]
async fn what_a_session_follows_is_followed_again_without_a_call() {
    let stock = Stock::new("one", json!({"resources": ["a://x"]}));
    let hb = stock.streaming().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    client
        .request("resources/subscribe", json!({"uri": "a://x"}))
        .await;
    stock.streams(2).await;
    let mut events = client.listen().await;
    hb.forget_sessions();
    stock.end_streams();
    let again = hb
        .wait_for_nth(2, |s| s.method() == "resources/subscribe")
        .await;
    assert_eq!(again.json()["params"]["uri"], "a://x");
    stock.say(&json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a://x"}}));
    let got = events.next_of("notifications/resources/updated").await;
    assert_eq!(got["params"]["uri"], "a://x");
    gw.stop().await;
}
