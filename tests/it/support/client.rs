//! A client that says exactly what a test wants, over real connections.

use bytes::Bytes;
use drawbridge::mcp::sse;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client as Http, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Longest wait for anything in a test: reached only when something is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A client of one endpoint. After [`Client::initialize`] it carries its session.
pub struct Client {
    pub url: String,
    pub session: Option<String>,
    pub revision: String,
    /// More headers for every request.
    pub headers: Vec<(String, String)>,
    http: Http<HttpConnector, Full<Bytes>>,
    next: AtomicU64,
}

/// A response whose body was not read yet.
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
}

/// An event stream.
pub struct Events {
    body: Incoming,
    reader: sse::Reader,
    ready: VecDeque<sse::Event>,
    /// The id of the last event that came.
    pub last_id: Option<String>,
    /// Comments and events, as they came.
    pub raw: Vec<u8>,
}

impl Client {
    pub fn new(url: String) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self {
            url,
            session: None,
            revision: "2025-11-25".into(),
            headers: Vec::new(),
            http: Http::builder(TokioExecutor::new()).build(connector),
            next: AtomicU64::new(1),
        }
    }

    pub fn revision(mut self, revision: &str) -> Self {
        self.revision = revision.into();
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn key(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    /// Another client with the same session, on connections of its own.
    pub fn twin(&self) -> Self {
        let mut twin = Self::new(self.url.clone());
        twin.session = self.session.clone();
        twin.revision = self.revision.clone();
        twin.headers = self.headers.clone();
        twin
    }

    /// Sends exactly these headers (besides Host) and this body.
    pub async fn raw(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(&self.url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(body.into()))
            .expect("a test's request is valid");
        let response = tokio::time::timeout(PATIENCE, self.http.request(request)).await;
        let response = response.expect("an answer in time").expect("an answer");
        let (parts, body) = response.into_parts();
        Response {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    /// Sends with the usual headers of a legacy client in this session; `more` may replace them.
    pub async fn send(
        &self,
        method: Method,
        more: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response {
        let mut headers: Vec<(&str, &str)> = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id", session));
            headers.push(("mcp-protocol-version", &self.revision));
        }
        headers.extend(self.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        headers.retain(|(name, _)| !more.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)));
        headers.extend(more.iter().filter(|(_, value)| *value != "-"));
        self.raw(method, &headers, body).await
    }

    pub async fn post(&self, message: &Value) -> Response {
        self.send(Method::POST, &[], message.to_string()).await
    }

    /// Initializes and says so; returns the result.
    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": self.revision, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}}});
        let response = self.post(&message).await;
        assert_eq!(response.status, StatusCode::OK);
        let session = response
            .headers
            .get("mcp-session-id")
            .expect("a session id");
        self.session = Some(session.to_str().expect("a session id is ASCII").to_owned());
        let answer = response.message().await;
        let result = answer["result"].clone();
        assert!(result.is_object(), "{answer}");
        self.revision = result["protocolVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let accepted = self.notify("notifications/initialized", json!({})).await;
        assert_eq!(accepted.status, StatusCode::ACCEPTED);
        result
    }

    /// A client that is initialized already, without capabilities.
    pub async fn connected(mut self) -> Self {
        self.initialize(json!({})).await;
        self
    }

    pub async fn notify(&self, method: &str, params: Value) -> Response {
        self.post(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await
    }

    /// A fresh id.
    pub fn id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request and waits for its answer: the whole message.
    pub async fn request(&self, method: &str, params: Value) -> Value {
        let message =
            json!({"jsonrpc": "2.0", "id": self.id(), "method": method, "params": params});
        let answer = self.post(&message).await.message().await;
        assert_eq!(answer["id"], message["id"], "{answer}");
        answer
    }

    /// Calls a tool and waits for its answer: the whole message.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// Calls a tool and returns the text of its first block.
    pub async fn text(&self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments).await;
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("no text in {answer}"))
            .to_owned()
    }

    /// The names in a list: `tools/list` and `tools`, say.
    pub async fn names(&self, method: &str, member: &str, key: &str) -> Vec<String> {
        let answer = self.request(method, json!({})).await;
        let list = answer["result"][member]
            .as_array()
            .unwrap_or_else(|| panic!("no list in {answer}"))
            .clone();
        list.iter()
            .map(|item| item[key].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    pub async fn tools(&self) -> Vec<String> {
        self.names("tools/list", "tools", "name").await
    }

    /// Opens the standing stream.
    pub async fn listen(&self) -> Events {
        self.resume("-").await
    }

    /// Opens a stream after the event with this id.
    pub async fn resume(&self, last: &str) -> Events {
        let response = self.send(Method::GET, &[("last-event-id", last)], "").await;
        assert_eq!(response.status, StatusCode::OK);
        response.events()
    }

    pub async fn delete(&self) -> Response {
        self.send(Method::DELETE, &[("content-type", "-")], "")
            .await
    }

    /// A stateless request of 2026-07-28 with all its headers.
    pub async fn modern(&self, method: &str, params: Value) -> Response {
        let mut params = params;
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}});
        let given = params["_meta"].as_object().cloned().unwrap_or_default();
        params["_meta"] = meta;
        for (key, value) in given {
            params["_meta"][key] = value;
        }
        let name = params["name"]
            .as_str()
            .or(params["uri"].as_str())
            .map(str::to_owned);
        let message =
            json!({"jsonrpc": "2.0", "id": self.id(), "method": method, "params": params});
        let mut headers = vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        if let Some(name) = &name {
            headers.push(("mcp-name", name));
        }
        headers.push(("mcp-session-id", "-"));
        self.send(Method::POST, &headers, message.to_string()).await
    }
}

