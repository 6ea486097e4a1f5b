//! Drawbridge, one door for every MCP server.
//!
//! Clients reach the gateway by streamable HTTP; it finds out who they are, knows which
//! server has what they ask for, and carries their calls to servers that run as
//! processes (stdio) or elsewhere (HTTP), each in the revision of the protocol that it
//! speaks. What it need not change it passes on byte for byte.
//!
//! # The drawing
//!
//! ```text
//!            clients: streamable HTTP, any revision since 2025-03-26
//!               │ POST, GET, DELETE                 ▲ JSON, or a stream of events
//!  ┌────────────▼───────────────────────────────────┴─────────────┐   ┌───────────────┐
//!  │ front    host, origin → principal → session | modern → body  │   │ admin         │
//!  └────────────┬───────────────────────────────────▲─────────────┘   │ probes,       │
//!               │ message             answer, events│                 │ metrics       │
//!  ┌────────────▼───────────────────────────────────┴─────────────┐   └───────────────┘
//!  │ router   whose is it, which server has it, and the way back  │      every room:
//!  └──┬─────────────┬──────────────┬───────────────────┬──────────┘      telemetry
//!  session       catalog         bridge             backend
//!  standing,     merged lists,   what one era       a link for each holder:
//!  mailboxes,    the table of    has and the        stdio process or HTTP origin,
//!  replay        names           other lacks        era, supervision
//!                                                      │
//!            servers: stdio or streamable HTTP, any revision since 2025-03-26 (stdio: 2024-11-05)
//! ```
//!
//! # Floors
//!
//! Data goes down and back up one staircase. A room imports only rooms below it, by
//! `crate::room`, and never a neighbour on its floor. `tests/architecture.rs` reads this
//! table and holds the code to it.
//!
//! | floor | room | what it is |
//! |---|---|---|
//! | 0 | [`mcp`] | the protocol as data: messages with raw parameters, the method table, revisions and eras, names, codes, events. No I/O, no clock |
//! | 1 | [`config`] | what the operator wrote, parsed, expanded, checked; knows only `mcp` |
//! | 2 | [`telemetry`] | one call for each thing that happens, writing log and metric together |
//! | 3 | [`auth`] · [`session`] · [`backend`] | who is calling · a legacy client's standing, its streams and their replay · links to servers, their eras and their supervision |
//! | 4 | [`catalog`] · [`bridge`] | merged lists and the table of names · what a message needs to cross between eras |
//! | 5 | [`router`] | one call: name → server → link → answer; and the way back for all that follows |
//! | 6 | [`front`] · [`admin`] | the HTTP edge, one file for the whole path of a request · probes and metrics |
//! | 7 | [`gateway`] | from a configuration to a running gateway, and to its orderly end |
//! | 8 | [`cli`] | the commands |
//!
//! [`example`] stands apart: three small MCP servers that share no code with the gateway,
//! so that whatever is tried with them is tried with a stranger.
//!
//! # Flows
//!
//! ```text
//! down  client → front (host, origin, key, session) → router → catalog (whose name?) → bridge (if the eras differ) → link → server
//! back  server → link → bridge → router (the client's own id and names again) → front (JSON, or the end of a stream) → client
//! up    a server's notification → link → inlet (whose?) → the call's stream, or the session's standing one → client
//! ask   a server's request → link → inlet → the one client it belongs to → its answer → the same link → server
//! ```
//!
//! * A call is a future. Dropping it abandons the call, and the server is told: `notifications/cancelled`
//!   on stdio and on HTTP with sessions, a closed stream on HTTP without.
//! * A legacy client's broken connection is no cancellation: the call goes on, and its answer is kept for
//!   `Last-Event-ID`. A modern client's closed stream is one.
//! * A server is contacted when the gateway starts, without any client's capabilities, to learn its era and its
//!   lists; a client never waits for it longer than `discovery` says.
//!
//! # What always holds
//!
//! * Only `front` and `admin` know HTTP requests; only `backend` talks to servers; only `front/refusal.rs` makes the
//!   answers that no server had a part in.
//! * A client's name never reaches a server, nor a server's name a client, without passing the catalog's table. It is
//!   a table and never a split of a string.
//! * Nothing that carries content is ever sent to two clients; only `*/list_changed`, which carries none, fans out.
//! * A message that needs no change goes on byte for byte; one that does is spliced: every byte that is not replaced
//!   stays as it came.
//! * What may have run is never sent a second time.
//! * No process that the gateway started outlives it, however it ends.
//! * Every queue, body, line, list and cache has a bound; no lock is held across an `.await`; every task has an owner.
//! * Only `telemetry` names metrics. No argument, token or prompt is in any log.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)
)]

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
