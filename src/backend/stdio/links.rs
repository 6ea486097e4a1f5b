//! Who uses one process: the receivers of its links.

use super::Isolation;
use crate::backend::{Fault, Receiver};
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) struct Links {
    isolation: Isolation,
    list: Mutex<List>,
}

struct List {
    last: u64,
    open: Vec<(u64, Arc<dyn Receiver>)>,
    /// No more can come.
    over: bool,
}

impl Links {
    pub(super) fn new(isolation: Isolation) -> Self {
        Self {
            isolation,
            list: Mutex::new(List {
                last: super::calls::NO_LINK,
                open: Vec::new(),
                over: false,
            }),
        }
    }

    /// Whether the process serves one holder only, so that all it says is for that one.
    pub(super) fn is_private(&self) -> bool {
        matches!(self.isolation, Isolation::Session | Isolation::Request)
    }

    pub(super) fn is_shared(&self) -> bool {
        self.isolation == Isolation::Shared
    }

    /// The new link's number, and whether it is the first; `None` if the process is over.
    pub(super) fn attach(&self, receiver: Arc<dyn Receiver>) -> Option<(u64, bool)> {
        let mut list = self.lock();
        if list.over {
            return None;
        }
        list.last += 1;
        let number = list.last;
        list.open.push((number, receiver));
        Some((number, number == super::calls::NO_LINK + 1))
    }

    /// Takes a link away; its receiver hears nothing more.
    pub(super) fn detach(&self, number: u64) {
        self.lock().open.retain(|(own, _)| *own != number);
    }

    /// Tells all of them that it is over, once.
    pub(super) fn end(&self, fault: &Fault) {
        let mut list = self.lock();
        list.over = true;
        let open = std::mem::take(&mut list.open);
        drop(list);
        for (_, receiver) in open {
            receiver.ended(fault);
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<Arc<dyn Receiver>> {
        let list = self.lock();
        let mut open = list.open.iter();
        open.find_map(|(own, receiver)| (*own == number).then(|| receiver.clone()))
    }

    /// The only one, if there is exactly one.
    pub(super) fn only(&self) -> Option<Arc<dyn Receiver>> {
        match self.lock().open.as_slice() {
            [(_, receiver)] => Some(receiver.clone()),
            _ => None,
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn Receiver>> {
        let list = self.lock();
        list.open
            .iter()
            .map(|(_, receiver)| receiver.clone())
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().expect("no holder of this lock panics")
    }
}
