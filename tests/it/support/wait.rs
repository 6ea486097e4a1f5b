//! Waiting for what no message announces: counts that go back, processes that end.

use super::client::PATIENCE;
use std::time::Duration;

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until `holds`; fails with `what` if it never does.
pub async fn until<F: FnMut() -> bool>(what: &str, mut holds: F) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        panic!("never came true: {what}");
    }
}

/// Whether a process lives. One that ended and is not reaped yet does not.
pub fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.is_empty() && !state.starts_with('Z') && !state.starts_with('X')
}

/// Connections to `port` of 127.0.0.1 whose other end has closed while this one has not (CLOSE_WAIT).
pub fn half_closed(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    let local = format!("0100007F:{port:04X}");
    let row = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next() == Some(&local) && fields.nth(1) == Some("08")
    };
    table.lines().filter(row).count()
}
