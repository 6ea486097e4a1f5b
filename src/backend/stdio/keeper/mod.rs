//! The small process between the gateway and a server: nothing a server starts outlives it.
//!
//! The gateway runs its own binary again as `drawbridge __child`; that process, the
//! *keeper*, starts the server as its child and then waits. It is there because a
//! parent-death signal reaches only a direct child: the keeper adopts whatever the
//! server leaves behind (it is a subreaper), and it learns of the gateway's death,
//! however that came about, by the end of a socket. Between keeper and server runs a
//! third, short-lived step (`drawbridge __exec`, see [`stage`]), which sets limits
//! and becomes the server.
//!
//! Descriptors of the keeper: 0 is the control socket; 1 and 2 are the server's
//! output, let go once the server runs. The server's own standard input comes over
//! the socket, so that no descriptor is ever inheritable by accident.
//!
//! Control socket, gateway to keeper: `T` terminate, `K` kill, end of file: the
//! gateway is gone. Keeper to gateway, a line each: `P pid`, `E reason` (it could not
//! be started), `X code` or `S signal` (it ended); end of file: nothing is left.

mod family;
mod passing;
mod stage;

pub(super) use passing::pass;

use family::Family;
use rustix::process::Pid;
use std::{
    ffi::{OsStr, OsString},
    io::{Read, Write},
    os::unix::{ffi::OsStrExt, net::UnixStream, process::CommandExt},
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::Duration,
};

/// The first argument that makes this program a keeper.
pub(super) const CHILD: &str = "__child";
/// The first argument that makes it the step between a keeper and a server.
const EXEC: &str = "__exec";
/// How long what is left may take to end after SIGTERM once the server or the gateway is gone.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Keeps the allocator of a keeper from taking a whole huge page or two, which would be most of
/// its memory. Spelt as nobody else does, so that the server is not given it by mistake.
pub(super) const SMALL_HEAP: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "Off");

/// Becomes a keeper, or the step behind it, if the command line asks for that, and
/// then never returns. To be called before anything else: no thread may run yet.
pub fn child_main_if_asked() {
    let mut args = std::env::args_os().skip(1);
    let done = match args.next().as_deref().map(OsStr::as_bytes) {
        Some(b"__child") => keep(&args.collect::<Vec<_>>()),
        Some(b"__exec") => stage::run(args.collect()),
        _ => return,
    };
    std::process::exit(match done {
        Ok(()) => 0,
        Err(_) => 127,
    })
}

/// This very program, even if its file was replaced since it was started.
pub(super) fn own_program() -> PathBuf {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() {
        return link;
    }
    std::env::current_exe().unwrap_or(link)
}

fn keep(args: &[OsString]) -> std::io::Result<()> {
    let control = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    prepare();
    let leader = match start(args, &control) {
        Ok(leader) => leader,
        Err(error) => {
            say(&control, &format!("E {error}\n"));
            return Err(error);
        }
    };
    say(&control, &format!("P {}\n", leader.as_raw_nonzero()));
    let family = Arc::new(Family::new(leader));
    let reaper = (family.clone(), control.try_clone()?);
    std::thread::Builder::new()
        .stack_size(128 * 1024)
        .spawn(move || reap(&reaper.0, &reaper.1))?;
    obey(&family, &control)
}

#[cfg(target_os = "linux")]
fn prepare() {
    // Another name than the gateway's: who kills that by name should not hit its keepers.
    let _ = rustix::thread::set_name(c"mcp-keeper");
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
fn prepare() {}

/// Starts the server and waits until it runs or is known not to.
fn start(args: &[OsString], control: &UnixStream) -> std::io::Result<Pid> {
    let stdin = passing::receive(control)?;
    let (ours, theirs) = UnixStream::pair()?;
    let child = Command::new(own_program())
        .arg(EXEC)
        .arg(std::process::id().to_string())
        .args(args)
        .stdin(std::os::fd::OwnedFd::from(theirs))
        .process_group(0)
        .spawn()?;
    pass(&ours, &stdin)?;
    drop(stdin);
    release_output(control)?;
    let mut failure = String::new();
    (&ours).read_to_string(&mut failure)?;
    if !failure.is_empty() {
        return Err(std::io::Error::other(failure));
    }
    Ok(Pid::from_child(&child))
}

/// The output belongs to the server alone: its end must be seen when the server ends it.
fn release_output(control: &UnixStream) -> std::io::Result<()> {
    match std::fs::File::options().write(true).open("/dev/null") {
        Ok(null) => {
            rustix::stdio::dup2_stdout(&null)?;
            rustix::stdio::dup2_stderr(&null)?;
        }
        Err(_) => {
            rustix::stdio::dup2_stdout(control)?;
            rustix::stdio::dup2_stderr(control)?;
        }
    }
    Ok(())
}

/// Does what the gateway says, until it says nothing any more.
fn obey(family: &Family, mut control: &UnixStream) -> ! {
    loop {
        let mut order = [0];
        match control.read(&mut order) {
            Ok(1) if order == *b"T" => family.terminate(),
            Ok(1) if order == *b"K" => family.kill_until_none_is_left(),
            Ok(1) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => family.end(LAST_WORDS),
        }
    }
}

/// Reaps children, adopted ones too; the end of the server is the end of all of them.
fn reap(family: &Arc<Family>, control: &UnixStream) {
    while let Some(ended) = family.wait_for_one() {
        let Some(status) = ended.of_leader else {
            continue;
        };
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => say(control, &format!("X {code}\n")),
            (_, Some(signal)) => say(control, &format!("S {signal}\n")),
            _ => {}
        }
        let rest = family.clone();
        let ender = std::thread::Builder::new().stack_size(128 * 1024);
        if ender.spawn(move || rest.end(LAST_WORDS)).is_err() {
            family.kill();
        }
    }
    std::process::exit(0)
}

/// The gateway may be gone: then nobody listens, and nothing depends on it.
fn say(mut control: &UnixStream, line: &str) {
    let _ = control.write_all(line.as_bytes());
}
