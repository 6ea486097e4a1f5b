//! An example server on its standard streams: one message a line. The first message that fits fixes the era for
//! the life of the process, as several real servers do it. The end of stdin ends the process.

use std::io::{self, BufRead as _, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call::rank;
use super::fault::{Fault, INVALID_REQUEST, PARSE_ERROR, UNSUPPORTED_VERSION, error_message};
use super::legacy::{self, Kind, Work};
use super::modern;
use super::revision::Revision;
use super::session::Session;
use super::world::{Outlet, World};

/// Lines read ahead; enough to keep the server busy.
const LINES_AHEAD: usize = 64;

/// How long calls may go on after stdin has ended, for `printf … | drawbridge example …`.
const GRACE: Duration = Duration::from_millis(500);

/// How the client speaks, once its first message has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    Open,
    Legacy,
    Modern,
}

/// A conversation on standard streams.
struct Stdio {
    world: Arc<World>,
    session: Arc<Session>,
    era: Era,
    out: Outlet,
    tasks: TaskTracker,
}

/// Speaks until stdin ends, stdout breaks or `shutdown` is cancelled.
pub async fn run(world: Arc<World>, shutdown: CancellationToken) {
    let (out, mut written) = write();
    let mut lines = read();
    let level = rank(legacy::DEFAULT_LEVEL).unwrap_or_default();
    let session = Session::new("stdio".to_owned(), level);
    session.attach(out.clone());
    world.admit(Arc::clone(&session));
    let mut stdio = Stdio {
        world,
        session,
        era: Era::Open,
        out,
        tasks: TaskTracker::new(),
    };
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => stdio.take(&line),
                None => break,
            },
            () = shutdown.cancelled() => break,
            _ = &mut written => return,
        }
    }
    stdio.world.closing.cancel();
    stdio.tasks.close();
    // Calls that outlast the grace are given up; nobody reads their answers.
    let _ = tokio::time::timeout(GRACE, stdio.tasks.wait()).await;
    stdio.world.close();
    drop(stdio);
    // A client that doesn't read can't keep the process.
    let _ = tokio::time::timeout(GRACE, written).await;
}

/// Lines of stdin. A thread of its own, which the runtime does not wait for at the end. How long a line is, is
/// up to the parent process, which could take our memory anyway.
fn read() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match stdin.read_until(b'\n', &mut line) {
                Ok(1..) if sender.blocking_send(line).is_ok() => {}
                _ => return,
            }
        }
    });
    receiver
}

/// A way to stdout, and a sign that everything is written or nothing can be.
fn write() -> (Outlet, oneshot::Receiver<()>) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Value>();
    let (done, written) = oneshot::channel();
    thread::spawn(move || {
        let mut stdout = io::stdout().lock();
        while let Some(message) = receiver.blocking_recv() {
            if writeln!(stdout, "{message}")
                .and_then(|()| stdout.flush())
                .is_err()
            {
                break;
            }
        }
        // The process may be ending already.
        let _ = done.send(());
    });
    (sender, written)
}

impl Stdio {
    fn take(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match serde_json::from_slice(line) {
            Ok(Value::Array(messages)) => self.batch(messages),
            Ok(message) => self.message(message),
            Err(error) => self.refuse(&Value::Null, &Fault::rpc(PARSE_ERROR, error.to_string())),
        }
    }

    fn refuse(&self, id: &Value, fault: &Fault) {
        // Without a writer the loop in `run` is about to end.
        let _ = self.out.send(error_message(id, fault));
    }

    fn message(&mut self, message: Value) {
        let spoken = self.world.spoken;
        let initialize = message["method"] == "initialize";
        let modern = match self.era {
            Era::Open if initialize => !spoken.legacy(),
            Era::Open => {
                let only_modern = matches!(
                    message["method"].as_str(),
                    Some("server/discover" | "subscriptions/listen")
                );
                spoken.modern() && (!spoken.legacy() || modern::is_modern(&message) || only_modern)
            }
            era => era == Era::Modern,
        };
        if modern {
            self.modern(message);
        } else {
            let work = legacy::receive(&self.world, &self.session, message, &self.out);
            self.start(work);
            if self.session.client().is_some() {
                self.era = Era::Legacy;
            }
        }
    }

    fn modern(&mut self, message: Value) {
        let id = message["id"].clone();
        if message["method"] == "initialize" {
            return self.refuse(&id, &self.too_late(&message));
        }
        match legacy::kind(&message) {
            Ok(Kind::Request) => {}
            Ok(Kind::Notification) => {
                if message["method"] == "notifications/cancelled" {
                    self.session.running.cancel(&message["params"]["requestId"]);
                }
                return;
            }
            // There are no requests of ours that it could answer.
            Ok(Kind::Response) => return,
            Err(fault) => return self.refuse(&id, &fault),
        }
        let request = match modern::check(&self.world, message) {
            Ok(request) => request,
            Err(fault) => return self.refuse(&id, &fault),
        };
        self.era = Era::Modern;
        let token = CancellationToken::new();
        let session = Arc::clone(&self.session);
        session.running.begin(&id, token.clone());
        let work = modern::work(&self.world, request, &self.out, token);
        self.start(Some(Box::pin(async move {
            work.await;
            session.running.end(&id);
        })));
    }

    /// Why `initialize` is refused, with what this process still speaks.
    fn too_late(&self, message: &Value) -> Fault {
        let revisions = self.world.spoken.revisions();
        let modern = revisions
            .into_iter()
            .filter(|revision| revision.is_modern());
        let supported: Vec<_> = modern.map(Revision::as_str).collect();
        Fault::with_data(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            json!({ "supported": supported, "requested": message["params"]["protocolVersion"] }),
        )
    }

    /// Starts work at once, as far as it goes without waiting, so that quick requests are done in order.
    fn start(&self, work: Option<Work>) {
        let Some(mut work) = work else { return };
        if (&mut work).now_or_never().is_none() {
            self.tasks.spawn(work);
        }
    }

    /// Takes a batch, which only 2025-03-26 has. Its answers go out together, everything else at once.
    fn batch(&mut self, messages: Vec<Value>) {
        let revision = self.session.client().map(|client| client.revision);
        if revision != Some(Revision::V2025_03_26) || messages.is_empty() {
            let fault = Fault::rpc(INVALID_REQUEST, "No batch is allowed here");
            return self.refuse(&Value::Null, &fault);
        }
        let (gathering, mut gathered) = mpsc::unbounded_channel::<Value>();
        for message in messages {
            self.start(legacy::receive(
                &self.world,
                &self.session,
                message,
                &gathering,
            ));
        }
        drop(gathering);
        let out = self.out.clone();
        self.start(Some(Box::pin(async move {
            let mut answers = Vec::new();
            while let Some(message) = gathered.recv().await {
                if message["method"].is_null() {
                    answers.push(message);
                } else {
                    let _ = out.send(message);
                }
            }
            if !answers.is_empty() {
                let _ = out.send(Value::Array(answers));
            }
        })));
    }
}
