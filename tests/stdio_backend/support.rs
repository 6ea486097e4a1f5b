//! What the tests are made of: a supervisor over the scripted server, and ears.

use bytes::Bytes;
use drawbridge::{
    backend::{
        Call, Eras, Fault, Holder, Opening, Receiver,
        stdio::{Parts, Processes, Settings, StdioLink, Supervisor},
    },
    mcp::{Era, Kind, Message, Revision, ServerId},
    telemetry::{Metrics, ServerMetrics},
};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::Command,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The scripted server, built if this binary was built alone.
pub fn sb() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let own = std::env::current_exe().unwrap();
        let profile = own.parent().unwrap().parent().unwrap();
        let path = profile.join("examples/sb");
        if !path.exists() {
            let name = match profile.file_name().unwrap().to_str().unwrap() {
                "debug" => "dev",
                name => name,
            };
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--example", "sb", "--profile", name]);
            assert!(build.status().unwrap().success());
        }
        path
    };
    PATH.get_or_init(find).clone()
}

pub fn settings(args: &[&str]) -> Settings {
    let args = args.iter().map(|a| (*a).to_owned()).collect();
    let mut settings = Settings::new(sb().to_str().unwrap(), args);
    settings.shim = Some(env!("CARGO_BIN_EXE_drawbridge").into());
    settings.start.timeout = Duration::from_secs(10);
    settings.start.backoff = (Duration::from_millis(100), Duration::from_millis(400));
    settings
}

pub struct Bench {
    pub supervisor: Supervisor,
    pub metrics: ServerMetrics,
    pub processes: Arc<Processes>,
    pub tracker: TaskTracker,
}

pub fn bench(settings: Settings) -> Bench {
    bench_within(settings, Processes::new(1000))
}

pub fn bench_within(settings: Settings, processes: Arc<Processes>) -> Bench {
    let tracker = TaskTracker::new();
    let metrics = Metrics::new().server("sb");
    let parts = Parts {
        processes: processes.clone(),
        metrics: metrics.clone(),
        eras: Arc::new(Eras::new(settings.protocol.fixed())),
        tracker: tracker.clone(),
        stop: CancellationToken::new(),
    };
    Bench {
        supervisor: Supervisor::new(ServerId::new("sb").unwrap(), settings, parts),
        metrics,
        processes,
        tracker,
    }
}

impl Bench {
    pub async fn open(&self) -> (StdioLink, Ears) {
        self.open_as("alice").await
    }

    pub async fn open_as(&self, principal: &str) -> (StdioLink, Ears) {
        let (opening, ears) = opening(principal);
        (self.supervisor.open(opening).await.unwrap(), ears)
    }

    pub async fn open_modern(&self) -> (StdioLink, Ears) {
        let (mut opening, ears) = opening("alice");
        opening.era = Era::Modern;
        opening.revision = Revision::NEWEST;
        (self.supervisor.open(opening).await.unwrap(), ears)
    }

    pub async fn refusal(&self) -> Fault {
        match self.supervisor.open(opening("alice").0).await {
            Ok(_) => panic!("a link"),
            Err(fault) => fault,
        }
    }

    /// Ends everything, and shows that nothing is left.
    pub async fn end(self) {
        self.supervisor.shutdown(Duration::from_secs(5)).await;
        self.tracker.close();
        within(Duration::from_secs(2), self.tracker.wait()).await;
        assert_eq!(self.metrics.processes.get(), 0);
        assert_eq!(self.metrics.sessions.get(), 0);
        assert_eq!(self.processes.count(), 0);
    }
}

/// What a receiver heard.
#[derive(Debug)]
pub enum Heard {
    Message(Box<Message>, Option<u64>),
    Ended(Fault),
}

pub struct Recorder(UnboundedSender<Heard>);

impl Receiver for Recorder {
    fn receive(&self, message: Message, call: Option<u64>) {
        let _ = self.0.send(Heard::Message(message.into(), call));
    }

    fn ended(&self, fault: &Fault) {
        let _ = self.0.send(Heard::Ended(fault.clone()));
    }
}

pub struct Ears(UnboundedReceiver<Heard>);

impl Ears {
    pub async fn next(&mut self) -> Heard {
        within(Duration::from_secs(10), self.0.recv())
            .await
            .unwrap()
    }

    pub async fn message(&mut self) -> (Message, Option<u64>) {
        match self.next().await {
            Heard::Message(message, call) => (*message, call),
            other => panic!("{other:?}"),
        }
    }

    pub async fn end(&mut self) -> Fault {
        loop {
            if let Heard::Ended(fault) = self.next().await {
                return fault;
            }
        }
    }

    pub fn nothing(&mut self) {
        if let Ok(heard) = self.0.try_recv() {
            panic!("{heard:?}");
        }
    }
}

pub fn opening(principal: &str) -> (Opening, Ears) {
    let (sender, receiver) = unbounded_channel();
    let opening = Opening {
        era: Era::Legacy,
        revision: Revision::NEWEST_LEGACY,
        client_info: Bytes::from_static(br#"{"name":"test","version":"1"}"#),
        capabilities: Bytes::from_static(br#"{"sampling":{}}"#),
        holder: Holder {
            principal: principal.into(),
            session: None,
        },
        receiver: Arc::new(Recorder(sender)),
    };
    (opening, Ears(receiver))
}

pub async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, future).await.expect("in time")
}

pub fn request(link: &StdioLink, tool: &str, arguments: &Value) -> Call {
    let id = link.next_id();
    let meta = json!({"progressToken": id});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    Call {
        id,
        message: message.to_string().into(),
        method: "tools/call",
        other_method: None,
        name: None,
        params: Vec::new(),
    }
}

/// The text of a tool's answer.
pub async fn tool(link: &StdioLink, name: &str, arguments: Value) -> Result<String, Fault> {
    let answer = link.call(request(link, name, &arguments)).await?;
    assert_eq!(answer.kind(), Kind::Result, "{:?}", answer.bytes());
    let result: Value = serde_json::from_slice(answer.payload().unwrap()).unwrap();
    Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
}

pub async fn pid_of(link: &StdioLink) -> i32 {
    tool(link, "pid", json!({})).await.unwrap().parse().unwrap()
}

/// Whether a process runs; one that waits to be reaped does not.
pub fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z')
}

pub async fn gone(pid: i32) {
    let limit = Instant::now() + Duration::from_secs(5);
    while runs(pid) {
        assert!(Instant::now() < limit, "process {pid} still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

pub struct Journal {
    _home: tempfile::TempDir,
    pub path: PathBuf,
}

impl Journal {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("journal");
        Self { _home: home, path }
    }

    pub fn option(&self) -> String {
        format!("--journal={}", self.path.display())
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap_or_default()
    }

    pub fn count(&self, what: &str) -> usize {
        self.text().lines().filter(|l| l.contains(what)).count()
    }

    pub async fn has(&self, what: &str) -> String {
        let limit = Instant::now() + Duration::from_secs(5);
        loop {
            if let Some(line) = self.text().lines().find(|l| l.contains(what)) {
                return line.to_owned();
            }
            assert!(Instant::now() < limit, "no {what} in {}", self.text());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
