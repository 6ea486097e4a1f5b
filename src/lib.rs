//! Drawbridge, a gateway for MCP servers.

pub mod admin;
pub mod auth;
pub mod backend;
pub mod bridge;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod example;
pub mod front;
pub mod gateway;
pub mod mcp;
pub mod router;
pub mod session;
pub mod telemetry;
