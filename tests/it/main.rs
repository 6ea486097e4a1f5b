//! The gateway as a whole, against scripted servers that misbehave and clients that do.
//!
//! One file for each behaviour; builders in `support`.

mod support;

mod batches;
mod ids;
mod progress;
mod replies;
mod session_lifetime;
mod smoke;
mod streams;
