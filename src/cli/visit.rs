//! A gateway in this process, without listeners, and one client of it.
//!
//! The client is one of the session-based era that declares no capabilities, so
//! servers are told at once that nobody can be asked.

use super::{Failure, serve::start_failure};
use crate::{
    auth::Principal,
    config::{Auth, Config, Period},
    gateway::{Gateway, Options},
    mcp::{Kind, Message, RpcError, code, scan::MAX_DEPTH},
    router::{Answer, Client, ClientSession},
    session::Outbox,
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

/// How long the end may take.
const GRACE: Duration = Duration::from_secs(3);

/// A gateway and its client.
pub(super) struct Visit {
    pub gateway: Gateway,
    pub session: Arc<ClientSession>,
    client: Client,
}

impl Visit {
    /// Builds the gateway and opens a session on `path`, or on the first endpoint. A server has `limit` to answer a list.
    pub async fn begin(
        mut config: Config,
        path: Option<&str>,
        limit: Period,
    ) -> Result<Self, Failure> {
        // Nobody else comes in, and nothing is known of a server before it is asked.
        config.auth = Some(Auth::Open);
        config.tls = None;
        config.discovery.wait = Period::seconds(0);
        config.discovery.list_wait = limit;
        let built = Gateway::build(&config, &Options::default());
        let gateway = built.map_err(|error| start_failure(error, &config))?;
        let endpoint = endpoint(&gateway, path)?;
        let params = json!({
            "protocolVersion": crate::mcp::Revision::NEWEST_LEGACY.as_str(),
            "capabilities": {},
            "clientInfo": {"name": "drawbridge", "version": env!("CARGO_PKG_VERSION")},
        });
        let principal = Principal {
            name: "command-line".into(),
            scopes: [].into(),
        };
        let message = request("initialize", &params);
        let router = gateway.router.clone();
        let greeted = router.initialize(&principal, endpoint, &message).await;
        let session = greeted.map_err(Failure::Answered)?.session;
        let client = Client::Legacy(session.clone());
        Ok(Self {
            gateway,
            session,
            client,
        })
    }

    /// Sends one request and waits for its result. Notifications that come before it go to `notice`.
    pub async fn ask(
        &self,
        method: &str,
        params: &Value,
        mut notice: impl FnMut(&Message),
    ) -> Result<Value, Failure> {
        let router = &self.gateway.router;
        let outbox = self.session.streams.open();
        let message = request(method, params);
        let mut answer = std::pin::pin!(router.request(&self.client, &message, &outbox));
        let standing = self.session.streams.standing.clone();
        // One for the whole wait: a signal between two of them would be lost.
        let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
        let mut streams = [Reader::new(outbox.clone()), Reader::new(standing)];
        loop {
            tokio::select! {
                biased;
                said = next(&mut streams) => self.hear(&said, &mut notice),
                answer = &mut answer => return result(&answer),
                _ = &mut interrupted => return Err(Failure::Interrupted),
            }
        }
    }

    fn hear(&self, said: &Bytes, notice: &mut impl FnMut(&Message)) {
        let Ok(message) = Message::parse(said.clone(), MAX_DEPTH) else {
            return;
        };
        match message.kind() {
            Kind::Request => {
                let error = RpcError::new(code::METHOD_NOT_FOUND, "nobody can be asked here");
                let answer = error.message(message.id());
                if let Ok(answer) = Message::parse(answer, MAX_DEPTH) {
                    self.gateway.router.response(&self.session, &answer);
                }
            }
            Kind::Notification => notice(&message),
            Kind::Result | Kind::Error => {}
        }
    }

    /// Ends the session, every process and every connection.
    pub async fn end(self) {
        self.gateway.router.end(&self.session.id);
        self.gateway.close(GRACE).await;
    }
}

fn endpoint(gateway: &Gateway, path: Option<&str>) -> Result<usize, Failure> {
    let endpoints = &gateway.router.endpoints;
    let wanted = |path: &str| endpoints.iter().position(|e| e.path == path);
    let found = match path {
        Some(path) => wanted(path.trim_end_matches('/')),
        None => (!endpoints.is_empty()).then_some(0),
    };
    found.ok_or_else(|| Failure::NoEndpoint {
        path: path.unwrap_or("/mcp").to_owned(),
        known: endpoints.iter().map(|e| e.path.clone()).collect(),
    })
}

fn request(method: &str, params: &Value) -> Message {
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    Message::parse(text.to_string().into(), MAX_DEPTH).expect("what is written here is a message")
}

fn result(answer: &Answer) -> Result<Value, Failure> {
    let mut answer: Value =
        serde_json::from_slice(&answer.bytes.clone().into_bytes()).unwrap_or_default();
    if let Some(result) = answer.get_mut("result") {
        return Ok(result.take());
    }
    let error = &answer["error"];
    let text = error["message"]
        .as_str()
        .unwrap_or("an error without a message");
    let code = error["code"].as_i64().unwrap_or(0);
    Err(Failure::Answered(RpcError::new(code, text)))
}

/// One reader of a stream, until it goes.
struct Reader {
    outbox: Arc<Outbox>,
    reader: u64,
}

impl Reader {
    fn new(outbox: Arc<Outbox>) -> Self {
        let reader = outbox.attach();
        Self { outbox, reader }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.outbox.detach(self.reader);
    }
}

/// The next message of any of the streams. Never, if all are over.
async fn next(streams: &mut [Reader]) -> Bytes {
    poll_fn(|cx| {
        for stream in &*streams {
            if let Poll::Ready(Some(sent)) = stream.outbox.poll_next(stream.reader, cx) {
                return Poll::Ready(sent.message);
            }
        }
        Poll::Pending
    })
    .await
}
