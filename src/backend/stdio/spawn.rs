//! Starting a process: its pipes, its environment, and the socket to its keeper.

use super::{Settings, environment, keeper};
use std::{
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixStream, unix::pipe},
    process::{Child, Command},
};

/// A process that was just started, and all that connects us with it.
pub(super) struct Spawned {
    pub(super) keeper: Child,
    pub(super) control: Control,
    pub(super) stdin: pipe::Sender,
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
}

/// Starts a server's process. It runs, or not: [`Control::next`] tells.
pub(super) fn spawn(settings: &Settings) -> io::Result<Spawned> {
    let (stdin, its_stdin) = pipe::pipe()?;
    let (its_stdout, stdout) = pipe::pipe()?;
    let (its_stderr, stderr) = pipe::pipe()?;
    widen(&stdin);
    widen(&stdout);
    let (ours, theirs) = StdUnixStream::pair()?;
    keeper::pass(&ours, &its_stdin.into_blocking_fd()?)?;
    ours.set_nonblocking(true)?;
    let mut env = environment::of_server(std::env::vars_os(), &settings.inherit_env, &settings.env);
    let (small, heap) = keeper::SMALL_HEAP;
    if !env.iter().any(|(name, _)| name == small) {
        env.push((small.into(), heap.into()));
    }
    let directory = settings.cwd.clone().map_or_else(OsString::new, Into::into);
    let program = settings.shim.clone().unwrap_or_else(keeper::own_program);
    let keeper = Command::new(program)
        .arg0("drawbridge")
        .arg(keeper::CHILD)
        .arg(settings.limits.memory.unwrap_or(0).to_string())
        .arg(directory)
        .arg(&settings.command)
        .args(&settings.args)
        .env_clear()
        .envs(env)
        .stdin(OwnedFd::from(theirs))
        .stdout(its_stdout.into_blocking_fd()?)
        .stderr(its_stderr.into_blocking_fd()?)
        .process_group(0)
        .spawn()?;
    let control = Control {
        socket: UnixStream::from_std(ours)?,
        unread: Vec::new(),
        saw_end: false,
    };
    Ok(Spawned {
        keeper,
        control,
        stdin,
        stdout,
        stderr,
    })
}

/// Our end of the socket to a keeper.
pub(super) struct Control {
    socket: UnixStream,
    unread: Vec<u8>,
    /// Whether the keeper told how the server ended: then the rest is its work, too.
    pub(super) saw_end: bool,
}

/// What a keeper tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The server runs under this process id.
    Runs(i32),
    /// It could not be started.
    Failed(String),
    /// It ended, and this is how.
    Ended(String),
    /// Nothing of it is left, nor is the keeper.
    Gone,
}

impl Control {
    /// The next news; may be dropped and asked again.
    pub(super) async fn next(&mut self) -> News {
        loop {
            if let Some(end) = self.unread.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                match read(String::from_utf8_lossy(&line).trim_end()) {
                    Some(news) => {
                        self.saw_end |= matches!(news, News::Ended(_) | News::Failed(_));
                        return news;
                    }
                    None => continue,
                }
            }
            match self.socket.read_buf(&mut self.unread).await {
                Ok(0) | Err(_) => return News::Gone,
                Ok(_) => {}
            }
        }
    }

    pub(super) async fn terminate(&mut self) {
        self.order(b"T").await;
    }

    pub(super) async fn kill(&mut self) {
        self.order(b"K").await;
    }

    /// A keeper that does not take it is gone, which is told as news.
    async fn order(&mut self, order: &[u8]) {
        let _ = self.socket.write_all(order).await;
    }
}

fn read(line: &str) -> Option<News> {
    let (kind, rest) = line.split_once(' ')?;
    Some(match kind {
        "P" => News::Runs(rest.parse().ok()?),
        "E" => News::Failed(rest.to_owned()),
        "X" => News::Ended(format!("it exited with status {rest}")),
        "S" => News::Ended(format!("it was ended by signal {rest}")),
        _ => return None,
    })
}

/// Makes room for large messages, so that each takes fewer turns of either side. Refused beyond the user's share of pipe memory; the usual size serves, too.
#[cfg(target_os = "linux")]
fn widen(pipe: impl std::os::fd::AsFd) {
    const ROOM: usize = 256 << 10;
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, ROOM);
}

#[cfg(not(target_os = "linux"))]
fn widen(_: impl std::os::fd::AsFd) {}
