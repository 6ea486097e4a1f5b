//! The rmcp client of the matrix: `rmcp_client TARGET PROFILE MODE`.
//!
//! TARGET is a URL or `{"command": …, "args": […], "env": {…}}`; PROFILE names an entry of the file in `MATRIX_FEATURES`;
//! MODE is `legacy`, `auto` or `modern`. Prints one JSON object: a feature's name and `ok …`, `n/a` or `FAIL …`.

#![expect(
    deprecated,
    reason = "the older revisions have what rmcp deprecates since 2026-07-28"
)]

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, RequestContext, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Map, Value, json};
use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// What the server has sent or asked so far, by kind.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<&'static str>>>);

impl Seen {
    fn note(&self, kind: &'static str) {
        self.0.lock().unwrap().push(kind);
    }

    fn count(&self, kind: &str) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|seen| **seen == kind)
            .count()
    }

    /// Waits until more than `before` of a kind were seen, at most `limit`.
    async fn more_than(
        &self,
        kind: &str,
        before: usize,
        limit: Duration,
    ) -> anyhow::Result<String> {
        let start = Instant::now();
        while self.count(kind) <= before {
            anyhow::ensure!(start.elapsed() < limit, "no {kind}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(String::new())
    }
}

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the literal matches the type")
}

impl ClientHandler for Seen {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities = from_json(json!({
            "sampling": {}, "elicitation": {"form": {}}, "roots": {"listChanged": true}
        }));
        info
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.note("sampling");
        let text = json!({"type": "text", "text": "canned"});
        Ok(from_json(
            json!({"role": "assistant", "content": text, "model": "m", "stopReason": "endTurn"}),
        ))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.note("elicitation");
        let form =
            json!({"name": "Ann", "username": "ann", "email": "a@example.test", "value": "Ann"});
        Ok(from_json(json!({"action": "accept", "content": form})))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.note("roots");
        let root = std::env::var("MATRIX_ROOT").unwrap_or_else(|_| "file:///srv/data".to_owned());
        Ok(from_json(json!({"roots": [{"uri": root, "name": "data"}]})))
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.note("progress");
    }

    async fn on_logging_message(
        &self,
        _: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.note("message");
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.note("list_changed");
    }

    async fn on_resource_updated(
        &self,
        _: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.note("updated");
    }
}

type Client = RunningService<RoleClient, Seen>;

async fn connect(target: &str, mode: &str, seen: Seen) -> anyhow::Result<Client> {
    let modern = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match mode {
        "legacy" => ClientLifecycleMode::Initialize,
        "auto" => ClientLifecycleMode::Auto {
            preferred_versions: modern,
            legacy_version: None,
        },
        _ => ClientLifecycleMode::Discover {
            preferred_versions: modern,
        },
    };
    if !target.starts_with('{') {
        let transport = StreamableHttpClientTransport::from_uri(target.to_owned());
        return Ok(seen.serve_with_lifecycle(transport, lifecycle).await?);
    }
    let target: Value = serde_json::from_str(target)?;
    let strings = |key: &str| target[key].as_array().cloned().unwrap_or_default();
    let mut command = tokio::process::Command::new(target["command"].as_str().unwrap_or_default());
    command.args(strings("args").iter().filter_map(Value::as_str));
    for (name, value) in target["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap_or_default());
    }
    let (transport, _) = TokioChildProcess::builder(command)
        .stderr(std::process::Stdio::null())
        .spawn()?;
    Ok(seen.serve_with_lifecycle(transport, lifecycle).await?)
}

/// One run: the connection, what to try, and what came of it.
struct Run {
    client: Arc<Client>,
    seen: Seen,
    profile: Value,
    modern: bool,
    outcome: Map<String, Value>,
}

