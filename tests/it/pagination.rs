//! K28: lists of many pages, on either side.

use crate::support::{
    Client, gateway,
    hb::{Hb, Reply},
    stock::{Stock, at, servers},
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

fn names(label: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{label}{n}")).collect()
}

fn stock(label: &str, count: usize, page: usize) -> Stock {
    let uris: Vec<String> = names(label, count)
        .iter()
        .map(|n| format!("{label}://{n}"))
        .collect();
    let templates: Vec<String> = uris.iter().map(|u| format!("{u}/{{x}}")).collect();
    Stock::new(
        label,
        json!({"tools": names(label, count), "prompts": names(label, count), "resources": uris, "templates": templates, "page": page}),
    )
}

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    (
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
    ),
];

/// Walks a list to its end; how many pages it took, and what was on them.
async fn walk(client: &Client, method: &str, member: &str, key: &str) -> (usize, Vec<String>) {
    let mut all = Vec::new();
    let mut params = json!({});
    for pages in 1..200 {
        let list = client.request(method, params).await;
        let items = list["result"][member]
            .as_array()
            .unwrap_or_else(|| panic!("{list}"));
        all.extend(items.iter().map(|i| i[key].as_str().unwrap().to_owned()));
        match &list["result"]["nextCursor"] {
            Value::String(cursor) => params = json!({"cursor": cursor}),
            Value::Null => return (pages, all),
            other => panic!("a cursor is a string: {other}"),
        }
    }
    panic!("the walk does not end");
}

#[tokio::test]
async fn every_page_of_every_server_is_in_the_list() {
    let one = stock("one", 150, 50).legacy().start().await;
    let two = stock("two", 7, 3).legacy().start().await;
    let three = stock("three", 5, 2).modern().start().await;
    let gw = gateway(&servers(&[
        ("one", at(&one, "")),
        ("two", at(&two, "")),
        ("three", at(&three, "")),
    ]))
    .await;
    let client = gw.client("/mcp").connected().await;
    for (method, member, key) in LISTS {
        let list = client.names(method, member, key).await;
        assert_eq!(list.len(), 162, "{method}");
        assert!(
            list[149].contains("one149")
                && list[150].contains("two0")
                && list[161].contains("three4"),
            "{method}: in order"
        );
        let modern = gw
            .client("/mcp")
            .modern(method, json!({}))
            .await
            .message()
            .await;
        assert_eq!(
            modern["result"][member].as_array().map(Vec::len),
            Some(162),
            "{method}"
        );
    }
    assert!(
        client
            .text("one__one149", json!({}))
            .await
            .contains("one149")
    );
    gw.stop().await;
}

