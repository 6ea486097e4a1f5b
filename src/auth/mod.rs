//! Who is calling: static API keys, or everyone where the operator said so.

mod gate;
mod key;

pub use gate::{Denied, Gate, Principal};
pub use key::{NewKey, new_key};
