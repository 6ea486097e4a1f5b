//! A legacy client's standing with the gateway: its session, its streams, and what is kept for both.
//!
//! Sessions outlive connections and streams (2025-11-25, transports, "Session
//! Management"); only DELETE, idleness or shutdown ends one. What the router keeps
//! for a session rides in its `state`, which this room never looks into.

mod outbox;
mod streams;
mod table;

pub use outbox::{Bounds, Gone, Outbox, Sent, Sort};
pub use streams::{EventId, Streams};
pub use table::{Caller, Full, Limits, Session, Table};