#[tokio::test]
async fn the_gateways_own_pages_hold_everything_once() {
    let one = stock("one", 25, 10).legacy().start().await;
    let two = stock("two", 13, 100).legacy().start().await;
    let all = servers(&[("one", at(&one, "")), ("two", at(&two, ""))]);
    let gw = gateway(&format!(
        "endpoints: {{ /mcp: {{ page_size: 10 }} }}\n{all}"
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    for (method, member, key) in LISTS {
        let (pages, list) = walk(&client, method, member, key).await;
        assert_eq!(pages, 4, "{method}");
        let mut distinct = list.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(
            (list.len(), distinct.len()),
            (38, 38),
            "{method}: no gap, nothing twice"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_walk_goes_on_after_its_last_item_whatever_changed_meanwhile() {
    let stock = Stock::new(
        "one",
        json!({"tools": ["a", "b", "c", "d", "e"], "capabilities": {"tools": {}}}),
    );
    let hb = stock.legacy().start().await;
    let gw = gateway(&format!(
        "endpoints: {{ /mcp: {{ page_size: 2 }} }}\n{}",
        servers(&[("one", at(&hb, ""))])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let first = client.request("tools/list", json!({})).await;
    let cursor = first["result"]["nextCursor"].clone();
    for (now, rest) in [
        (
            json!(["new", "a", "b", "c", "d", "e"]),
            vec!["one__c", "one__d"],
        ),
        (json!(["b", "c", "d", "e"]), vec!["one__c", "one__d"]),
        (json!(["a", "c", "d", "e"]), vec!["one__c", "one__d"]),
        (json!(["a"]), vec![]),
    ] {
        stock.set("tools", now.clone());
        let next = client
            .request("tools/list", json!({"cursor": cursor}))
            .await;
        let tools: Vec<&str> = next["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap())
            .collect();
        assert_eq!(tools, rest, "after b of {now}");
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_cursor_that_is_not_ours_is_an_error_and_another_sessions_works() {
    let hb = stock("one", 6, 100).legacy().start().await;
    let gw = gateway(&format!(
        "endpoints: {{ /mcp: {{ page_size: 2 }} }}\n{}",
        servers(&[("one", at(&hb, ""))])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    for cursor in ["nonsense", "", "at:3", "W10", "bnVsbA", "\u{e9}"] {
        let answer = client
            .request("tools/list", json!({"cursor": cursor}))
            .await;
        assert_eq!(answer["error"]["code"], -32602, "{cursor:?}: {answer}");
    }
    let cursor = client.request("tools/list", json!({})).await["result"]["nextCursor"].clone();
    let other = gw.client("/mcp").connected().await;
    let next = other.request("tools/list", json!({"cursor": cursor})).await;
    assert_eq!(next["result"]["tools"][0]["name"], "one__one2", "{next}");
    let modern = gw
        .client("/mcp")
        .modern("tools/list", json!({"cursor": cursor}))
        .await
        .message()
        .await;
    assert_eq!(
        modern["result"]["tools"][0]["name"], "one__one2",
        "{modern}"
    );
    gw.stop().await;
}

#[tokio::test]
async fn a_list_that_never_ends_is_ended() {
    for endless in [
        // The same cursor again and again.
        |_: usize| json!("again"),
        // Two that take turns.
        |n: usize| json!(format!("turn{}", n % 2)),
    ] {
        let count = std::sync::Arc::new(AtomicUsize::new(0));
        let asked = count.clone();
        let hb = Hb::legacy()
            .on("tools/list", move |seen| {
                let n = asked.fetch_add(1, Ordering::SeqCst);
                Reply::json(seen.result(
                    json!({"tools": [{"name": "a"}, {"name": "b"}], "nextCursor": endless(n)}),
                ))
            })
            .start()
            .await;
        let good = Stock::of_all("good").legacy().start().await;
        let gw = gateway(&servers(&[("bad", at(&hb, "")), ("good", at(&good, ""))])).await;
        let client = gw.client("/mcp").connected().await;
        assert_eq!(
            client.tools().await,
            ["bad__a", "bad__b", "good__good-tool"]
        );
        assert!(
            count.load(Ordering::SeqCst) <= 12,
            "{}",
            count.load(Ordering::SeqCst)
        );
        gw.stop().await;
    }
}

#[tokio::test]
async fn odd_cursors_of_a_server_end_its_list() {
    for odd in [json!(""), json!(null), json!(7), json!({}), json!(false)] {
        let next = odd.clone();
        let hb = Hb::legacy()
            .on("tools/list", move |seen| {
                Reply::json(seen.result(json!({"tools": [{"name": "a"}], "nextCursor": next})))
            })
            .start()
            .await;
        let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
        let client = gw.client("/mcp").connected().await;
        assert_eq!(client.tools().await, ["one__a"], "{odd}");
        gw.stop().await;
    }
}

#[tokio::test]
async fn the_path_of_one_server_passes_its_own_pages_and_cursors() {
    let hb = stock("one", 7, 3).legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp/one").connected().await;
    let (pages, list) = walk(&client, "tools/list", "tools", "name").await;
    assert_eq!((pages, list), (3, names("one", 7)));
    let answer = client.request("tools/list", json!({"cursor": "bad"})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    gw.stop().await;
}
