//! Connections to servers: stdio processes and HTTP origins, their eras and their supervision.
//!
//! Only this room talks to servers. It knows nothing of clients, names or policy:
//! whoever opens a [`Link`] says what to declare and who takes the messages.

mod era;
mod fault;
pub mod http;
mod link;
mod profile;
mod server;
pub mod stdio;

pub use era::{Eras, Plan, is_modern_error, newest_legacy};
pub use fault::{Fault, Ran};
pub use link::{Call, Holder, Link, Opening, Receiver};
pub use profile::{Profile, error_text};
pub use server::{Health, Server, Transport};
