//! A legacy client's standing with an example server: what it said in `initialize`, what it subscribed to,
//! the calls that run for it, the questions it has not answered yet, and the stream that carries what belongs
//! to no request. On stdio there is one for the life of the process.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::calendar::Diary;
use super::fault::{Fault, notification};
use super::revision::Revision;
use super::world::{Outlet, locked};

/// Messages kept for a client that has no stream open; the oldest goes first.
const MAILBOX_LIMIT: usize = 64;

/// What a client said in `initialize`, and what was settled on.
#[derive(Debug)]
pub struct Client {
    /// The revision of the session.
    pub revision: Revision,
    /// The client's capabilities.
    pub capabilities: Value,
}

/// The requests that are being worked on, by id.
#[derive(Default)]
pub struct Running(Mutex<HashMap<String, CancellationToken>>);

impl Running {
    /// Notes that the request is worked on until it is dropped or `token` is cancelled.
    pub fn begin(&self, id: &Value, token: CancellationToken) {
        locked(&self.0).insert(id.to_string(), token);
    }

    /// Notes that the request is done.
    pub fn end(&self, id: &Value) {
        locked(&self.0).remove(&id.to_string());
    }

    /// Cancels one request; an unknown id is no fault, since the answer may be on its way.
    pub fn cancel(&self, id: &Value) {
        if let Some(token) = locked(&self.0).remove(&id.to_string()) {
            token.cancel();
        }
    }

    /// Cancels all requests.
    pub fn cancel_all(&self) {
        for (_, token) in locked(&self.0).drain() {
            token.cancel();
        }
    }
}

/// What belongs to no request: sent at once where a stream is open, else kept for the next one.
#[derive(Default)]
struct Mailbox {
    stream: Option<Outlet>,
    kept: VecDeque<Value>,
}

#[derive(Default)]
struct Questions {
    last: i64,
    waiting: HashMap<i64, oneshot::Sender<Result<Value, Value>>>,
}

/// A legacy client's standing with an example server.
pub struct Session {
    id: String,
    client: OnceLock<Client>,
    /// This client's bookings.
    pub diary: Arc<Diary>,
    /// The requests that are being worked on.
    pub running: Running,
    level: Mutex<usize>,
    subscriptions: Mutex<BTreeSet<String>>,
    mailbox: Mutex<Mailbox>,
    questions: Mutex<Questions>,
    ended: CancellationToken,
}

impl Session {
    /// A session whose client has not said anything yet; log messages start at rank `level`.
    pub fn new(id: String, level: usize) -> Arc<Self> {
        Arc::new(Self {
            id,
            client: OnceLock::new(),
            diary: Arc::default(),
            running: Running::default(),
            level: Mutex::new(level),
            subscriptions: Mutex::default(),
            mailbox: Mutex::default(),
            questions: Mutex::default(),
            ended: CancellationToken::new(),
        })
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What `initialize` settled, once it has been answered.
    pub fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    /// Settles the session; false if it was settled before.
    pub fn settle(&self, client: Client) -> bool {
        self.client.set(client).is_ok()
    }

    /// The rank of the least severe log message that the client wants.
    pub fn level(&self) -> usize {
        *locked(&self.level)
    }

    /// Changes what `level` returns.
    pub fn set_level(&self, rank: usize) {
        *locked(&self.level) = rank;
    }

    /// The URIs that the client is subscribed to, as it wrote them.
    pub fn subscriptions(&self) -> BTreeSet<String> {
        locked(&self.subscriptions).clone()
    }

    /// Adds a subscription.
    pub fn subscribe(&self, uri: &str) {
        locked(&self.subscriptions).insert(uri.to_owned());
    }

    /// Takes a subscription away.
    pub fn unsubscribe(&self, uri: &str) {
        locked(&self.subscriptions).remove(uri);
    }

    /// From now on, what belongs to no request goes to `stream`, first of all what was kept. An earlier stream
    /// ends.
    pub fn attach(&self, stream: Outlet) {
        let mut mailbox = locked(&self.mailbox);
        for message in mailbox.kept.drain(..) {
            // The stream is as new as can be; if its client has gone already, so be it.
            let _ = stream.send(message);
        }
        mailbox.stream = Some(stream);
    }

    /// The open stream for what belongs to no request; on 2024-11-05 it is the only one.
    pub fn stream(&self) -> Option<Outlet> {
        locked(&self.mailbox).stream.clone()
    }

    /// Sends what belongs to no request.
    pub fn notify(&self, message: Value) {
        let mut mailbox = locked(&self.mailbox);
        let unsent = match &mailbox.stream {
            Some(stream) => stream.send(message).err().map(|unsent| unsent.0),
            None => Some(message),
        };
        let Some(message) = unsent else { return };
        mailbox.stream = None;
        if mailbox.kept.len() == MAILBOX_LIMIT {
            mailbox.kept.pop_front();
        }
        mailbox.kept.push_back(message);
    }

    /// Asks the client and waits for its answer. The question goes out on the stream of the call that needs it.
    pub async fn ask(&self, method: &str, params: Value, out: &Outlet) -> Result<Value, Fault> {
        let (id, answer) = self.put(method, params, out);
        let mut open = Open {
            session: self,
            out,
            id,
            answered: false,
        };
        let answer = tokio::select! {
            answer = answer => answer.ok(),
            () = self.ended.cancelled() => None,
        };
        open.answered = true;
        match answer {
            Some(Ok(result)) => Ok(result),
            Some(Err(error)) => Err(Fault::tool(format!(
                "The client could not answer {method}: {}",
                error["message"].as_str().unwrap_or("no reason given")
            ))),
            None => Err(Fault::Cancelled),
        }
    }

    fn put(
        &self,
        method: &str,
        params: Value,
        out: &Outlet,
    ) -> (i64, oneshot::Receiver<Result<Value, Value>>) {
        let (sender, receiver) = oneshot::channel();
        let mut questions = locked(&self.questions);
        questions.last += 1;
        let id = questions.last;
        questions.waiting.insert(id, sender);
        drop(questions);
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        if let Err(unsent) = out.send(message) {
            // The call's own stream is gone, which does not cancel the call; the standing stream is left.
            self.notify(unsent.0);
        }
        (id, receiver)
    }

    /// Takes the client's answer to one of our questions; an unknown id is ignored.
    pub fn answered(&self, id: &Value, answer: Result<Value, Value>) {
        let Some(id) = id.as_i64() else { return };
        if let Some(waiting) = locked(&self.questions).waiting.remove(&id) {
            // Nobody waits any more if the call was cancelled just now.
            let _ = waiting.send(answer);
        }
    }

    /// Ends the session: its streams, its calls, its questions.
    pub fn end(&self) {
        self.ended.cancel();
        self.running.cancel_all();
        locked(&self.mailbox).stream = None;
    }
}

/// A question on its way. Dropped without an answer, since its call was cancelled, it is withdrawn.
struct Open<'a> {
    session: &'a Session,
    out: &'a Outlet,
    id: i64,
    answered: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        locked(&self.session.questions).waiting.remove(&self.id);
        if !self.answered {
            let params = json!({ "requestId": self.id, "reason": "the call was cancelled" });
            // Without a stream there is nobody to withdraw it from.
            let _ = self
                .out
                .send(notification("notifications/cancelled", params));
        }
    }
}
