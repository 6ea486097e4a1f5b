//! Servers on stdio, with real processes: what the supervisor promises, shown on a
//! server that misbehaves on demand (`examples/sb.rs`).

#![cfg(target_os = "linux")]

mod calls;
mod caps;
mod eras;
mod life;
mod sharing;
mod starts;
mod support;
mod wire;
