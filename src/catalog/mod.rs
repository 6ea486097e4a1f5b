//! Merged lists, and the table of names that leads back.
//!
//! A [`Listing`] is one list of one server as one endpoint shows it, kept as bytes
//! that are ready to go out. A [`Layer`] holds the four listings of a server as
//! callers with the same standing see them. The way back from a client's name to
//! a server's is a look-up here, never a split of a string.

mod cursor;
mod layer;
mod listing;
mod resources;
mod shape;

pub use cursor::Cursor;
pub use layer::{Layer, LayerKey, Layers};
pub use listing::{Entry, Fetched, Listing, join};
pub use resources::Shared;
pub use shape::{Naming, Shape};
