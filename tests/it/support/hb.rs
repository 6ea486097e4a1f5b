//! A scripted MCP server over HTTP: records each request and answers as told.
//!
//! It speaks HTTP/1.1 by hand on 127.0.0.1, so that it can do what no decent server
//! does: send bytes one by one, cut connections, fall silent, lie about lengths.
//!
//! ```ignore
//! let hb = Hb::legacy()                                // sessions, JSON answers, no GET stream
//!     .on("tools/call", |seen| Reply::events().message(seen.result(json!({}))))
//!     .on("GET", |_| Reply::status(405))
//!     .start()
//!     .await;
//! let seen = hb.wait_for(|seen| seen.method() == "notifications/cancelled").await;
//! ```

#![allow(
    dead_code,
    reason = "each test binary that takes this in uses a part of it"
)]

use bytes::Bytes;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc},
};

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub verb: String,
    pub path: String,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// Which connection it came on, from 0.
    pub connection: usize,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC method of a POST, `response` for an answer, else the HTTP verb.
    pub fn method(&self) -> String {
        if self.verb != "POST" {
            return self.verb.clone();
        }
        let body = self.json();
        let method = body.get("method").and_then(Value::as_str);
        method.unwrap_or("response").to_owned()
    }

    pub fn id(&self) -> Value {
        self.json()["id"].clone()
    }

    /// A response to this request that carries `result`.
    pub fn result(&self, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id(), "result": result})
    }

    /// An error as the response to this request.
    pub fn error(&self, code: i64, message: &str) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id(), "error": {"code": code, "message": message}})
    }

    /// Progress of this request by its own token.
    pub fn progress(&self, done: u64) -> Value {
        let token = self.json()["params"]["_meta"]["progressToken"].clone();
        json!({"jsonrpc": "2.0", "method": "notifications/progress",
               "params": {"progressToken": token, "progress": done}})
    }
}

/// Holds replies back until it is opened.
#[derive(Clone, Default)]
pub struct Gate {
    inner: Arc<(Mutex<bool>, Notify)>,
}

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn open(&self) {
        *self.inner.0.lock().unwrap() = true;
        self.inner.1.notify_waiters();
    }

    pub async fn pass(&self) {
        loop {
            let opened = self.inner.1.notified();
            if *self.inner.0.lock().unwrap() {
                return;
            }
            opened.await;
        }
    }
}

enum Step {
    Bytes(Bytes),
    Wait(Duration),
    Gate(Gate),
    /// Bytes as the test sends them; ends with its sender.
    Live(mpsc::UnboundedReceiver<Bytes>),
    /// Nothing more comes, and the connection stays.
    Silence,
    /// The connection ends without the end of the body.
    Cut,
}

/// An answer to one request: a head, and a body in steps.
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    steps: Vec<Step>,
    /// Framed in chunks; else by its length, which needs all bytes beforehand.
    chunked: bool,
    /// How many bytes go out in one write.
    piece: usize,
    before_head: Vec<Step>,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            steps: Vec::new(),
            chunked: false,
            piece: usize::MAX,
            before_head: Vec::new(),
        }
    }

    /// 200 with one JSON message.
    pub fn json(message: Value) -> Self {
        let reply = Self::status(200).header("content-type", "application/json");
        reply.raw(message.to_string())
    }

    /// 200 with an event stream.
    pub fn events() -> Self {
        let mut reply = Self::status(200).header("content-type", "text/event-stream");
        reply.chunked = true;
        reply
    }

    /// 200 with an event stream whose bytes the test sends as it goes on.
    pub fn live() -> (mpsc::UnboundedSender<Bytes>, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut reply = Self::events();
        reply.steps.push(Step::Live(receiver));
        (sender, reply)
    }

    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Bytes of the body as they are.
    pub fn raw(mut self, bytes: impl Into<Bytes>) -> Self {
        self.steps.push(Step::Bytes(bytes.into()));
        self
    }

    /// One event with a message.
    pub fn message(self, message: Value) -> Self {
        self.raw(format!("event: message\ndata: {message}\n\n"))
    }

    /// One event with a message and an id.
    pub fn message_with_id(self, id: &str, message: Value) -> Self {
        self.raw(format!("id: {id}\nevent: message\ndata: {message}\n\n"))
    }

    pub fn wait(mut self, time: Duration) -> Self {
        self.steps.push(Step::Wait(time));
        self
    }

    pub fn gate(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Gate(gate.clone()));
        self
    }

    /// Keeps even the head back until the gate opens.
    pub fn gate_head(mut self, gate: &Gate) -> Self {
        self.before_head.push(Step::Gate(gate.clone()));
        self
    }

    /// Cuts the connection before the head.
    pub fn cut_head(mut self) -> Self {
        self.before_head.push(Step::Cut);
        self
    }

    pub fn cut(mut self) -> Self {
        self.chunked = true;
        self.steps.push(Step::Cut);
        self
    }

    /// Ends the connection after the bytes given, whatever length was announced.
    pub fn cut_short(mut self) -> Self {
        self.steps.push(Step::Cut);
        self
    }

    pub fn silence(mut self) -> Self {
        self.chunked = true;
        self.steps.push(Step::Silence);
        self
    }

    /// Sends the body in pieces of so many bytes, each in its own chunk and write.
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    /// Frames the body in chunks also where its length is known.
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }
}

