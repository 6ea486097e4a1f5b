//! The calls of a link that have no answer yet.

use std::{collections::HashMap, sync::Mutex};
use tokio::sync::oneshot;

/// Calls by id, each with what makes it give up.
#[derive(Default)]
pub(super) struct Running {
    calls: Mutex<HashMap<u64, oneshot::Sender<()>>>,
}

impl Running {
    pub fn begin(&self, id: u64) -> oneshot::Receiver<()> {
        let (give_up, given_up) = oneshot::channel();
        let mut calls = self.calls.lock().expect("no holder of this lock panics");
        calls.insert(id, give_up);
        given_up
    }

    /// Takes a call off the list; `false` if it was not on it any more.
    pub fn end(&self, id: u64) -> bool {
        let mut calls = self.calls.lock().expect("no holder of this lock panics");
        calls.remove(&id).is_some()
    }

    /// Makes a call give up; `false` if there is none of this id.
    pub fn give_up(&self, id: u64) -> bool {
        let mut calls = self.calls.lock().expect("no holder of this lock panics");
        let call = calls.remove(&id);
        drop(calls);
        call.is_some_and(|call| call.send(()).is_ok())
    }
}