impl Run {
    /// The call written at `path` of the profile, or none where the profile has nothing to try.
    fn planned(&self, path: &str) -> Option<CallToolRequestParams> {
        let entry = self.profile.pointer(path)?;
        let arguments = entry[1].as_object().cloned().unwrap_or_default();
        Some(CallToolRequestParams::new(entry[0].as_str()?.to_owned()).with_arguments(arguments))
    }

    fn text(&self, path: &str) -> Option<String> {
        self.profile
            .pointer(path)
            .and_then(Value::as_str)
            .map(str::to_owned)
    }

    fn put(&mut self, feature: &str, outcome: anyhow::Result<String>) {
        let text = match outcome {
            Ok(detail) => format!("ok {detail}"),
            Err(e) if e.to_string() == "n/a" => "n/a".to_owned(),
            Err(e) => format!(
                "FAIL {}",
                format!("{e:#}").chars().take(160).collect::<String>()
            ),
        };
        self.outcome
            .insert(feature.to_owned(), json!(text.trim_end()));
    }
}

async fn within<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(Duration::from_secs(20), work)
        .await
        .unwrap_or_else(|_| Err(anyhow::anyhow!("timeout")))
}

fn nothing() -> anyhow::Error {
    anyhow::anyhow!("n/a")
}

/// Content as text in a fixed spelling, so that two runs can be compared.
fn spell(result: &CallToolResult) -> anyhow::Result<String> {
    let result = serde_json::to_value(result)?;
    Ok(json!([
        result["content"],
        result["structuredContent"],
        result["isError"]
    ])
    .to_string())
}

async fn legacy_features(run: &mut Run) {
    if run.modern {
        run.put("logging", Err(nothing()));
        run.put("subscribe", Err(nothing()));
        return;
    }
    let (client, seen) = (Arc::clone(&run.client), run.seen.clone());
    if let Some(call) = run.planned("/logging") {
        let wait = Duration::from_secs_f64(run.profile["wait"].as_f64().unwrap_or(1.0));
        let logging = within(async {
            client
                .set_level(SetLevelRequestParams::new(LoggingLevel::Debug))
                .await?;
            client.call_tool(call).await?;
            seen.more_than("message", 0, wait).await
        });
        let outcome = logging.await;
        run.put("logging", outcome);
    }
    if let Some(uri) = run.text("/subscribe") {
        let update = run.planned("/update");
        let wait = Duration::from_secs_f64(run.profile["wait"].as_f64().unwrap_or(1.0));
        let subscribing = within(async {
            client.subscribe(SubscribeRequestParams::new(&uri)).await?;
            if let Some(call) = update {
                client.call_tool(call).await?;
                seen.more_than("updated", 0, wait).await?;
            }
            client
                .unsubscribe(UnsubscribeRequestParams::new(&uri))
                .await?;
            Ok(String::new())
        });
        let outcome = subscribing.await;
        run.put("subscribe", outcome);
    }
}

async fn asks(run: &mut Run) {
    for kind in ["elicitation", "sampling", "roots"] {
        let era = if run.modern { "modern" } else { "legacy" };
        let call = run
            .planned(&format!("/{kind}/{era}"))
            .or_else(|| run.planned(&format!("/{kind}/legacy")));
        let (client, seen) = (Arc::clone(&run.client), run.seen.clone());
        let outcome = within(async {
            client.call_tool(call.ok_or_else(nothing)?).await?;
            anyhow::ensure!(seen.count(kind) > 0, "client not asked");
            Ok(String::new())
        });
        let outcome = outcome.await;
        run.put(kind, outcome);
    }
}

