//! Links to HTTP servers, against a scripted one: sessions, streams, eras, faults.
//!
//! Field reports of the kinds K02, K07, K10, K11, K14, K32, K33, K36 to K39, K44, K45,
//! K51, K53, K54, K60 and K62 as far as they are about the way to a server.

#[path = "../it/support/hb.rs"]
mod hb;

mod calls;
mod credentials;
mod eras;
mod limits;
mod sessions;
mod standing;
mod streams;
mod transport;

use bytes::Bytes;
use drawbridge::{
    backend::{
        Call, Fault, Holder, Opening, Receiver,
        http::{Address, Client, HttpLink, Origin, Settings},
    },
    mcp::{Era, Message, Revision, ServerId},
    telemetry::Metrics,
};
use hb::Hb;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Notify;

/// Notes what a link hears.
#[derive(Default)]
pub struct Ear {
    heard: Mutex<Vec<(Value, Option<u64>)>>,
    ended: Mutex<Vec<Fault>>,
    arrived: Notify,
}

impl Receiver for Ear {
    fn receive(&self, message: Message, call: Option<u64>) {
        let value = serde_json::from_slice(message.bytes()).unwrap();
        self.heard.lock().unwrap().push((value, call));
        self.arrived.notify_waiters();
    }

    fn ended(&self, fault: &Fault) {
        self.ended.lock().unwrap().push(fault.clone());
        self.arrived.notify_waiters();
    }
}

impl Ear {
    fn heard(&self) -> Vec<(Value, Option<u64>)> {
        self.heard.lock().unwrap().clone()
    }

    fn ended(&self) -> Vec<Fault> {
        self.ended.lock().unwrap().clone()
    }

    /// Waits up to ten seconds until `wanted` holds.
    async fn until<F: Fn(&Self) -> bool>(&self, wanted: F) {
        let waiting = async {
            loop {
                let arrived = self.arrived.notified();
                if wanted(self) {
                    return;
                }
                arrived.await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
        waited.unwrap_or_else(|_| panic!("heard only {:?}", self.heard()));
    }
}

fn settings(hb: &Hb) -> Settings {
    Settings::at(Address::new(hb.url().parse().unwrap()).unwrap())
}

fn origin(hb: &Hb) -> Origin {
    origin_of(settings(hb))
}

fn origin_of(settings: Settings) -> Origin {
    origin_with(settings, &Client::new())
}

fn origin_with(settings: Settings, client: &Client) -> Origin {
    let metrics = Metrics::new().server("hb");
    Origin::new(ServerId::new("hb").unwrap(), settings, client, metrics)
}

fn opening(era: Era, ear: &Arc<Ear>) -> Opening {
    Opening {
        era,
        revision: Revision::NEWEST_LEGACY,
        client_info: Bytes::from_static(br#"{"name":"test","version":"0"}"#),
        capabilities: Bytes::from_static(br#"{"roots":{}}"#),
        holder: Holder {
            principal: "anybody".into(),
            session: None,
        },
        receiver: ear.clone(),
    }
}

/// A link in the legacy era, and what it hears.
async fn legacy(hb: &Hb) -> (HttpLink, Arc<Ear>) {
    legacy_with(settings(hb)).await
}

async fn legacy_with(settings: Settings) -> (HttpLink, Arc<Ear>) {
    let ear = Arc::new(Ear::default());
    let link = origin_of(settings).open(opening(Era::Legacy, &ear)).await;
    (link.unwrap(), ear)
}

async fn modern_with(settings: Settings) -> (HttpLink, Arc<Ear>) {
    let ear = Arc::new(Ear::default());
    let link = origin_of(settings).open(opening(Era::Modern, &ear)).await;
    (link.unwrap(), ear)
}

/// A `tools/call` of tool `name`, with a progress token.
fn tool_call(link: &HttpLink, name: &str) -> Call {
    let id = link.next_id();
    let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": name, "arguments": {}, "_meta": {"progressToken": id}}});
    Call {
        id,
        message: message.to_string().into(),
        method: "tools/call",
        other_method: None,
        name: Some(name.to_owned()),
        params: Vec::new(),
    }
}

/// Calls a tool and gives the whole answer.
async fn call(link: &HttpLink, name: &str) -> Result<Value, Fault> {
    let answer = link.call(tool_call(link, name)).await?;
    Ok(serde_json::from_slice(answer.bytes()).unwrap())
}

/// The tool's name that a request asked for.
fn tool(seen: &hb::Seen) -> String {
    let body = seen.json();
    body["params"]["name"].as_str().unwrap_or("").to_owned()
}
