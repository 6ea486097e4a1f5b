//! The gateway as a whole, against scripted servers that misbehave and clients that do.
//!
//! One file for each behaviour; builders in `support`.

mod support;

mod batches;
mod ids;
mod progress;
mod questions;
mod replies;
mod resumption;
mod session_lifetime;
mod smoke;
mod streams;