pub type Answer = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// What a server does before it is started.
pub struct Script {
    answers: HashMap<String, Answer>,
    fallback: Answer,
    sessions: bool,
}

impl Script {
    /// What is done for a JSON-RPC method, an HTTP verb other than POST, or `response`.
    pub fn on<F>(mut self, what: &str, answer: F) -> Self
    where
        F: Fn(&Seen) -> Reply + Send + Sync + 'static,
    {
        self.answers.insert(what.to_owned(), Arc::new(answer));
        self
    }

    /// What is done for everything that has no answer of its own.
    pub fn otherwise<F>(mut self, answer: F) -> Self
    where
        F: Fn(&Seen) -> Reply + Send + Sync + 'static,
    {
        self.fallback = Arc::new(answer);
        self
    }

    /// What is done for `what` so far.
    pub fn answer_to(&self, what: &str) -> Answer {
        self.answers.get(what).unwrap_or(&self.fallback).clone()
    }

    /// Gives no session ids and asks for none.
    pub fn without_sessions(mut self) -> Self {
        self.sessions = false;
        self
    }

    pub async fn start(self) -> Hb {
        Hb::start(self).await
    }
}

#[derive(Default)]
struct State {
    seen: Mutex<Vec<Seen>>,
    arrived: Notify,
    sessions: Mutex<HashSet<String>>,
    given: AtomicUsize,
    connections: AtomicUsize,
    open: AtomicUsize,
    closed: Notify,
}

