//! Clients of an example server for the tests: they speak one revision over one transport, answer what the
//! server asks, and keep what it sends.

use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use drawbridge::example::{self, ExampleArgs, Revision, Spoken, Which};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits, but not for ever.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("nothing here takes that long")
}

pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

pub fn initialize(revision: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": "init", "method": "initialize",
        "params": {
            "protocolVersion": revision,
            "capabilities": { "sampling": {}, "elicitation": {}, "roots": {} },
            "clientInfo": { "name": "test", "version": "1" },
        },
    })
}

pub fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// A request of 2026-07-28 from a client that can do everything.
pub fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    let meta = &mut params["_meta"];
    meta[META_VERSION] = json!("2026-07-28");
    meta[META_CAPABILITIES] = json!({ "sampling": {}, "elicitation": {}, "roots": {} });
    request(id, method, params)
}

/// What the person, the model and the client answer.
pub fn reply(question: &Value) -> Value {
    match question["method"].as_str().unwrap() {
        "roots/list" => json!({ "roots": [{ "uri": "file:///home", "name": "Home" }] }),
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "none",
            "content": { "type": "text", "text": "I would take DB-107." },
        }),
        "elicitation/create" => {
            let fields = &question["params"]["requestedSchema"]["properties"];
            let content = if fields["confirm"].is_object() {
                json!({ "confirm": true, "room": "suite", "seat": "aisle" })
            } else {
                json!({ "upgrade": true })
            };
            json!({ "action": "accept", "content": content })
        }
        other => panic!("unexpected question {other}"),
    }
}

/// An example server as a process, on stdio.
pub struct Process {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_drawbridge"))
            .arg("example")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
        }
    }

    pub async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).await.unwrap();
        stdin.write_all(b"\n").await.unwrap();
    }

    /// The next line; empty at the end of stdout.
    pub async fn line(&mut self) -> String {
        soon(self.lines.next_line())
            .await
            .unwrap()
            .unwrap_or_default()
    }

    /// The next message; null at the end of stdout.
    pub async fn receive(&mut self) -> Value {
        match self.line().await.as_str() {
            "" => Value::Null,
            line => serde_json::from_str(line).unwrap(),
        }
    }

    pub async fn ask(&mut self, message: Value) -> Value {
        self.send(&message).await;
        self.receive().await
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }
}

/// An example server over HTTP, in this process.
pub struct Site {
    pub address: String,
    client: Client<HttpConnector, Full<Bytes>>,
    _stop: DropGuard,
}

impl Site {
    pub async fn start(which: Which, protocol: Spoken) -> Self {
        Self::start_with(ExampleArgs {
            protocol,
            ..ExampleArgs::new(which)
        })
        .await
    }

    pub async fn start_with(args: ExampleArgs) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stop = CancellationToken::new();
        tokio::spawn(example::serve(args, listener, stop.clone()));
        Self {
            address,
            client: Client::builder(TokioExecutor::new()).build_http(),
            _stop: stop.drop_guard(),
        }
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Incoming> {
        let uri = format!("http://{}{path}", self.address);
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        soon(self.client.request(request.body(body).unwrap()))
            .await
            .unwrap()
    }

    /// A POST with the headers that every POST has, and these.
    pub async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Response<Incoming> {
        let mut all = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        all.extend_from_slice(headers);
        self.send(Method::POST, "/mcp", &all, &message.to_string())
            .await
    }

    /// A POST of 2026-07-28 with the headers that repeat its body.
    pub async fn post_modern(&self, message: &Value) -> Response<Incoming> {
        let params = &message["params"];
        let method = message["method"].as_str().unwrap();
        let mut headers = vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        let name = params["name"].as_str().or(params["uri"].as_str());
        if let ("tools/call" | "prompts/get" | "resources/read", Some(name)) = (method, name) {
            headers.push(("mcp-name", name));
        }
        self.post(&headers, message).await
    }
}

/// The body as JSON.
pub async fn json_body(response: Response<Incoming>) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json");
    let bytes = soon(response.into_body().collect())
        .await
        .unwrap()
        .to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

/// An event stream.
pub struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    pub fn of(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            body: response.into_body(),
            text: String::new(),
        }
    }

    /// Name and data of the next event; `None` at the end.
    pub async fn next(&mut self) -> Option<(String, String)> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
                };
                if let Some(data) = field("data: ") {
                    return Some((field("event: ").unwrap_or_default(), data));
                }
            }
            let frame = soon(self.body.frame()).await?.ok()?;
            let data = frame.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    pub async fn message(&mut self) -> Option<Value> {
        let (_, data) = self.next().await?;
        Some(serde_json::from_str(&data).unwrap())
    }
}

