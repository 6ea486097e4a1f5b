//! The protocol as data: messages with raw parameters, the method table, revisions,
//! names, codes, events. No I/O, no clock, no HTTP.

pub mod code;
pub mod edit;
pub mod header;
pub mod list;
pub mod message;
pub mod method;
pub mod names;
pub mod param;
pub mod pieces;
pub mod raw;
pub mod revision;
pub mod scan;
pub mod sse;
pub mod template;
pub mod union;

pub use code::RpcError;
pub use edit::Edit;
pub use message::{Kind, Malformed, Message};
pub use method::{ListKind, Method, Sender, Target};
pub use names::ServerId;
pub use pieces::Pieces;
pub use revision::{Era, Revision};
pub use scan::Span;
