//! A gateway in this process, on a free port, from a configuration in YAML.

use super::Client;
use drawbridge::{
    config::{Config, Format},
    gateway::{Gateway, Options, Running},
    router::Router,
};
use std::{net::SocketAddr, path::PathBuf, sync::Arc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A running gateway. Dropping it stops it without waiting; [`TestGateway::stop`] waits.
pub struct TestGateway {
    pub address: SocketAddr,
    pub admin: Option<SocketAddr>,
    pub router: Arc<Router>,
    stop: CancellationToken,
    ended: Option<JoinHandle<()>>,
}

/// Starts a gateway. `yaml` needs no `listen`; quick drain and no admin listener unless it says otherwise.
pub async fn gateway(yaml: &str) -> TestGateway {
    let mut text = String::from("listen: 127.0.0.1:0\n");
    if !yaml.contains("drain:") {
        text.push_str("drain: { delay: 0s, grace: 5s }\n");
    }
    if !yaml.contains("admin:") {
        text.push_str("admin: { listen: off }\n");
    }
    text.push_str(yaml);
    let env = |name: &str| std::env::var(name).ok();
    let loaded = Config::parse("test.yaml", &text, Some(Format::Yaml), &env);
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    let options = Options {
        shim: Some(PathBuf::from(env!("CARGO_BIN_EXE_drawbridge"))),
        token: None,
    };
    let gateway = Gateway::build(&loaded.config, &options).expect("the gateway builds");
    let router = gateway.router.clone();
    let running: Running = gateway.start().await.expect("the gateway starts");
    TestGateway {
        address: running.public[0],
        admin: running.admin,
        router,
        stop: running.stop.clone(),
        ended: Some(tokio::spawn(running.ended())),
    }
}

impl TestGateway {
    /// The URL of an endpoint, such as `/mcp`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A client of an endpoint, not initialized yet.
    pub fn client(&self, path: &str) -> Client {
        Client::new(self.url(path))
    }

    /// Begins the drain, as SIGTERM does.
    pub fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Stops and waits until nothing runs any more.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(ended) = self.ended.take() {
            ended.await.expect("the gateway ends without a panic");
        }
    }
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The YAML value of a server that runs the scripted stdio server with these options; `more` is further YAML members, such as `isolation: shared`.
pub fn sb(options: &[&str], more: &str) -> String {
    let args: Vec<String> = options.iter().map(|o| format!("{o:?}")).collect();
    let more = if more.is_empty() {
        String::new()
    } else {
        format!(", {more}")
    };
    format!(
        "{{ command: {:?}, args: [{}]{more} }}",
        sb_path(),
        args.join(", ")
    )
}

/// Where cargo puts the scripted stdio server: it builds examples along with tests.
fn sb_path() -> String {
    let mut path = std::env::current_exe().expect("a test knows its own path");
    path.pop();
    path.pop();
    path.push("examples/sb");
    assert!(
        path.exists(),
        "{} is missing: run `cargo build --example sb`",
        path.display()
    );
    path.display().to_string()
}
