//! Servers reached by streamable HTTP.
//!
//! An [`Origin`] is one configured server; it finds out which era the server speaks
//! and opens an [`HttpLink`] for each holder. All of them share a [`Client`]. The
//! body of a message is never changed here, and headers are the configured ones plus
//! the protocol's own: nothing of a caller's request crosses by itself.

mod address;
mod client;
mod core;
mod events;
mod link;
mod opening;
mod origin;
mod patience;
mod reply;
mod request;
mod resume;
mod running;
mod settings;
mod site;
mod standing;
mod verdict;

pub use address::{Address, Unusable};
pub use client::Client;
pub use link::HttpLink;
pub use origin::Origin;
pub use settings::{Fixed, Pool, Settings};
pub use site::Health;
