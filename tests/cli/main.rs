//! The real binary, driven as people and machines drive it: its words, its exit codes, its end.

mod commands;
mod gateway;
mod logs;
mod support;
