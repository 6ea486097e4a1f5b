//! Scripted HTTP servers that keep all four lists, in either era, and can be changed while they run.

use super::hb::{Hb, Reply, Script, Seen};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::{mpsc::UnboundedSender, watch};

/// What a server offers: `tools`, `prompts`, `resources` and `templates`, each a list of names (or whole
/// objects); `page` cuts lists; `capabilities` and `instructions` replace what follows from the lists.
#[derive(Clone)]
pub struct Stock {
    label: String,
    inner: Arc<Inner>,
}

struct Inner {
    offer: Mutex<Value>,
    streams: Mutex<Vec<UnboundedSender<Bytes>>>,
    opened: watch::Sender<usize>,
}

/// Result member, key and method of each list, by its name in an offer.
const LISTS: [(&str, &str, &str, &str); 4] = [
    ("tools", "tools", "name", "tools/list"),
    ("prompts", "prompts", "name", "prompts/list"),
    ("resources", "resources", "uri", "resources/list"),
    (
        "templates",
        "resourceTemplates",
        "uriTemplate",
        "resources/templates/list",
    ),
];

impl Stock {
    /// `label` is in every answer, to tell servers apart.
    pub fn new(label: &str, offer: Value) -> Self {
        Self {
            label: label.to_owned(),
            inner: Arc::new(Inner {
                offer: Mutex::new(offer),
                streams: Mutex::default(),
                opened: watch::Sender::new(0),
            }),
        }
    }

    /// A server of everything, whose things are all called after it.
    pub fn of_all(label: &str) -> Self {
        Self::new(
            label,
            json!({
                "tools": [format!("{label}-tool")],
                "prompts": [format!("{label}-prompt")],
                "resources": [format!("{label}://thing")],
                "templates": [format!("{label}://item/{{id}}")],
            }),
        )
    }

    /// Replaces one member of the offer.
    pub fn set(&self, member: &str, value: Value) {
        self.inner.offer.lock().unwrap()[member] = value;
    }

    fn offer(&self) -> Value {
        self.inner.offer.lock().unwrap().clone()
    }

    /// A legacy server with this stock, without a standing stream.
    pub fn legacy(&self) -> Script {
        self.script(Hb::legacy(), false)
    }

    /// A legacy server with this stock whose sessions have standing streams.
    pub fn streaming(&self) -> Script {
        let stock = self.clone();
        self.legacy().on("GET", move |_| {
            let (sender, reply) = Reply::live();
            stock.inner.streams.lock().unwrap().push(sender);
            stock.inner.opened.send_modify(|n| *n += 1);
            reply
        })
    }

    /// A server of 2026-07-28 with this stock.
    pub fn modern(&self) -> Script {
        self.script(Hb::modern(), true)
    }

    /// Waits until so many standing streams were opened.
    pub async fn streams(&self, wanted: usize) {
        let mut opened = self.inner.opened.subscribe();
        let waiting = opened.wait_for(|n| *n >= wanted);
        let waited = tokio::time::timeout(super::client::PATIENCE, waiting).await;
        waited
            .expect("the streams are opened in time")
            .expect("the stock lives");
    }

    /// Says it on every standing stream.
    pub fn say(&self, message: &Value) {
        let event = Bytes::from(format!("data: {message}\n\n"));
        for stream in self.inner.streams.lock().unwrap().iter() {
            let _ = stream.send(event.clone());
        }
    }

    /// Ends every standing stream that is open now.
    pub fn end_streams(&self) {
        self.inner.streams.lock().unwrap().clear();
    }

    /// Says that a list changed: `tools`, `prompts` or `resources`.
    pub fn say_changed(&self, list: &str) {
        self.say(
            &json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")}),
        );
    }

    fn script(&self, script: Script, modern: bool) -> Script {
        let mut script = script;
        let greeting = if modern {
            "server/discover"
        } else {
            "initialize"
        };
        let stock = self.clone();
        script = script.on(greeting, move |seen| {
            Reply::json(seen.result(stock.greeting(seen, modern)))
        });
        for (list, member, key, method) in LISTS {
            let stock = self.clone();
            script = script.on(method, move |seen| {
                stock.page(seen, list, member, key, modern)
            });
        }
        for method in [
            "tools/call",
            "prompts/get",
            "resources/read",
            "completion/complete",
        ] {
            let stock = self.clone();
            script = script.on(method, move |seen| {
                let mut result = stock.answer(method, seen);
                finish(&mut result, method == "resources/read", modern);
                Reply::json(seen.result(result))
            });
        }
        for method in [
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
        ] {
            script = script.on(method, |seen| Reply::json(seen.result(json!({}))));
        }
        script
    }

    fn capabilities(&self) -> Value {
        let offer = self.offer();
        if let Some(given) = offer.get("capabilities") {
            return given.clone();
        }
        let mut all = json!({"completions": {}, "logging": {}});
        for (list, capability) in [
            ("tools", "tools"),
            ("prompts", "prompts"),
            ("resources", "resources"),
            ("templates", "resources"),
        ] {
            if offer.get(list).is_some() {
                all[capability] = json!({"listChanged": true});
            }
        }
        if all.get("resources").is_some() {
            all["resources"]["subscribe"] = true.into();
        }
        all
    }