/// The running server. Ends when it is dropped.
pub struct Hb {
    pub port: u16,
    state: Arc<State>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for Hb {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Hb {
    /// Answers nothing by itself: 500 to everything.
    pub fn bare() -> Script {
        Script {
            answers: HashMap::new(),
            fallback: Arc::new(|_| Reply::status(500)),
            sessions: false,
        }
    }

    /// A well-behaved server of 2025-11-25: sessions, JSON answers, no GET stream; tools and any other method answer with what was asked.
    pub fn legacy() -> Script {
        let script = Self::bare()
            .on("initialize", |seen| {
                let asked = seen.json()["params"]["protocolVersion"].clone();
                Reply::json(seen.result(json!({
                    "protocolVersion": asked,
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "hb", "version": "1"}
                })))
            })
            .on("server/discover", |seen| {
                Reply::json(seen.error(-32601, "Method not found")).with_status(200)
            })
            .on("GET", |_| Reply::status(405))
            .on("DELETE", |_| Reply::status(200))
            .on("response", |_| Reply::status(202))
            .otherwise(echo);
        Script {
            sessions: true,
            ..script
        }
    }

    /// A well-behaved server of 2026-07-28 only.
    pub fn modern() -> Script {
        Self::bare()
            .on("server/discover", |seen| {
                Reply::json(seen.result(json!({
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "hb", "version": "1"}},
                    "ttlMs": 60000,
                    "cacheScope": "public"
                })))
            })
            .on("initialize", |seen| {
                let mut error = seen.error(-32022, "Unsupported protocol version");
                error["error"]["data"] = json!({"supported": ["2026-07-28"], "requested": "x"});
                Reply::json(error).with_status(400)
            })
            .on("GET", |_| Reply::status(405))
            .on("DELETE", |_| Reply::status(405))
            .otherwise(echo)
    }

    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let script = Arc::new(script);
        let shared = state.clone();
        let accepting = tokio::spawn(async move {
            let mut serving = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                shared.open.fetch_add(1, Ordering::SeqCst);
                let (script, state) = (script.clone(), shared.clone());
                serving.spawn(async move {
                    let _ = serve(stream, number, &script, &state).await;
                    state.open.fetch_sub(1, Ordering::SeqCst);
                    state.closed.notify_waiters();
                });
            }
        });
        Self {
            port,
            state,
            accepting,
        }
    }

    /// The address of its MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// How many requests of a method (or verb) have come.
    pub fn count(&self, method: &str) -> usize {
        let seen = self.state.seen.lock().unwrap();
        seen.iter().filter(|s| s.method() == method).count()
    }

    /// The methods (or verbs) of all requests, in order.
    pub fn methods(&self) -> Vec<String> {
        let seen = self.state.seen.lock().unwrap();
        seen.iter().map(Seen::method).collect()
    }

    /// The first request that `wanted` holds for; waits for it up to ten seconds.
    pub async fn wait_for<F: Fn(&Seen) -> bool>(&self, wanted: F) -> Seen {
        self.wait_for_nth(1, wanted).await
    }

    /// The `nth` (from 1) request that `wanted` holds for.
    pub async fn wait_for_nth<F: Fn(&Seen) -> bool>(&self, nth: usize, wanted: F) -> Seen {
        let search = async {
            loop {
                let arrived = self.state.arrived.notified();
                let found = {
                    let seen = self.state.seen.lock().unwrap();
                    seen.iter().filter(|s| wanted(s)).nth(nth - 1).cloned()
                };
                match found {
                    Some(found) => return found,
                    None => arrived.await,
                }
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(10), search).await;
        found.unwrap_or_else(|_| panic!("no such request; there were {:?}", self.methods()))
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Waits, up to ten seconds, until at most `left` connections are open.
    pub async fn wait_until_open(&self, left: usize) {
        let closing = async {
            loop {
                let closed = self.state.closed.notified();
                if self.state.open.load(Ordering::SeqCst) <= left {
                    return;
                }
                closed.await;
            }
        };
        let closed = tokio::time::timeout(Duration::from_secs(10), closing).await;
        closed.expect("connections stay open");
    }

    /// Sessions that are known now.
    pub fn sessions(&self) -> usize {
        self.state.sessions.lock().unwrap().len()
    }

    /// Forgets the requests so far; sessions stay.
    pub fn forget(&self) {
        self.state.seen.lock().unwrap().clear();
    }

    /// Forgets all sessions, as a restart does.
    pub fn forget_sessions(&self) {
        self.state.sessions.lock().unwrap().clear();
    }
}

fn echo(seen: &Seen) -> Reply {
    if seen.verb != "POST" || seen.id().is_null() {
        return Reply::status(202);
    }
    Reply::json(seen.result(json!({"method": seen.method(), "params": seen.json()["params"]})))
}

/// Serves one connection until it ends.
async fn serve(
    mut stream: TcpStream,
    number: usize,
    script: &Script,
    state: &State,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut buffer, number).await? {
        state.seen.lock().unwrap().push(seen.clone());
        state.arrived.notify_waiters();
        let (reply, session) = decide(&seen, script, state);
        if !write_reply(&mut stream, reply, session).await? {
            break;
        }
    }
    Ok(())
}

