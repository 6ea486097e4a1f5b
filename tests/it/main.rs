//! The gateway as a whole, against scripted servers that misbehave and clients that do.
//!
//! One file for each behaviour; builders in `support`.

mod support;

mod accept_cors_hosts;
mod backend_sessions;
mod barrier;
mod batches;
mod connections;
mod early_messages;
mod front_limits;
mod ids;
mod modern_front;
mod progress;
mod questions;
mod replies;
mod resumption;
mod scopes;
mod server_events;
mod session_lifetime;
mod smoke;
mod streams;
mod versions;