    fn greeting(&self, seen: &Seen, modern: bool) -> Value {
        let info = json!({"name": self.label, "version": "1"});
        let mut result = match modern {
            true => {
                json!({"supportedVersions": ["2026-07-28"], "capabilities": self.capabilities(),
                           "_meta": {"io.modelcontextprotocol/serverInfo": info}})
            }
            false => json!({"protocolVersion": seen.json()["params"]["protocolVersion"],
                            "capabilities": self.capabilities(), "serverInfo": info}),
        };
        if let Some(text) = self.offer().get("instructions") {
            result["instructions"] = text.clone();
        }
        finish(&mut result, true, modern);
        result
    }

    fn page(&self, seen: &Seen, list: &str, member: &str, key: &str, modern: bool) -> Reply {
        let offer = self.offer();
        let Some(Value::Array(items)) = offer.get(list).cloned() else {
            // A server may offer resources without templates, and the other way round.
            let known = offer.get("resources").or(offer.get("templates")).is_some();
            if member.starts_with("resource") && known {
                let mut result = json!({member: []});
                finish(&mut result, true, modern);
                return Reply::json(seen.result(result));
            }
            return Reply::json(seen.error(-32601, "Method not found"));
        };
        let size = offer["page"].as_u64().unwrap_or(1000) as usize;
        let from = match seen.json()["params"]["cursor"].as_str() {
            None => 0,
            Some(text) => match text.strip_prefix("at:").and_then(|n| n.parse().ok()) {
                Some(from) => from,
                None => return Reply::json(seen.error(-32602, "bad cursor")),
            },
        };
        let rest: Vec<Value> = items
            .iter()
            .skip(from)
            .map(|item| whole(item, key))
            .collect();
        let more = rest.len() > size;
        let page: Vec<Value> = rest.into_iter().take(size).collect();
        let mut result = json!({member: page});
        if more {
            result["nextCursor"] = format!("at:{}", from + size).into();
        }
        finish(&mut result, true, modern);
        Reply::json(seen.result(result))
    }

    fn answer(&self, method: &str, seen: &Seen) -> Value {
        let params = &seen.json()["params"];
        let label = &self.label;
        match method {
            "tools/call" => {
                let said = json!({"server": label, "tool": params["name"], "arguments": params["arguments"]});
                json!({"content": [{"type": "text", "text": said.to_string()}]})
            }
            "prompts/get" => {
                let said = json!({"server": label, "prompt": params["name"], "arguments": params["arguments"]});
                let content = json!({"type": "text", "text": said.to_string()});
                json!({"messages": [{"role": "user", "content": content}]})
            }
            "resources/read" => {
                json!({"contents": [{"uri": params["uri"], "text": format!("{label}: {}", params["uri"].as_str().unwrap_or(""))}]})
            }
            _ => {
                let reference = &params["ref"];
                let target = reference["name"]
                    .as_str()
                    .or(reference["uri"].as_str())
                    .unwrap_or("");
                json!({"completion": {"values": [format!("{label}: {target}")]}})
            }
        }
    }
}

impl Script {
    /// Answers a method with 503 as long as `up` is false.
    pub fn gone_unless(self, method: &str, up: &Arc<AtomicBool>) -> Self {
        let (answer, up) = (self.answer_to(method), up.clone());
        self.on(method, move |seen| match up.load(Ordering::SeqCst) {
            true => answer(seen),
            false => Reply::status(503),
        })
    }
}

/// A list's item from its name alone.
fn whole(item: &Value, key: &str) -> Value {
    let Some(name) = item.as_str() else {
        return item.clone();
    };
    let mut item = json!({"name": name});
    item[key] = name.into();
    if key == "name" {
        item["inputSchema"] = json!({"type": "object"});
    }
    item
}

/// What 2026-07-28 wants in results.
fn finish(result: &mut Value, cached: bool, modern: bool) {
    if modern {
        result["resultType"] = "complete".into();
        if cached {
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
    }
}

/// The `servers` of a configuration: names, and what each is.
pub fn servers(all: &[(&str, String)]) -> String {
    let rows: Vec<String> = all
        .iter()
        .map(|(name, what)| format!("  {name}: {what}\n"))
        .collect();
    format!("servers:\n{}", rows.concat())
}

/// A server at a URL; `more` is further YAML members.
pub fn at(hb: &Hb, more: &str) -> String {
    let more = if more.is_empty() {
        String::new()
    } else {
        format!(", {more}")
    };
    format!("{{ url: {:?}{more} }}", hb.url())
}

/// A built-in example server on stdio; `arguments` such as `["weather", "--protocol", "2025-11-25"]`.
pub fn example(arguments: &[&str], more: &str) -> String {
    let args: Vec<String> = std::iter::once(&"example")
        .chain(arguments)
        .map(|a| format!("{a:?}"))
        .collect();
    let more = if more.is_empty() {
        String::new()
    } else {
        format!(", {more}")
    };
    format!(
        "{{ command: {:?}, args: [{}]{more} }}",
        env!("CARGO_BIN_EXE_drawbridge"),
        args.join(", ")
    )
}
