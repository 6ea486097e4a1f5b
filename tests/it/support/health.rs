//! Whether a server that is well works, whatever is wrong with another one.

use super::Client;
use serde_json::{Value, json};

/// Short waits for servers that are not there.
pub const QUICK: &str = "discovery: { wait: 300ms, list_wait: 300ms }\n";

/// What is missing of a list, as its `_meta` says.
pub fn missing(answer: &Value) -> Value {
    answer["result"]["_meta"]["drawbridge/missingServers"].clone()
}

/// The four lists hold what a stock of everything has.
pub async fn lists_hold(client: &Client, label: &str) {
    for (method, member, key, item) in [
        (
            "tools/list",
            "tools",
            "name",
            format!("{label}__{label}-tool"),
        ),
        (
            "prompts/list",
            "prompts",
            "name",
            format!("{label}__{label}-prompt"),
        ),
        (
            "resources/list",
            "resources",
            "uri",
            format!("{label}://thing"),
        ),
        (
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
            format!("{label}://item/{{id}}"),
        ),
    ] {
        let names = client.names(method, member, key).await;
        assert!(names.contains(&item), "{method}: {names:?}");
    }
}

/// Everything that a client asks of the healthy server works.
pub async fn all_is_well(client: &Client, label: &str) {
    lists_hold(client, label).await;
    let text = client
        .text(&format!("{label}__{label}-tool"), json!({}))
        .await;
    assert!(text.contains(label));
    for (method, params) in [
        (
            "prompts/get",
            json!({"name": format!("{label}__{label}-prompt")}),
        ),
        ("resources/read", json!({"uri": format!("{label}://thing")})),
        (
            "resources/read",
            json!({"uri": format!("{label}://item/3")}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": format!("{label}__{label}-prompt")}, "argument": {"name": "a", "value": ""}}),
        ),
        ("ping", json!({})),
        ("logging/setLevel", json!({"level": "info"})),
    ] {
        let answer = client.request(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
    }
}
