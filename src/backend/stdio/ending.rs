//! The end of a process that is over: asked, told, forced.

use super::{
    process::{Process, Readers},
    spawn::{Control, News},
};
use std::time::Duration;
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

/// How long killing may take before the keeper itself is taken for stuck.
const STUCK: Duration = Duration::from_secs(2);

/// Brings a process to its end that is over, however stubborn it is; nothing of it is left then.
pub(super) async fn bury(
    process: &Process,
    mut control: Control,
    mut keeper: Child,
    readers: Readers,
    kill_now: &CancellationToken,
) {
    let ending = &process.settings.ending;
    let gone = async |control: &mut Control| loop {
        match control.next().await {
            News::Gone => return,
            News::Runs(pid) => process.runs_as(pid),
            News::Ended(_) | News::Failed(_) => {}
        }
    };
    let within = async |control: &mut Control, limit: Duration| {
        tokio::select! {
            () = gone(control) => true,
            () = tokio::time::sleep(limit) => false,
            () = kill_now.cancelled() => false,
        }
    };
    let mut over = within(&mut control, ending.quiet).await;
    if !over {
        control.terminate().await;
        over = within(&mut control, ending.grace).await;
    }
    if !over {
        control.kill().await;
        over = tokio::time::timeout(STUCK, gone(&mut control))
            .await
            .is_ok();
    }
    if !over {
        tracing::warn!(server = %process.server, pid = process.pid(), "keeper does not end");
        let _ = keeper.start_kill();
    }
    if !control.saw_end {
        kill_group(process.pid());
    }
    let _ = keeper.wait().await;
    for reader in [readers.stdout, readers.stderr, readers.writer] {
        reader.abort();
    }
}

fn kill_group(pid: i32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}
