//! One running process of a server: its calls, its links, and its end.
//!
//! Tasks of a process: one reads its output, one writes what its input did not take
//! at once, one reads its standard error, and one ([`Process::live`], then
//! [`super::ending::bury`]) follows its life until nothing of it is left.

use super::{
    Settings,
    calls::{Answer, Calls, Load, unsent},
    links::Links,
    spawn::{Control, News, Spawned},
    stderr,
    stdin::{Stdin, Unsent},
};
use crate::{
    backend::{Fault, Profile},
    mcp::{Era, Pieces, ServerId, code},
    telemetry::ServerMetrics,
};
use std::{
    future::poll_fn,
    io::Write as _,
    pin::pin,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::Duration,
};
use tokio::{process::Child, sync::Notify, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// Why a process without work is ended.
pub(super) const IDLE: &str = "idle";
/// How long news of a server's end may take after its output ended.
const NEWS: Duration = Duration::from_millis(200);

pub(super) struct Process {
    pub(super) server: ServerId,
    pub(super) settings: Arc<Settings>,
    pub(super) metrics: ServerMetrics,
    pub(super) calls: Calls,
    pub(super) links: Links,
    stdin: Stdin,
    pid: AtomicI32,
    born: Instant,
    /// What it said of itself, once it did.
    profile: OnceLock<(Arc<Profile>, Instant)>,
    /// Why it ends, once it does.
    fault: Mutex<Option<Fault>>,
    stopping: CancellationToken,
    /// It reads no more, though nobody closed its input.
    deaf: Notify,
    wrote: AtomicBool,
    first_output: Notify,
    last_words: Mutex<String>,
}

/// Tasks that read from a process.
pub(super) struct Readers {
    pub(super) stdout: JoinHandle<()>,
    pub(super) stderr: JoinHandle<()>,
    pub(super) writer: JoinHandle<()>,
    /// Tells the reader that what is in the pipe now is all there will be.
    pub(super) ended: CancellationToken,
}

impl Process {
    /// Takes over what was spawned; must be called within the runtime.
    pub(super) fn new(
        server: ServerId,
        settings: Arc<Settings>,
        metrics: ServerMetrics,
        spawned: Spawned,
    ) -> (Arc<Self>, Readers, Control, Child) {
        let process = Arc::new(Self {
            links: Links::new(settings.isolation),
            stdin: Stdin::new(spawned.stdin, settings.limits.unread),
            server,
            settings,
            metrics,
            calls: Calls::new(),
            pid: AtomicI32::new(0),
            born: Instant::now(),
            profile: OnceLock::new(),
            fault: Mutex::new(None),
            stopping: CancellationToken::new(),
            deaf: Notify::new(),
            wrote: AtomicBool::new(false),
            first_output: Notify::new(),
            last_words: Mutex::new(String::new()),
        });
        let ended = CancellationToken::new();
        let heard = process.clone();
        let writing = process.clone();
        let readers = Readers {
            stdout: tokio::spawn(process.clone().read(spawned.stdout, ended.clone())),
            stderr: tokio::spawn(async move {
                let server = heard.server.clone();
                stderr::drain(spawned.stderr, server, |line| heard.hear(line)).await;
            }),
            writer: tokio::spawn(async move {
                if writing.stdin.run().await.is_err() {
                    writing.deaf.notify_one();
                }
            }),
            ended,
        };
        (process, readers, spawned.control, spawned.keeper)
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.load(Ordering::Relaxed)
    }

    pub(super) fn runs_as(&self, pid: i32) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    pub(super) fn profile(&self) -> Option<&Arc<Profile>> {
        self.profile.get().map(|(profile, _)| profile)
    }

    /// Records what it said of itself: from now on it is in service, unless it is over already.
    pub(super) fn introduce(&self, profile: Profile) {
        let fault = self.fault.lock().expect("no holder of this lock panics");
        let known = (Arc::new(profile), Instant::now());
        if self.profile.set(known).is_ok() && fault.is_none() {
            self.metrics.sessions.inc();
        }
    }

    /// Whether it did what a server that works does: an end after that is no failed start.
    pub(super) fn was_useful(&self) -> bool {
        let longest = self.settings.start.backoff.1;
        let lived = |(_, since): &(Arc<Profile>, Instant)| since.elapsed() > longest;
        self.calls.has_answered() || self.profile.get().is_some_and(lived)
    }

    pub(super) fn is_over(&self) -> bool {
        self.calls.is_over()
    }

    pub(super) fn load(&self) -> Load {
        self.calls.load()
    }

    /// Waits until it has been silent for so long that a probe counts as not understood.
    pub(super) async fn silence(&self) {
        let start = &self.settings.start;
        let whole = self.born + start.silence;
        tokio::select! {
            () = tokio::time::sleep_until(whole) => {}
            () = self.first_output.notified() => {
                let short = Instant::now() + start.silence_after_output;
                tokio::time::sleep_until(short.min(whole)).await;
            }
        }
    }

    /// Sends a notification or a response.
    pub(super) fn send(&self, message: impl Into<Pieces>) -> Result<(), Fault> {
        match self.put(message.into())? {
            true => Ok(()),
            false => Err(Fault::unreachable("its input is closed")),
        }
    }

    /// `false` if it reads nothing any more: then its end is near, and the reason will be told.
    fn put(&self, message: Pieces) -> Result<bool, Fault> {
        match self.stdin.send(message) {
            Ok(()) => Ok(true),
            Err(Unsent::Full) => Err(Fault::Busy("reads too slowly: too much waits already")),
            Err(Unsent::Closed) => {
                self.deaf.notify_one();
                Ok(false)
            }
        }
    }

    /// Sends a request and waits for its answer, however long that takes. Dropping the
    /// future leaves the call, and tells the server unless the call is `silent`.
    pub(super) async fn ask(&self, link: u64, id: u64, message: Pieces, silent: bool) -> Answer {
        self.calls.enter(id, link, true)?;
        let _leaves = Leaves {
            process: self,
            id,
            silent,
        };
        let sent = self.put(message)?;
        let answer = poll_fn(|context| self.calls.poll(id, context)).await;
        unless(sent, answer)
    }

    /// Sends a request and waits for its answer within the limits for calls.
    pub(super) async fn call(&self, link: u64, id: u64, message: Pieces) -> Answer {
        self.calls.enter(id, link, false)?;
        let _leaves = Leaves {
            process: self,
            id,
            silent: false,
        };
        let sent = self.put(message)?;
        let begun = Instant::now();
        let limits = &self.settings.timeouts;
        let mut answer = poll_fn(|context| self.calls.poll(id, context));
        let mut patience = pin!(tokio::time::sleep_until(begun + limits.call));
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return unless(sent, answer),
                () = &mut patience => {}
            }
            let deadline = self.calls.deadline(id, begun, limits.call, limits.call_max);
            if deadline <= Instant::now() {
                return Err(Fault::TimedOut(begun.elapsed()));
            }
            patience.as_mut().reset(deadline);
        }
    }

    /// Tells the server that nobody waits for a call any more. `reason` is raw JSON.
    pub(super) fn send_cancelled(&self, id: u64, reason: Option<&[u8]>) {
        let mut params = Vec::with_capacity(32 + reason.map_or(0, <[u8]>::len));
        let _ = write!(params, "{{\"requestId\":{id}");
        if let Some(reason) = reason {
            params.extend_from_slice(b",\"reason\":");
            params.extend_from_slice(reason);
        }
        params.push(b'}');
        let message = code::call_message(None, "notifications/cancelled", Some(&params));
        if self.send(message).is_err() {
            tracing::debug!(server = %self.server, "cancellation not sent");
        }
    }

    /// Lets it end; `fault` is what its calls and links are told. Only the first one counts.
    pub(super) fn stop(&self, fault: Fault) {
        let mut known = self.fault.lock().expect("no holder of this lock panics");
        if known.is_some() {
            return;
        }
        *known = Some(fault.clone());
        if self.profile.get().is_some() {
            self.metrics.sessions.dec();
        }
        drop(known);
        self.calls.end(&fault);
        self.links.end(&fault);
        // First, so that the end which follows is known to be wanted.
        self.stopping.cancel();
        self.stdin.close();
    }

    /// Lets it end if it has nothing to do; `patient`: an open subscription is something to do.
    pub(super) fn stop_if_idle(&self, reason: &'static str, patient: bool) -> bool {
        let idle = self.calls.end_if_idle(&Fault::Stopped(reason), patient);
        if idle {
            self.stop(Fault::Stopped(reason));
        }
        idle
    }

    /// Follows it until it ends or is told to. `Err` is an end that nobody asked for.
    pub(super) async fn live(
        &self,
        control: &mut Control,
        readers: &mut Readers,
    ) -> Result<(), Fault> {
        let mut idle = pin!(tokio::time::sleep_until(
            self.born + self.settings.limits.idle
        ));
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return Ok(()),
                news = control.next() => match news {
                    News::Runs(pid) => self.runs_as(pid),
                    other => return Err(self.ended(other, readers).await),
                },
                _ = &mut readers.stdout => {
                    return Err(self.closed("it closed its output", control, readers).await);
                }
                () = self.deaf.notified() => {
                    return Err(self.closed("it closed its input", control, readers).await);
                }
                () = &mut idle => {
                    let quiet = self.load().idle_since + self.settings.limits.idle;
                    let due = quiet <= Instant::now() && self.profile.get().is_some();
                    if due && self.stop_if_idle(IDLE, true) {
                        return Ok(());
                    }
                    // Busy, or not yet in service: look again when it may have been idle for long enough.
                    let least = Instant::now() + self.settings.limits.idle / 4;
                    idle.as_mut().reset(quiet.max(least));
                }
            }
        }
    }

    /// It closed one of its streams, most likely because it ends.
    async fn closed(&self, what: &str, control: &mut Control, readers: &mut Readers) -> Fault {
        let news = async {
            loop {
                match control.next().await {
                    News::Runs(pid) => self.runs_as(pid),
                    news => return news,
                }
            }
        };
        match tokio::time::timeout(NEWS, news).await {
            Ok(news) => self.ended(news, readers).await,
            Err(_) => self.over(what.to_owned()),
        }
    }

    /// It ended by itself: what it wrote before that still counts.
    async fn ended(&self, news: News, readers: &mut Readers) -> Fault {
        let mut reason = match news {
            News::Failed(reason) => {
                let fault = Fault::unreachable(reason);
                self.stop(fault.clone());
                return fault;
            }
            News::Ended(how) => how,
            News::Gone | News::Runs(_) => "its keeper was killed".into(),
        };
        readers.ended.cancel();
        if !readers.stdout.is_finished() {
            let _ = (&mut readers.stdout).await;
        }
        if self.profile.get().is_none() {
            let _ = tokio::time::timeout(NEWS, &mut readers.stderr).await;
            let words = self
                .last_words
                .lock()
                .expect("no holder of this lock panics");
            if !words.is_empty() {
                reason = format!("{reason}, its last words: {words}");
            }
        }
        self.over(reason)
    }

    fn over(&self, reason: String) -> Fault {
        let fault = Fault::Crashed { reason };
        self.stop(fault.clone());
        fault
    }

    fn hear(&self, line: &str) {
        self.mark_output();
        // Of use only while it has not come up: the reason why it did not.
        if self.profile.get().is_none() && !line.is_empty() {
            let mut words = self
                .last_words
                .lock()
                .expect("no holder of this lock panics");
            words.clear();
            words.extend(line.chars().take(200));
        }
    }

    pub(super) fn mark_output(&self) {
        if !self.wrote.load(Ordering::Relaxed) && !self.wrote.swap(true, Ordering::Relaxed) {
            self.first_output.notify_one();
        }
    }

    pub(super) fn is_modern(&self) -> bool {
        self.profile().is_some_and(|p| p.era() == Era::Modern)
    }
}

/// Leaves a call when its future is dropped.
struct Leaves<'a> {
    process: &'a Process,
    id: u64,
    silent: bool,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if self.process.calls.leave(self.id) && !self.silent {
            self.process.send_cancelled(self.id, None);
        }
    }
}

/// Whether a call of this method stays open without end.
pub(super) fn is_standing(method: &str) -> bool {
    method == "subscriptions/listen"
}

/// An answer, or a fault that says that the call provably did not run if it was not even sent.
fn unless(sent: bool, answer: Answer) -> Answer {
    match sent {
        true => answer,
        false => answer.map_err(|fault| unsent(&fault)),
    }
}
