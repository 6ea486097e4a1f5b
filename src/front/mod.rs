//! The HTTP edge: streamable HTTP as each revision has it.
//!
//! [`request`] is the whole path of a request in order. Everything that decides a
//! status runs before the first byte of a stream. Only this room (and `admin`)
//! knows HTTP requests, and only [`refusal`] chooses status codes.

mod app;
mod body;
mod door;
mod listen;
mod modern;
mod post;
mod prompt;
mod refusal;
mod request;
mod stream;
mod tls;

pub use app::{Front, Settings, app};
pub use door::Door;
pub use listen::{Limits, Listener, serve};
pub use tls::Certificates;
