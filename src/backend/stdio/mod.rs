//! Servers that run as local processes: their supervision, their caps, their end.
//!
//! A [`Supervisor`] runs one server. Opening a link on it finds or starts a process
//! (`supervisor`, `starting`, `restarts`), within the caps on processes ([`Processes`]),
//! through a keeper that lets nothing outlive it (`keeper`, `spawn`), learns its era
//! (`greet`), and hands out a [`StdioLink`]. A process (`process`) matches answers to
//! calls (`calls`), takes messages without ever waiting (`stdin`), and brings what the
//! server says to whom it belongs (`inbound`, `links`).
//!
//! Answers the stdio transport pages of all five revisions.

mod calls;
mod ending;
mod environment;
mod greet;
mod inbound;
mod keeper;
mod launch;
mod lenient;
mod lines;
mod link;
mod links;
mod places;
mod process;
mod restarts;
mod settings;
mod spawn;
mod starting;
mod stderr;
mod stdin;
mod supervisor;

pub use keeper::child_main_if_asked;
pub use link::StdioLink;
pub use places::Processes;
pub use settings::{Ending, Isolation, Limits, Protocol, Settings, Start, Timeouts};
pub use supervisor::{Health, Parts, Supervisor};
