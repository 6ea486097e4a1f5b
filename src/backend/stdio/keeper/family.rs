//! A server and everything it started, as its keeper sees them.

use rustix::process::{
    Pid, Signal, WaitIdOptions, WaitIdStatus, WaitOptions, WaitStatus, kill_process,
    kill_process_group,
};
use std::{
    sync::{Mutex, MutexGuard},
    time::Duration,
};

pub(super) struct Family {
    leader: Pid,
    /// Held while process ids are looked up and used, and while children are reaped: an
    /// id is free for others only after that, so that a signal never hits a stranger.
    leader_reaped: Mutex<bool>,
}

/// A child that was reaped.
pub(super) struct Ended {
    /// Its status, if it was the server itself.
    pub(super) of_leader: Option<WaitStatus>,
}

impl Family {
    /// `leader` is a child of this process and the leader of its process group.
    pub(super) fn new(leader: Pid) -> Self {
        Self {
            leader,
            leader_reaped: Mutex::new(false),
        }
    }

    /// Waits for a child to end and reaps it; `None` when there are no children left.
    pub(super) fn wait_for_one(&self) -> Option<Ended> {
        loop {
            match wait_without_reaping() {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
                Ok(_) => {}
            }
            let mut leader_reaped = self.lock();
            if let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
                let is_leader = pid == self.leader;
                *leader_reaped |= is_leader;
                return Some(Ended {
                    of_leader: is_leader.then_some(status),
                });
            }
        }
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Terminates all, and kills what is left after `grace`. The process ends when the last of them is reaped.
    #[expect(
        clippy::disallowed_methods,
        reason = "a keeper has threads only, nothing asynchronous"
    )]
    pub(super) fn end(&self, grace: Duration) -> ! {
        self.terminate();
        std::thread::sleep(grace);
        self.kill_until_none_is_left()
    }

    /// Each round the children of those killed in the last one have become ours.
    #[expect(
        clippy::disallowed_methods,
        reason = "a keeper has threads only, nothing asynchronous"
    )]
    pub(super) fn kill_until_none_is_left(&self) -> ! {
        loop {
            self.kill();
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, signal: Signal) {
        let leader_reaped = self.lock();
        if !*leader_reaped {
            let _ = kill_process_group(self.leader, signal);
        }
        for child in children() {
            let group = rustix::process::getpgid(Some(child));
            // The group's id is in use as long as a member is unreaped.
            let _ = match group == Ok(self.leader) {
                true => kill_process_group(self.leader, signal),
                false => kill_process(child, signal),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.leader_reaped
            .lock()
            .expect("no holder of this lock panics")
    }
}

fn wait_without_reaping() -> rustix::io::Result<Option<WaitIdStatus>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::All, options)
}

/// The children of this process, adopted ones included. Empty where there is no `/proc`.
fn children() -> Vec<Pid> {
    let own = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pid = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let ids = entries.filter_map(Result::ok).filter_map(pid);
    ids.filter(|pid| parent_of(*pid) == Some(own))
        .filter_map(Pid::from_raw)
        .collect()
}

fn parent_of(pid: i32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; what follows the last one is plain.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}
