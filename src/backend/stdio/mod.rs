//! Servers that run as local processes.

use super::{Call, Fault, Profile};
use crate::mcp::Message;
use bytes::Bytes;
use std::sync::Arc;

pub struct StdioLink;

impl StdioLink {
    pub fn next_id(&self) -> u64 {
        unimplemented!()
    }
    pub fn profile(&self) -> &Arc<Profile> {
        unimplemented!()
    }
    pub fn is_alive(&self) -> bool {
        unimplemented!()
    }
    pub async fn call(&self, _call: Call) -> Result<Message, Fault> {
        unimplemented!()
    }
    pub fn send(&self, _message: Bytes) -> Result<(), Fault> {
        unimplemented!()
    }
    pub fn cancel(&self, _id: u64, _reason: Option<&[u8]>) {
        unimplemented!()
    }
    pub async fn close(&self) {
        unimplemented!()
    }
}

pub struct Supervisor;

impl Supervisor {
    pub async fn open(&self, _opening: super::Opening) -> Result<StdioLink, Fault> {
        unimplemented!()
    }
    pub async fn shutdown(&self, _grace: std::time::Duration) {
        unimplemented!()
    }
}