async fn plain_features(run: &mut Run) {
    let (client, seen) = (Arc::clone(&run.client), run.seen.clone());
    let outcome = within(async {
        let tools = client.list_all_tools().await?;
        let mut names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
        names.sort();
        Ok(format!("{} {}", names.len(), names.join(" ")))
    });
    let outcome = outcome.await;
    run.put("list", outcome);
    for (feature, wanted) in [("call", false), ("tool_error", true)] {
        let call = run.planned(&format!("/{feature}"));
        let outcome = within(async {
            let result = client.call_tool(call.ok_or_else(nothing)?).await?;
            anyhow::ensure!(
                result.is_error.unwrap_or(false) == wanted,
                "isError is not {wanted}"
            );
            spell(&result)
        });
        let outcome = outcome.await;
        run.put(feature, outcome);
    }
    let call = run.planned("/progress");
    let outcome = within(async {
        client.call_tool(call.ok_or_else(nothing)?).await?;
        seen.more_than("progress", 0, Duration::from_secs(1)).await
    });
    let outcome = outcome.await;
    run.put("progress", outcome);
    let (call, after) = (run.planned("/cancel"), run.planned("/call"));
    let outcome = within(async {
        let call = client.call_tool(call.ok_or_else(nothing)?);
        anyhow::ensure!(
            tokio::time::timeout(Duration::from_millis(700), call)
                .await
                .is_err(),
            "call was not interrupted"
        );
        client.call_tool(after.ok_or_else(nothing)?).await?;
        Ok(String::new())
    });
    let outcome = outcome.await;
    run.put("cancel", outcome);
}

async fn content_features(run: &mut Run) {
    let client = Arc::clone(&run.client);
    let uri = run.text("/read");
    let outcome = within(async {
        let read = client
            .read_resource(ReadResourceRequestParams::new(uri.ok_or_else(nothing)?))
            .await?;
        Ok(serde_json::to_string(&read.contents)?)
    });
    let outcome = outcome.await;
    run.put("read", outcome);
    let prompt = run.text("/prompt/0");
    let arguments = run
        .profile
        .pointer("/prompt/1")
        .and_then(Value::as_object)
        .cloned();
    let outcome = within(async {
        let mut wanted = GetPromptRequestParams::new(prompt.ok_or_else(nothing)?);
        wanted.arguments = arguments;
        let listed = client.list_all_prompts().await?.len();
        let got = client.get_prompt(wanted).await?;
        Ok(format!(
            "{listed} {}",
            serde_json::to_string(&got.messages)?
        ))
    });
    let outcome = outcome.await;
    run.put("prompt", outcome);
    let words: Option<Vec<String>> = run
        .profile
        .get("completion")
        .and_then(|c| serde_json::from_value(c.clone()).ok());
    let outcome = within(async {
        let words = words.ok_or_else(nothing)?;
        Ok(client
            .complete_prompt_simple(&words[0], &words[1], &words[2])
            .await?
            .join(" "))
    });
    let outcome = outcome.await;
    run.put("completion", outcome);
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, profile, mode] = &arguments[..] else {
        anyhow::bail!("usage: rmcp_client TARGET PROFILE MODE")
    };
    let features: Value =
        serde_json::from_str(&std::fs::read_to_string(std::env::var("MATRIX_FEATURES")?)?)?;
    let seen = Seen::default();
    let client = match within(connect(target, mode, seen.clone())).await {
        Ok(client) => Arc::new(client),
        Err(e) => {
            let text: String = format!("FAIL {e:#}").chars().take(160).collect();
            println!("{}", json!({"initialize": text}));
            return Ok(());
        }
    };
    let version = client
        .peer_info()
        .map(|info| info.protocol_version.to_string())
        .unwrap_or_default();
    let modern = version.as_str() >= "2026";
    let mut run = Run {
        client,
        seen,
        profile: features[profile].clone(),
        modern,
        outcome: Map::new(),
    };
    run.put(
        "initialize",
        Ok(format!(
            "{} {version}",
            if modern { "modern" } else { "legacy" }
        )),
    );
    plain_features(&mut run).await;
    content_features(&mut run).await;
    legacy_features(&mut run).await;
    asks(&mut run).await;
    println!("{}", Value::Object(run.outcome));
    if let Some(client) = Arc::into_inner(run.client) {
        client.cancel().await.ok();
    }
    Ok(())
}