fn decide(seen: &Seen, script: &Script, state: &State) -> (Reply, Option<String>) {
    let method = seen.method();
    let answer = script.answers.get(&method).unwrap_or(&script.fallback);
    if !script.sessions || method == "server/discover" {
        return (answer(seen), None);
    }
    if method == "initialize" {
        let id = format!("session-{}", state.given.fetch_add(1, Ordering::SeqCst) + 1);
        state.sessions.lock().unwrap().insert(id.clone());
        return (answer(seen), Some(id));
    }
    let id = seen.header("mcp-session-id").unwrap_or_default().to_owned();
    if !state.sessions.lock().unwrap().contains(&id) {
        let error = json!({"jsonrpc": "2.0", "id": null,
                           "error": {"code": -32001, "message": "Session not found"}});
        return (Reply::json(error).with_status(404), None);
    }
    if method == "DELETE" {
        state.sessions.lock().unwrap().remove(&id);
    }
    (answer(seen), None)
}

async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    connection: usize,
) -> std::io::Result<Option<Seen>> {
    let head_end = loop {
        if let Some(at) = find(buffer, b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let verb = first.next().unwrap_or_default().to_owned();
    let path = first.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap_or(0));
    let end = head_end + 4 + length;
    while buffer.len() < end {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = Bytes::copy_from_slice(&buffer[head_end + 4..end]);
    buffer.drain(..end);
    Ok(Some(Seen {
        verb,
        path,
        headers,
        body,
        connection,
    }))
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// Whether the connection may be used again.
async fn write_reply(
    stream: &mut TcpStream,
    reply: Reply,
    session: Option<String>,
) -> std::io::Result<bool> {
    for step in reply.before_head {
        match step {
            Step::Gate(gate) => {
                if gone_before(stream, gate.pass()).await {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
    }
    let mut head = format!("HTTP/1.1 {} x\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(id) = session {
        head.push_str(&format!("mcp-session-id: {id}\r\n"));
    }
    let sized = reply.headers.iter().any(|(n, _)| n == "content-length");
    match (reply.chunked, sized) {
        (true, _) => head.push_str("transfer-encoding: chunked\r\n"),
        (false, true) => {}
        (false, false) => {
            let length: usize = reply.steps.iter().map(length_of).sum();
            head.push_str(&format!("content-length: {length}\r\n"));
        }
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    for step in reply.steps {
        match step {
            Step::Bytes(bytes) => {
                for piece in bytes.chunks(reply.piece.min(bytes.len().max(1))) {
                    write_piece(stream, piece, reply.chunked).await?;
                }
            }
            Step::Wait(time) => {
                if gone_before(stream, tokio::time::sleep(time)).await {
                    return Ok(false);
                }
            }
            Step::Gate(gate) => {
                if gone_before(stream, gate.pass()).await {
                    return Ok(false);
                }
            }
            Step::Live(mut source) => loop {
                let mut next = None;
                let more = async { next = source.recv().await };
                if gone_before(stream, more).await {
                    return Ok(false);
                }
                let Some(bytes) = next else { break };
                write_piece(stream, &bytes, true).await?;
            },
            Step::Silence => {
                gone_before(stream, std::future::pending::<()>()).await;
                return Ok(false);
            }
            Step::Cut => return Ok(false),
        }
    }
    if reply.chunked {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    Ok(true)
}

fn length_of(step: &Step) -> usize {
    match step {
        Step::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

async fn write_piece(stream: &mut TcpStream, piece: &[u8], chunked: bool) -> std::io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    if !chunked {
        return stream.write_all(piece).await;
    }
    let mut framed = format!("{:x}\r\n", piece.len()).into_bytes();
    framed.extend_from_slice(piece);
    framed.extend_from_slice(b"\r\n");
    stream.write_all(&framed).await
}

/// Waits for `work`, or for the other end to close; `true` for the latter.
async fn gone_before<F: Future>(stream: &mut TcpStream, work: F) -> bool {
    let mut byte = [0];
    tokio::select! {
        _ = work => false,
        // Nothing is sent before the reply is read, so whatever this says means the end.
        _ = stream.peek(&mut byte) => true,
    }
}