impl Response {
    /// The whole body.
    pub async fn bytes(self) -> Bytes {
        let body = tokio::time::timeout(PATIENCE, self.body.collect()).await;
        body.expect("the body in time")
            .expect("a whole body")
            .to_bytes()
    }

    pub async fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes().await).into_owned()
    }

    pub async fn json(self) -> Value {
        let bytes = self.bytes().await;
        serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("no JSON: {bytes:?}"))
    }

    pub fn is_stream(&self) -> bool {
        let kind = self
            .headers
            .get("content-type")
            .and_then(|v| v.to_str().ok());
        kind.is_some_and(|k| k.starts_with("text/event-stream"))
    }

    pub fn events(self) -> Events {
        assert!(
            self.is_stream(),
            "not a stream: {} {:?}",
            self.status,
            self.headers
        );
        Events {
            body: self.body,
            reader: sse::Reader::new(64 << 20),
            ready: VecDeque::new(),
            last_id: None,
            raw: Vec::new(),
        }
    }

    /// The answer, as JSON or as the last message of a stream.
    pub async fn message(self) -> Value {
        if !self.is_stream() {
            return self.json().await;
        }
        let mut events = self.events();
        loop {
            let message = events
                .next()
                .await
                .expect("an answer before the stream ends");
            if message.get("method").is_none() {
                return message;
            }
        }
    }
}

impl Events {
    /// The next message, or `None` at the end of the stream. Events without data are passed over.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let event = tokio::time::timeout(PATIENCE, self.event())
                .await
                .expect("an event in time")?;
            if !event.data.is_empty() {
                return Some(serde_json::from_slice(&event.data).expect("an event holds JSON"));
            }
        }
    }

    /// The next message with this method; others are passed over.
    pub async fn next_of(&mut self, method: &str) -> Value {
        loop {
            let message = self
                .next()
                .await
                .unwrap_or_else(|| panic!("the stream ended before {method}"));
            if message["method"] == method {
                return message;
            }
        }
    }

    /// The next event, the empty one that primes included.
    pub async fn event(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.last_id = event.id.clone().or(self.last_id.take());
                return Some(event);
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// Whether nothing but comments comes for this long.
    pub async fn is_silent_for(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.next()).await.is_err()
    }

    /// Reads once from the connection; `false` at the end.
    pub async fn fill(&mut self) -> bool {
        match self.body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    self.raw.extend_from_slice(&data);
                    let ready = &mut self.ready;
                    self.reader
                        .feed(&data, |e| ready.push_back(e))
                        .expect("events of a sane size");
                }
                true
            }
            _ => false,
        }
    }
}
