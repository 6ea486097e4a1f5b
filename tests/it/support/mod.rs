//! Builders for tests: a gateway in this process, scripted servers on HTTP (`hb`) and stdio (`sb`), and a client that can misbehave.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

pub mod caller;
pub mod client;
pub mod gateway;
pub mod hb;
pub mod health;
pub mod keys;
pub mod servers;
pub mod stock;
pub mod wait;
pub mod wire;

pub use client::{Client, Events, Response};
pub use gateway::{TestGateway, gateway, sb};
pub use servers::{Standing, arguments, echoing, listing, modern_echoing, text, with_tools};
pub use wait::until;
pub use wire::Wire;
