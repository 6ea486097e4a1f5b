//! What a message needs to cross from one era to the other.
//!
//! Pure: bytes in, bytes out. The request side makes or removes the per-hop
//! metadata of 2026-07-28, the response side adds or removes what one era has and
//! the other lacks. Same-era messages never come here.

mod request;
mod response;

pub use request::{Hop, to_legacy, to_modern};
pub use response::{ResultHints, from_legacy, from_modern, legacy_tool, readable_error};
