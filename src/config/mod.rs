//! What the operator wrote, parsed, expanded and validated.

mod auth;
mod endpoint;
mod server;
mod settings;
mod value;

pub use auth::{ApiKey, Auth, Keys};
pub use endpoint::{Endpoint, Names, Naming};
pub use server::{
    Fixed, Isolation, Process, Protocol, Remote, Selection, Server, ServerLimits, Shown, Start,
    Target, Timeouts, Tools,
};
pub use settings::{
    Admin, Config, Discovery, Drain, Limits, Log, LogFormat, LogLevel, Replay, Streams, Telemetry,
    Tls,
};
pub use value::{
    Address, Backoff, EndpointPath, Expiry, HeaderName, HostName, HttpUrl, KeyName, Listen, Origin,
    Patterns, Period, Scope, Secret, ServerId, Sha256, Size, Wrong,
};
