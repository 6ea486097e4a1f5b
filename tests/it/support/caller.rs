//! A client of any revision, for tests that treat all of them alike.

use super::{Client, Events, TestGateway};
use serde_json::{Value, json};

pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
pub const MODERN: &str = "2026-07-28";

/// A client of one revision.
pub struct Caller {
    pub client: Client,
    pub modern: bool,
    /// For messages of a test that fails.
    pub name: String,
}

impl Caller {
    pub async fn of(gw: &TestGateway, revision: &str) -> Self {
        let modern = revision == MODERN;
        let client = gw.client("/mcp").revision(revision);
        let client = if modern {
            client
        } else {
            client.connected().await
        };
        Self {
            client,
            modern,
            name: format!("client {revision}"),
        }
    }

    pub async fn ask(&self, method: &str, params: Value) -> Value {
        match self.modern {
            true => self.client.modern(method, params).await.message().await,
            false => self.client.request(method, params).await,
        }
    }

    pub async fn result(&self, what: &str, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(
            answer["result"].is_object(),
            "{}, {what}: {answer}",
            self.name
        );
        if self.modern {
            assert_eq!(answer["result"]["resultType"], "complete", "{what}");
        } else {
            let meta = answer["result"]["_meta"].to_string();
            assert!(!meta.contains("missingServers"), "{what}: {answer}");
        }
        answer["result"].clone()
    }

    /// Sends a call and leaves its answer open.
    pub async fn start(&self, params: Value) -> Events {
        match self.modern {
            true => self.client.modern("tools/call", params).await.events(),
            false => {
                let message = json!({"jsonrpc": "2.0", "id": "open", "method": "tools/call", "params": params});
                self.client.post(&message).await.events()
            }
        }
    }
}

/// The names in a list's result.
pub fn names(result: &Value, member: &str) -> Vec<String> {
    let list = result[member]
        .as_array()
        .unwrap_or_else(|| panic!("{result}"));
    list.iter()
        .map(|i| i["name"].as_str().unwrap().to_owned())
        .collect()
}
