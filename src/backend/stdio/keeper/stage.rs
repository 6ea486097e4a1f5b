//! The last step before a server: limits, the parent-death signal, then `exec`.
//!
//! It is a process of its own because all of this must happen in the one that
//! becomes the server. Descriptor 0 is a socket from the keeper, over which the
//! server's standard input comes and a failure goes back; it closes by itself when
//! the server has taken its place.

use super::{SMALL_HEAP, passing};
use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::{net::UnixStream, process::CommandExt},
    process::Command,
};

/// What the command line of `__exec` says, after the keeper's process id.
struct Order {
    keeper: u32,
    memory: u64,
    directory: OsString,
    command: OsString,
    args: Vec<OsString>,
}

impl Order {
    fn read(args: Vec<OsString>) -> Option<Self> {
        let mut args = args.into_iter();
        Some(Self {
            keeper: args.next()?.to_str()?.parse().ok()?,
            memory: args.next()?.to_str()?.parse().ok()?,
            directory: args.next()?,
            command: args.next()?,
            args: args.collect(),
        })
    }
}

/// Becomes the server; returns only if that failed.
pub(super) fn run(args: Vec<OsString>) -> io::Result<()> {
    let socket = rustix::stdio::stdin();
    // Close-on-exec: the keeper sees the end of the file once the server runs.
    let mut report = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(socket, 3)?);
    let error = match Order::read(args) {
        Some(order) => become_server(order, &report),
        None => io::Error::other("this command is for the gateway itself"),
    };
    report.write_all(error.to_string().as_bytes())?;
    Err(error)
}

fn become_server(order: Order, socket: &UnixStream) -> io::Error {
    let stdin = match passing::receive(socket) {
        Ok(stdin) => stdin,
        Err(error) => return error,
    };
    if let Err(error) = die_with(order.keeper) {
        return error;
    }
    if !order.directory.is_empty()
        && let Err(error) = std::env::set_current_dir(&order.directory)
    {
        let directory = order.directory.display();
        return io::Error::other(format!("cannot enter {directory}: {error}"));
    }
    if order.memory > 0
        && let Err(error) = limit_memory(order.memory)
    {
        return io::Error::other(format!("cannot limit its memory: {error}"));
    }
    let mut command = Command::new(&order.command);
    if std::env::var_os(SMALL_HEAP.0).is_some_and(|value| value == SMALL_HEAP.1) {
        command.env_remove(SMALL_HEAP.0);
    }
    let error = command.args(&order.args).stdin(stdin).exec();
    io::Error::other(format!("cannot run {}: {error}", order.command.display()))
}

/// The keeper kills what it keeps when it ends; this is for the case that it is killed itself.
#[cfg(target_os = "linux")]
fn die_with(keeper: u32) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before the signal was set.
    let parent = getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if parent != Some(keeper) {
        return Err(io::Error::other("the keeper is gone"));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn die_with(_keeper: u32) -> io::Result<()> {
    Ok(())
}

/// Bounds the private writable memory of each process. Not the address space
/// (`RLIMIT_AS`): engines such as V8 reserve gigabytes of it that they never touch,
/// and do not start without.
fn limit_memory(bytes: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    setrlimit(Resource::Data, limit)?;
    Ok(())
}
