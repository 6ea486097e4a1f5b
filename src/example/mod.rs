//! Three small MCP servers inside the binary, to plan a trip with: travel, weather and calendar. A newcomer has
//! something to talk to without installing anything, and every test has a peer that shares no code with the
//! gateway: nothing here uses another room, and no other room may use this one but to start it.
//!
//! Together the three use the whole protocol, in any of the five revisions, on stdio and HTTP. They are written
//! to be read, not to be fast. All their data is made up, fixed and small.
//!
//! ```text
//! stdio, http ── one message ──▶ legacy (sessions) ─┐
//!                              ▶ modern (stateless) ┴▶ methods ──▶ travel | weather | calendar
//! ```

mod calendar;
mod call;
mod fault;
mod flights;
mod headers;
mod http;
mod http_legacy;
mod http_modern;
mod legacy;
mod methods;
mod modern;
mod revision;
mod seal;
mod server;
mod session;
mod shape;
mod sse;
mod stdio;
mod travel;
mod uri;
mod weather;
mod world;

use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub use revision::{Revision, Spoken};

use server::Server;
use world::World;

/// Which of the three servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// Flights, a hotel, a prompt to plan a vacation.
    Travel,
    /// Weather now and on a day.
    Weather,
    /// Events, mail, a passport.
    Calendar,
}

/// What to start, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct ExampleArgs {
    /// Which server
    pub server: Which,

    /// Serve HTTP on this address and port instead of stdio; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT")]
    pub http: Option<String>,

    /// The only revision of the protocol to speak, or all
    #[arg(long, value_name = "REV", default_value = "all")]
    pub protocol: Spoken,

    /// Cut lists into pages of this many entries
    #[arg(long, value_name = "N", env = "EXAMPLE_PAGE_SIZE", value_parser = page_size)]
    pub page_size: Option<usize>,
}

fn page_size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("not a number of entries above 0".to_owned()),
        Ok(size) => Ok(size),
    }
}

impl ExampleArgs {
    /// The server `which` on stdio, in all revisions, with its lists in one page.
    pub fn new(server: Which) -> Self {
        Self {
            server,
            http: None,
            protocol: Spoken::All,
            page_size: None,
        }
    }

    fn build(&self) -> Arc<World> {
        let server: Box<dyn Server> = match self.server {
            Which::Travel => Box::new(travel::Travel),
            Which::Weather => Box::new(weather::Weather::default()),
            Which::Calendar => Box::new(calendar::Calendar),
        };
        World::new(server, self.protocol, self.page_size)
    }
}

/// Runs an example server until its client closes stdin or the process is told to end. With `http`, the first
/// and only line on stdout says where it listens.
///
/// # Errors
///
/// The address cannot be listened on, or signals cannot be received.
#[expect(
    clippy::print_stdout,
    reason = "whoever starts it reads the address there"
)]
pub async fn run(args: ExampleArgs) -> io::Result<()> {
    let shutdown = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
    let Some(address) = &args.http else {
        stdio::run(args.build(), shutdown).await;
        return Ok(());
    };
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", url(&args, &listener)?);
    serve(args, listener, shutdown).await
}

fn url(args: &ExampleArgs, listener: &TcpListener) -> io::Result<String> {
    let path = if args.protocol == Spoken::Only(Revision::V2024_11_05) {
        "sse"
    } else {
        "mcp"
    };
    Ok(format!("http://{}/{path}", listener.local_addr()?))
}

/// Serves HTTP on a listener until `shutdown` is cancelled, whatever `args.http` says.
///
/// # Errors
///
/// The listener fails.
pub async fn serve(
    args: ExampleArgs,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> io::Result<()> {
    http::run(args.build(), listener, shutdown).await
}
