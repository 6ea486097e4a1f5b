//! One call: whose it is, which server has the target, and the way back for all that follows.
//!
//! Down: client → [`Router::request`] → target → `slot` → link. Back: the call's
//! future. Up: a server's notification or request comes to an `inlet`, which
//! knows the one client that it belongs to. Nothing that carries content is ever
//! sent to two clients; only `*/list_changed` fans out.

mod ask;
mod call;
mod changes;
mod client;
mod core;
mod endpoint;
mod exchange;
mod greet;
mod inlet;
mod inspect;
mod learn;
mod lists;
mod loss;
mod modern;
mod names;
mod pages;
mod params;
mod resources;
mod single;
mod slot;
mod standing;
mod subscribers;
mod target;
mod tasks;
mod uris;

pub use self::core::{Router, Settings};
pub use client::{Client, ModernCaller};
pub use endpoint::Endpoint;
pub use exchange::Answer;
pub use greet::Greeted;
pub use inspect::Inspected;
pub use standing::{ClientSession, Standing, level_rank};
