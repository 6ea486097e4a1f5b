//! The main job, end to end: two servers behind one door, one client of each era.

use crate::support::{
    gateway,
    hb::{Hb, Reply},
    sb,
};
use serde_json::json;

#[tokio::test]
async fn a_client_lists_and_calls_through_one_door() {
    let hb = Hb::legacy()
        .on("tools/list", |seen| {
            Reply::json(
                seen.result(json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]})),
            )
        })
        .on("tools/call", |seen| {
            Reply::json(seen.result(json!({"content": [{"type": "text", "text": "3"}]})))
        })
        .start()
        .await;
    let yaml = format!(
        "servers: {{ remote: {{ url: {:?} }}, local: {} }}\n",
        hb.url(),
        sb(&[], "")
    );
    let gw = gateway(&yaml).await;
    let client = gw.client("/mcp").connected().await;
    let tools = client.tools().await;
    assert!(tools.contains(&"remote__add".to_owned()), "{tools:?}");
    assert!(tools.contains(&"local__echo".to_owned()), "{tools:?}");
    assert_eq!(client.text("remote__add", json!({})).await, "3");
    assert!(
        client
            .text("local__echo", json!({"a": 1}))
            .await
            .contains('1')
    );
    let modern = gw
        .client("/mcp")
        .modern(
            "tools/call",
            json!({"name": "remote__add", "arguments": {}}),
        )
        .await;
    let answer = modern.json().await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    gw.stop().await;
}
