//! `drawbridge serve`, and `drawbridge` alone: the gateway from its start to its end.

use super::{
    Failure, banner,
    flags::GatewayFlags,
    print,
    source::{self, Origin, Source},
};
use crate::{
    config::{Config, Period},
    gateway::{Gateway, Options, StartError},
};
use clap::Args;
use std::{path::PathBuf, process::ExitCode};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What a second signal ends the process with, as shells have it for SIGINT.
const AT_ONCE: i32 = 130;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  drawbridge serve --config drawbridge.yaml
  drawbridge serve --config ~/.config/claude/claude_desktop_config.json
  DRAWBRIDGE_TOKEN=… drawbridge serve --config gateway.toml --listen 0.0.0.0:8080")]
pub(super) struct ServeArgs {
    /// YAML, TOML or JSON, or a desktop client's own file; left out: drawbridge.yaml (.yml, .toml, .json) of this folder
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    gateway: GatewayFlags,

    #[arg(skip)]
    or_examples: bool,
}

impl ServeArgs {
    /// `drawbridge` alone: this folder's file, or the examples.
    pub fn without_file(gateway: GatewayFlags) -> Self {
        Self {
            config: None,
            gateway,
            or_examples: true,
        }
    }
}

pub(super) async fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    let source = source::find(args.config.as_deref())?;
    if source.origin == Origin::Examples && !args.or_examples {
        return Err(Failure::NoConfig);
    }
    host(source, &args.gateway).await
}

/// Runs a gateway until it is told to end.
pub(super) async fn host(source: Source, flags: &GatewayFlags) -> Result<ExitCode, Failure> {
    let Source { mut config, origin } = source;
    flags.apply(&mut config)?;
    if !matches!(origin, Origin::File(_)) && config.listen.is_loopback() {
        // Nothing balances load in front of it that would need time to notice the end.
        config.drain.delay = Period::seconds(0);
    }
    let signals = Signals::register()?;
    let log = flags.log.start(&config)?;
    let options = Options {
        token: flags.token.clone(),
        ..Options::default()
    };
    let failed = |error| start_failure(error, &config);
    let gateway = Gateway::build(&config, &options).map_err(failed)?;
    gateway.metrics.add_log(&log);
    let running = gateway.start().await.map_err(failed)?;
    // A gateway whose output cannot be written is still a gateway.
    let _ = print::out(&banner::text(&banner::Facts {
        origin: &origin,
        config: &config,
        token: options.token.is_some(),
        public: &running.public,
        admin: running.admin,
    }));
    tokio::spawn(signals.stop(running.stop.clone()));
    running.ended().await;
    drop(log);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn start_failure(error: StartError, config: &Config) -> Failure {
    match error {
        StartError::Unsafe(_) => {
            let addresses = config.listen.addresses().iter();
            let open = addresses.filter(|address| !address.is_loopback());
            Failure::Unguarded(open.map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        error => Failure::Start(error),
    }
}

/// The signals that end a gateway, taken from before it starts.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn register() -> Result<Self, Failure> {
        let take = |kind| {
            signal(kind).map_err(|source| Failure::Io {
                what: "cannot receive signals",
                source,
            })
        };
        Ok(Self {
            terminate: take(SignalKind::terminate())?,
            interrupt: take(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// The first signal begins the drain, a second one does not wait for its end.
    async fn stop(mut self, stop: CancellationToken) {
        self.next().await;
        stop.cancel();
        self.next().await;
        tracing::warn!("told to end a second time; ending at once");
        std::process::exit(AT_ONCE);
    }
}
