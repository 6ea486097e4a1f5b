//! The gateway as a whole, against scripted servers that misbehave and clients that do.
//!
//! One file for each behaviour; builders in `support`.

mod support;

mod accept_cors_hosts;
mod backend_session_lost;
mod backend_sessions;
mod backend_streams;
mod barrier;
mod batches;
mod cancellation;
mod capabilities;
mod concurrency;
mod connections;
mod dead_servers;
mod early_messages;
mod environment;
mod era_matrix;
mod eras;
mod fidelity;
mod front_limits;
mod ids;
mod list_changes;
mod modern_front;
mod names;
mod noise_and_size;
mod pagination;
mod policy_shapes;
mod processes;
mod progress;
mod questions;
mod replies;
mod resources;
mod resumption;
mod scopes;
mod server_events;
mod session_lifetime;
mod slow_servers;
mod smoke;
mod streams;
mod tasks;
mod timeouts;
mod versions;
