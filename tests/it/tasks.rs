//! Tasks of 2025-11-25 through a gateway: they find their server, and only their owner finds them (K50, the legacy half).

use crate::support::{
    Client, gateway,
    hb::{Hb, Reply, Seen},
    keys::keys,
    stock::{Stock, at, servers},
};
use serde_json::{Value, json};

fn task(status: &str) -> Value {
    json!({"taskId": "t1", "status": status, "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z", "ttl": 9007199254740993_u64, "pollInterval": 10})
}

/// A server whose tool makes the task `t1`, whatever else there is.
async fn tasked(label: &'static str) -> Hb {
    let capabilities = json!({"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}});
    let stock = Stock::new(
        label,
        json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}], "capabilities": capabilities}),
    );
    let result = move |seen: &Seen| {
        let meta = json!({"io.modelcontextprotocol/related-task": {"taskId": "t1"}});
        Reply::json(seen.result(json!({"content": [{"type": "text", "text": label}], "_meta": meta, "structuredContent": {"taskId": "t1"}})))
    };
    let plain = |status: &'static str| move |seen: &Seen| Reply::json(seen.result(task(status)));
    stock
        .streaming()
        .on("tools/call", |seen| {
            let made = seen.json()["params"].get("task").is_some();
            let result = if made {
                json!({"task": task("working")})
            } else {
                json!({"content": []})
            };
            Reply::json(seen.result(result))
        })
        .on("tasks/get", plain("working"))
        .on("tasks/cancel", plain("cancelled"))
        .on("tasks/result", result)
        .on("tasks/list", |seen| {
            Reply::json(seen.result(json!({"tasks": [task("working")]})))
        })
        .start()
        .await
}

/// Makes a task and gives its id.
async fn make(client: &Client, tool: &str) -> String {
    let params = json!({"name": tool, "arguments": {}, "task": {"ttl": 60000}});
    let answer = client.request("tools/call", params).await;
    let id = answer["result"]["task"]["taskId"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn equal_task_ids_of_two_servers_are_told_apart_and_lead_back() {
    let (one, two) = (tasked("one").await, tasked("two").await);
    let gw = gateway(&servers(&[("one", at(&one, "")), ("two", at(&two, ""))])).await;
    let mut client = gw.client("/mcp");
    let greeting = client.initialize(json!({})).await;
    assert!(
        greeting["capabilities"]["tasks"]["requests"]["tools"]["call"].is_object(),
        "{greeting}"
    );
    let first = make(&client, "one__t").await;
    let second = make(&client, "two__t").await;
    assert!(
        first != second && first != "t1" && second != "t1",
        "{first} {second}"
    );
    for (id, label, hb) in [(&first, "one", &one), (&second, "two", &two)] {
        let got = client.request("tasks/get", json!({"taskId": id})).await;
        assert_eq!(got["result"]["taskId"], **id, "{got}");
        assert_eq!(got["result"]["ttl"], 9007199254740993_u64);
        let result = client.request("tasks/result", json!({"taskId": id})).await;
        assert_eq!(result["result"]["content"][0]["text"], label);
        assert_eq!(
            result["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], **id,
            "{result}"
        );
        assert_eq!(
            result["result"]["structuredContent"]["taskId"], "t1",
            "what the tool says is its own"
        );
        let cancelled = client.request("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(cancelled["result"]["status"], "cancelled");
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let seen = hb.wait_for(|s| s.method() == method).await;
            assert_eq!(
                (hb.count(method), &seen.json()["params"]["taskId"]),
                (1, &json!("t1")),
                "{label}"
            );
        }
    }
    let list = client.request("tasks/list", json!({})).await;
    let ids: Vec<&str> = list["result"]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["taskId"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [&*first, &*second], "the same ids as before");
    gw.stop().await;
}

#[tokio::test]
async fn a_task_is_unknown_to_everyone_but_its_owner() {
    let (auth, tokens) = keys(&["ann", "bob"]);
    let one = tasked("one").await;
    let gw = gateway(&format!("{auth}{}", servers(&[("one", at(&one, ""))]))).await;
    let ann = gw.client("/mcp").key(&tokens[0]).connected().await;
    let bob = gw.client("/mcp").key(&tokens[1]).connected().await;
    let id = make(&ann, "one__t").await;
    make(&bob, "one__t").await;
    let broken = format!("{}x", &id[..id.len() - 1]);
    let never = bob
        .request("tasks/get", json!({"taskId": "never-was"}))
        .await;
    for foreign in [id.as_str(), "t1", &broken, ""] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let answer = bob.request(method, json!({"taskId": foreign})).await;
            assert_eq!(answer["error"], never["error"], "{method} {foreign}");
            assert_eq!(answer["error"]["code"], -32602);
        }
    }
    assert_eq!(
        one.count("tasks/get") + one.count("tasks/result") + one.count("tasks/cancel"),
        0
    );
    assert!(
        ann.request("tasks/get", json!({"taskId": id}))
            .await
            .get("result")
            .is_some()
    );
    gw.stop().await;
}

#[tokio::test]
async fn the_path_of_one_server_seals_its_tasks_too() {
    let one = tasked("one").await;
    let gw = gateway(&servers(&[("one", at(&one, ""))])).await;
    let client = gw.client("/mcp/one").connected().await;
    let id = make(&client, "t").await;
    assert_ne!(id, "t1");
    let got = client.request("tasks/get", json!({"taskId": id})).await;
    assert_eq!(got["result"]["taskId"], id, "{got}");
    let list = client.request("tasks/list", json!({})).await;
    assert_eq!(list["result"]["tasks"][0]["taskId"], id, "{list}");
    gw.stop().await;
}

#[tokio::test]
async fn servers_without_tasks_have_no_task_methods() {
    let one = Stock::of_all("one").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&one, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let answer = client.request("tasks/list", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let answer = client.request("tasks/get", json!({"taskId": "x"})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    gw.stop().await;
}