/// A client in one revision over one transport.
pub struct Peer {
    pub revision: Revision,
    link: Link,
    next_id: u64,
    /// All notifications so far.
    pub notes: Vec<Value>,
}

enum Link {
    Stdio(Box<Process>),
    Http {
        site: Site,
        session: Option<String>,
    },
    Sse {
        site: Site,
        stream: Events,
        path: String,
    },
}

impl Peer {
    pub async fn stdio(which: &str, revision: Revision, arguments: &[&str]) -> Self {
        let process = Process::start(&[&[which], arguments].concat());
        Self::open(revision, Link::Stdio(Box::new(process))).await
    }

    pub async fn http(args: ExampleArgs, revision: Revision) -> Self {
        let site = Site::start_with(args).await;
        if revision > Revision::V2024_11_05 {
            return Self::open(
                revision,
                Link::Http {
                    site,
                    session: None,
                },
            )
            .await;
        }
        let mut stream = Events::of(site.send(Method::GET, "/sse", &[], "").await);
        let (event, path) = stream.next().await.unwrap();
        assert_eq!(event, "endpoint");
        Self::open(revision, Link::Sse { site, stream, path }).await
    }

    async fn open(revision: Revision, link: Link) -> Self {
        let mut peer = Self {
            revision,
            link,
            next_id: 0,
            notes: Vec::new(),
        };
        if !revision.is_modern() {
            let answer = peer.exchange(initialize(revision.as_str())).await;
            assert_eq!(answer["result"]["protocolVersion"], revision.as_str());
            let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            peer.post(&done).await;
        }
        peer
    }

    /// The answer to a request, after all that the server asked has been answered.
    pub async fn call(&mut self, method: &str, mut params: Value) -> Value {
        loop {
            self.next_id += 1;
            let message = if self.revision.is_modern() {
                modern(self.next_id, method, params.clone())
            } else {
                request(self.next_id, method, params.clone())
            };
            let answer = self.exchange(message).await;
            if answer["result"]["resultType"] != "input_required" {
                return answer;
            }
            params["requestState"] = answer["result"]["requestState"].clone();
            params["inputResponses"] = json!({});
            for (key, question) in answer["result"]["inputRequests"].as_object().unwrap() {
                params["inputResponses"][key] = reply(question);
            }
        }
    }

    pub async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({
            "name": name, "arguments": arguments, "_meta": { "progressToken": "token" },
        });
        self.call("tools/call", params).await
    }

    /// The text of a tool's answer.
    pub async fn text(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.tool(name, arguments).await;
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    async fn exchange(&mut self, message: Value) -> Value {
        let mut stream = match &mut self.link {
            Link::Stdio(process) => {
                process.send(&message).await;
                None
            }
            Link::Sse { .. } => {
                self.post(&message).await;
                None
            }
            Link::Http { site, session } => {
                let response = match (self.revision.is_modern(), &*session) {
                    (true, _) => site.post_modern(&message).await,
                    (false, None) => site.post(&[], &message).await,
                    (false, Some(id)) => site.post(&[("mcp-session-id", id)], &message).await,
                };
                if let Some(id) = response.headers().get("mcp-session-id") {
                    *session = Some(id.to_str().unwrap().to_owned());
                }
                if response.headers()["content-type"] == "application/json" {
                    return json_body(response).await;
                }
                Some(Events::of(response))
            }
        };
        loop {
            let heard = match (&mut stream, &mut self.link) {
                (Some(events), _) => events.message().await.unwrap(),
                (None, Link::Stdio(process)) => process.receive().await,
                (None, Link::Sse { stream, .. }) => stream.message().await.unwrap(),
                (None, Link::Http { .. }) => unreachable!("its answers come on the stream"),
            };
            match (heard["method"].is_null(), heard["id"].is_null()) {
                (true, _) => {
                    assert_eq!(heard["id"], message["id"], "{heard}");
                    return heard;
                }
                (false, true) => self.notes.push(heard),
                (false, false) => {
                    assert!(!self.revision.is_modern(), "{heard}");
                    let answer =
                        json!({ "jsonrpc": "2.0", "id": heard["id"], "result": reply(&heard) });
                    self.post(&answer).await;
                }
            }
        }
    }

    async fn post(&mut self, message: &Value) {
        match &mut self.link {
            Link::Stdio(process) => process.send(message).await,
            Link::Http { site, session } => {
                let id = session.clone().unwrap();
                let response = site.post(&[("mcp-session-id", &id)], message).await;
                assert_eq!(response.status(), StatusCode::ACCEPTED);
            }
            Link::Sse { site, path, .. } => {
                let headers = [("content-type", "application/json")];
                let response = site
                    .send(Method::POST, path, &headers, &message.to_string())
                    .await;
                assert_eq!(response.status(), StatusCode::ACCEPTED);
            }
        }
    }
}
