//! What the operator wrote, parsed, expanded and validated.
//!
//! ```text
//! text → tree (positions) → level (desktop files) → expand (${VAR}) → read (beside the schema) → check → Config
//! ```
//!
//! Each step reports all it finds and goes on with the rest, so that one run shows every fault with its line, its path
//! and what to write instead. The settings themselves (`settings`, `server`, `endpoint`, `auth`) are the schema: their
//! doc comments are its descriptions.

mod auth;
mod check;
mod desktop;
mod endpoint;
mod expand;
mod fault;
mod load;
mod read;
mod ready;
mod schema;
mod server;
mod settings;
mod shown;
mod tree;
mod value;

pub use auth::{ApiKey, Auth, Keys};
pub use desktop::Renamed;
pub use endpoint::{Endpoint, Names, Naming};
pub use expand::Lookup;
pub use fault::{Fault, Faults, Path, Position};
pub use load::Loaded;
pub use schema::schema;
pub use server::{
    Isolation, Process, Protocol, Remote, Server, ServerLimits, Start, Target, Timeouts,
};
pub use settings::{
    Admin, Config, Discovery, Drain, Limits, Log, LogFormat, LogLevel, Replay, Streams, Telemetry,
    Tls,
};
pub use shown::{Fixed, Selection, Shown, Tools};
pub use tree::Format;
pub use value::{
    Address, Backoff, EndpointPath, Expiry, HeaderName, HostName, HttpUrl, KeyName, Listen, Origin,
    Patterns, Period, Scope, Secret, ServerId, Sha256, Size, Wrong,
};

#[cfg(test)]
mod tests;
