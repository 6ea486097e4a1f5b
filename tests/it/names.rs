//! K24, K25, K26: names that are too long, odd, ambiguous or taken twice.

use crate::support::{
    Client, gateway, sb,
    stock::{Stock, at, servers},
};
use serde_json::{Value, json};
use std::collections::HashSet;

fn legal(name: &str, max: usize) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= max && name.chars().all(good)
}

/// What a tool that answers with what it was asked says it was.
async fn asked(client: &Client, tool: &str) -> (String, String) {
    let text = client.text(tool, json!({})).await;
    let said: Value = serde_json::from_str(&text).unwrap();
    let part = |member: &str| said[member].as_str().unwrap().to_owned();
    (part("server"), part("tool"))
}

#[tokio::test]
async fn names_of_any_length_and_kind_are_made_legal_and_lead_back() {
    let long = "x".repeat(60);
    let longer = format!("{}y", "x".repeat(200));
    let odd = [
        "admin.list",
        "user/update",
        "name with space",
        "\u{fc}ml\u{e4}ut",
        "\u{4e2d}\u{6587}",
        "a:b",
        "a.b",
        "a b",
        "a/b",
        "short",
        &long,
        &longer,
        "",
        "\u{1f680}",
        "get-catalog-entity",
        "a__b",
        "_x",
        "x_",
        "__",
    ];
    let stock = Stock::new("big", json!({"tools": odd, "prompts": odd}));
    let hb = stock.legacy().start().await;
    let gw = gateway(&servers(&[("enterprise-database-management", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    for (method, member) in [("tools/list", "tools"), ("prompts/list", "prompts")] {
        let names = client.names(method, member, "name").await;
        assert_eq!(names.len(), odd.len(), "{names:?}");
        assert!(names.iter().all(|n| legal(n, 64)), "{names:?}");
        let distinct: HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        for (name, original) in names.iter().zip(odd) {
            if member == "tools" {
                assert_eq!(asked(&client, name).await.1, original);
            } else {
                let answer = client.request("prompts/get", json!({"name": name})).await;
                let text = answer["result"]["messages"][0]["content"]["text"]
                    .as_str()
                    .unwrap();
                let said: Value = serde_json::from_str(text).unwrap();
                assert_eq!(said["prompt"], original);
            }
        }
        assert!(
            names.contains(&"enterprise-database-management__short".to_owned()),
            "what is legal stays as it is"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_name_is_the_same_after_a_restart_and_whatever_else_is_listed() {
    let few = Stock::new("s", json!({"tools": ["a.b"]}))
        .legacy()
        .start()
        .await;
    let many = Stock::new("s", json!({"tools": ["a/b", "x", "a.b", "a b"]}))
        .legacy()
        .start()
        .await;
    let mut seen = HashSet::new();
    for hb in [&few, &many, &few] {
        let gw = gateway(&servers(&[("db", at(hb, ""))])).await;
        let client = gw.client("/mcp").connected().await;
        for name in client.tools().await {
            if asked(&client, &name).await.1 == "a.b" {
                seen.insert(name);
            }
        }
        gw.stop().await;
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[tokio::test]
async fn the_length_is_a_setting() {
    let hb = Stock::new("s", json!({"tools": ["x".repeat(50), "y"]}))
        .legacy()
        .start()
        .await;
    let gw = gateway(&format!(
        "names: {{ max: 44 }}\n{}",
        servers(&[("db", at(&hb, ""))])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let names = client.tools().await;
    assert!(names.iter().all(|n| legal(n, 44)), "{names:?}");
    assert_eq!(asked(&client, &names[0]).await.1, "x".repeat(50));
    gw.stop().await;
}

#[tokio::test]
async fn a_client_of_the_modern_era_and_the_path_of_one_server_see_the_same_tools() {
    let hb = Stock::new("s", json!({"tools": ["a.b", "ok"]}))
        .legacy()
        .start()
        .await;
    let gw = gateway(&servers(&[("db", at(&hb, ""))])).await;
    let names = gw.client("/mcp").connected().await.tools().await;
    let list = gw
        .client("/mcp")
        .modern("tools/list", json!({}))
        .await
        .message()
        .await;
    let modern: Vec<&str> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert_eq!(modern, names);
    let answer = gw
        .client("/mcp")
        .modern("tools/call", json!({"name": names[0], "arguments": {}}))
        .await
        .message()
        .await;
    assert!(
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("a.b"),
        "{answer}"
    );
    assert_eq!(
        gw.client("/mcp/db").connected().await.tools().await,
        ["a.b", "ok"],
        "one server's names are left alone"
    );
    gw.stop().await;
}

#[tokio::test]
async fn names_that_look_like_other_servers_names_reach_their_own() {
    let db = Stock::new(
        "db",
        json!({"tools": ["x__execute_sql", "execute_sql", "-y"], "prompts": ["x__p"]}),
    )
    .legacy()
    .start()
    .await;
    let db_x = Stock::new(
        "db-x",
        json!({"tools": ["execute_sql", "__execute_sql"], "prompts": ["p"]}),
    )
    .legacy()
    .start()
    .await;
    let x = Stock::new("x", json!({"tools": ["execute_sql", "db__execute_sql"]}))
        .legacy()
        .start()
        .await;
    let all = servers(&[
        ("db", at(&db, "")),
        ("db-x", at(&db_x, "")),
        ("x", at(&x, "")),
    ]);
    let gw = gateway(&all).await;
    let client = gw.client("/mcp").connected().await;
    for (name, server, tool) in [
        ("db__execute_sql", "db", "execute_sql"),
        ("db__x__execute_sql", "db", "x__execute_sql"),
        ("db__-y", "db", "-y"),
        ("db-x__execute_sql", "db-x", "execute_sql"),
        ("db-x____execute_sql", "db-x", "__execute_sql"),
        ("x__execute_sql", "x", "execute_sql"),
        ("x__db__execute_sql", "x", "db__execute_sql"),
    ] {
        assert_eq!(
            asked(&client, name).await,
            (server.to_owned(), tool.to_owned()),
            "{name}"
        );
    }
    for name in [
        "execute_sql",
        "db_execute_sql",
        "db__",
        "__",
        "db-x_execute_sql",
        "DB__execute_sql",
    ] {
        let answer = client.call(name, json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{name}: {answer}");
    }
    for (name, server) in [("db__x__p", "db"), ("db-x__p", "db-x")] {
        let answer = client.request("prompts/get", json!({"name": name})).await;
        let text = answer["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap();
        assert!(
            text.contains(&format!("\"server\":\"{server}\"")),
            "{name}: {text}"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn equal_names_of_two_servers_are_both_there_in_the_order_of_the_file() {
    let one = Stock::new("one", json!({"tools": ["search", "a"], "prompts": ["p"]}))
        .legacy()
        .start()
        .await;
    let two = Stock::new("two", json!({"tools": ["search", "b"], "prompts": ["p"]}))
        .legacy()
        .start()
        .await;
    for (first, second) in [("one", "two"), ("two", "one")] {
        let hb = |name: &str| {
            if name == "one" {
                at(&one, "")
            } else {
                at(&two, "")
            }
        };
        let gw = gateway(&servers(&[(first, hb(first)), (second, hb(second))])).await;
        let client = gw.client("/mcp").connected().await;
        let tools = client.tools().await;
        assert!(
            tools[0].starts_with(first) && tools[2].starts_with(second),
            "{tools:?}"
        );
        for server in ["one", "two"] {
            let name = format!("{server}__search");
            assert!(tools.contains(&name));
            assert_eq!(asked(&client, &name).await.0, server);
        }
        gw.stop().await;
    }
}

#[tokio::test]
async fn a_name_that_stands_twice_in_one_server_is_listed_once() {
    let stock = Stock::new(
        "s",
        json!({"tools": [
        {"name": "a", "description": "first", "inputSchema": {"type": "object"}},
        {"name": "a", "description": "second", "inputSchema": {"type": "object"}},
        {"noname": true}, 7, {"name": 8}, "b"]}),
    );
    let hb = stock.legacy().start().await;
    let gw = gateway(&servers(&[("s", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let list = client.request("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["s__a", "s__b"], "what is odd spoils nothing");
    assert_eq!(tools[0]["description"], "first");
    assert_eq!(asked(&client, "s__a").await.1, "a");
    gw.stop().await;
}

#[tokio::test]
async fn bare_names_that_collide_are_both_listed_and_both_reached() {
    let long = "n".repeat(64);
    let one = Stock::new(
        "one",
        json!({"tools": ["search", "a", &long], "prompts": ["p"]}),
    )
    .legacy()
    .start()
    .await;
    let two = Stock::new(
        "two",
        json!({"tools": ["search", "b", &long], "prompts": ["p"]}),
    )
    .legacy()
    .start()
    .await;
    let all = servers(&[("one", at(&one, "")), ("two", at(&two, ""))]);
    for page_size in [1000, 2] {
        let bare = format!("endpoints: {{ /mcp: {{ names: bare, page_size: {page_size} }} }}\n");
        let gw = gateway(&format!("{bare}{all}")).await;
        let client = gw.client("/mcp").connected().await;
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let list = client.request("tools/list", params).await;
            tools.extend(
                list["result"]["tools"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|t| t["name"].as_str().unwrap().to_owned()),
            );
            match &list["result"]["nextCursor"] {
                Value::String(cursor) => params = json!({"cursor": cursor}),
                _ => break,
            }
        }
        assert_eq!(tools.len(), 6, "{tools:?}");
        assert_eq!(
            tools[..5],
            [
                "search".to_owned(),
                "a".into(),
                long.clone(),
                "two__search".into(),
                "b".into()
            ]
        );
        assert!(
            legal(&tools[5], 64) && tools[5].starts_with("two__n"),
            "{tools:?}"
        );
        // Also for a session that never listed.
        let fresh = gw.client("/mcp").connected().await;
        for client in [&client, &fresh] {
            assert_eq!(
                asked(client, "search").await,
                ("one".to_owned(), "search".to_owned())
            );
            assert_eq!(
                asked(client, "two__search").await,
                ("two".to_owned(), "search".to_owned())
            );
            assert_eq!(
                asked(client, &tools[5]).await,
                ("two".to_owned(), long.clone())
            );
            assert_eq!(asked(client, "b").await.0, "two");
        }
        assert_eq!(
            client.names("prompts/list", "prompts", "name").await,
            ["p", "two__p"]
        );
        let answer = client
            .request("prompts/get", json!({"name": "two__p"}))
            .await;
        assert!(
            answer["result"]["messages"][0]["content"]["text"]
                .as_str()
                .unwrap()
                .contains("two"),
            "{answer}"
        );
        let answer = client.call("nothing", json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        gw.stop().await;
    }
}

#[tokio::test]
async fn another_prefix_shows_only_the_new_names() {
    for name in ["old", "new-1"] {
        let gw = gateway(&servers(&[(name, sb(&["--tools=1"], ""))])).await;
        let client = gw.client("/mcp").connected().await;
        let tools = client.tools().await;
        assert!(
            tools.iter().all(|t| t.starts_with(&format!("{name}__"))),
            "{tools:?}"
        );
        gw.stop().await;
    }
}

#[tokio::test]
async fn a_name_that_only_appears_later_is_found_by_a_call() {
    let stock = Stock::new("s", json!({"tools": ["a"], "prompts": ["p"]}));
    let hb = stock.legacy().start().await;
    let gw = gateway(&servers(&[("s", at(&hb, "")), ("t", sb(&[], ""))])).await;
    let client = gw.client("/mcp").connected().await;
    client.tools().await;
    // The server says nothing of the change.
    stock.set("tools", json!(["b"]));
    stock.set("prompts", json!(["q"]));
    assert_eq!(asked(&client, "s__b").await.1, "b");
    let answer = client.request("prompts/get", json!({"name": "s__q"})).await;
    assert!(answer.get("result").is_some(), "{answer}");
    gw.stop().await;
}
