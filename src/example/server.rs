//! What one example server is, whatever the revision and the transport: its lists, its tools, its texts.
//! The lists are written in the newest shape; `shape` takes away what an older revision doesn't know.

use std::future::Future;
use std::pin::Pin;

use serde_json::{Map, Value, json};

use super::calendar::Diary;
use super::call::Call;
use super::fault::Fault;
use super::revision::Revision;

/// A tool's answer on its way.
pub type Reply<'a> = Pin<Box<dyn Future<Output = Result<Value, Fault>> + Send + 'a>>;

/// The optional parts of the protocol that a server has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offers {
    /// The list of tools changes.
    pub tools_change: bool,
    /// There are prompts.
    pub prompts: bool,
    /// Arguments can be completed.
    pub completions: bool,
    /// Log messages are sent to clients that want them.
    pub logging: bool,
    /// Single resources can be subscribed to.
    pub subscriptions: bool,
}

/// One of the three example servers.
pub trait Server: Send + Sync {
    /// Its name, which is also the command line's word for it.
    fn name(&self) -> &'static str;

    /// Its name for people.
    fn title(&self) -> &'static str;

    /// What a model should know before it uses the server.
    fn instructions(&self) -> &'static str;

    /// The optional parts that it has.
    fn offers(&self) -> Offers;

    /// Its tools as they are now, in a fixed order.
    fn tools(&self, diary: &Diary) -> Vec<Value>;

    /// Calls a tool that is listed, with arguments that fit its schema.
    fn call<'a>(&'a self, call: &'a Call, tool: &'a str, arguments: &'a Value) -> Reply<'a>;

    /// Its resources.
    fn resources(&self) -> Vec<Value>;

    /// Its resource templates.
    fn templates(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The contents behind `uri`, if there are any.
    fn read(&self, diary: &Diary, uri: &str) -> Option<Value>;

    /// Its prompts.
    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The prompt's description and messages; `name` is listed and no required argument is missing.
    fn prompt(&self, name: &str, arguments: &Map<String, Value>) -> Value {
        let _ = (name, arguments);
        Value::Null
    }

    /// All values that an argument of a prompt or template may have, best first; none for an argument that
    /// has no proposals. `place` is the prompt's name or the template.
    fn values(&self, place: &str, argument: &str) -> Vec<String> {
        let _ = (place, argument);
        Vec::new()
    }

    /// Whether `uri` can be subscribed to.
    fn watchable(&self, uri: &str) -> bool {
        let _ = uri;
        false
    }
}

/// What the server says about itself.
pub fn implementation(server: &dyn Server, revision: Revision) -> Value {
    let mut info = json!({
        "name": format!("drawbridge-example-{}", server.name()),
        "version": env!("CARGO_PKG_VERSION"),
    });
    if revision >= Revision::V2025_06_18 {
        info["title"] = json!(server.title());
    }
    info
}

/// The server's capabilities in that revision.
pub fn capabilities(server: &dyn Server, revision: Revision) -> Value {
    let offers = server.offers();
    let mut found = json!({ "tools": {}, "resources": {} });
    if offers.tools_change {
        found["tools"] = json!({ "listChanged": true });
    }
    if offers.subscriptions {
        found["resources"] = json!({ "subscribe": true });
    }
    if offers.prompts {
        found["prompts"] = json!({});
    }
    if offers.logging {
        found["logging"] = json!({});
    }
    if offers.completions && revision >= Revision::V2025_03_26 {
        found["completions"] = json!({});
    }
    found
}
