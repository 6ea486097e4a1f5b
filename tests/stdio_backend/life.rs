//! A process's life and death, and that nothing of it is left (field reports K15, K16).

use crate::support::*;
use drawbridge::{
    backend::{
        Fault,
        stdio::{Health, Isolation},
    },
    mcp::Revision,
};
use serde_json::json;
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

#[tokio::test]
async fn a_server_is_started_called_and_ended() {
    let bench = bench(settings(&[]));
    assert_eq!(bench.supervisor.health(), Health::Resting);
    let (link, mut ears) = bench.open().await;
    assert_eq!(bench.supervisor.health(), Health::Up(1));
    assert_eq!(link.profile().revision, Revision::NEWEST_LEGACY);
    let text = tool(&link, "echo", json!({"n": 12345678901234567890u64})).await;
    assert_eq!(text.unwrap(), r#"{"n":12345678901234567890}"#);
    let pid = pid_of(&link).await;
    assert_eq!(link.pid(), pid);
    link.close().await;
    gone(pid).await;
    assert!(!link.is_alive());
    ears.nothing();
    let fault = tool(&link, "pid", json!({})).await.unwrap_err();
    assert!(!fault.may_have_run(), "{fault:?}");
    bench.end().await;
}

#[tokio::test]
async fn a_dropped_link_ends_its_process() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    let pid = pid_of(&link).await;
    drop(link);
    gone(pid).await;
    bench.end().await;
}

#[tokio::test]
async fn what_a_server_starts_ends_with_it() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    let mut pids = vec![pid_of(&link).await];
    for detach in [false, true] {
        let pid = tool(&link, "spawn", json!({"detach": detach}))
            .await
            .unwrap();
        pids.push(pid.parse().unwrap());
    }
    assert!(pids.iter().all(|pid| runs(*pid)));
    link.close().await;
    for pid in pids {
        gone(pid).await;
    }
    bench.end().await;
}

#[tokio::test]
async fn a_crash_fails_its_calls_at_once_whoever_holds_its_output() {
    let bench = bench(settings(&[]));
    let (link, mut ears) = bench.open().await;
    let child = tool(&link, "spawn", json!({}))
        .await
        .unwrap()
        .parse()
        .unwrap();
    let orphan = tool(&link, "spawn", json!({"detach": true})).await.unwrap();
    let hanging = tool(&link, "hang", json!({}));
    let crashing = tool(&link, "crash", json!({}));
    let begun = Instant::now();
    let (a, b) = tokio::join!(hanging, crashing);
    assert!(begun.elapsed() < Duration::from_secs(1));
    for fault in [a.unwrap_err(), b.unwrap_err()] {
        assert!(
            matches!(&fault, Fault::Crashed { reason } if reason.contains("status 3")),
            "{fault:?}"
        );
    }
    assert!(matches!(ears.end().await, Fault::Crashed { .. }));
    assert_eq!(bench.supervisor.health(), Health::Down);
    gone(child).await;
    gone(orphan.parse().unwrap()).await;
    bench.end().await;
}

#[tokio::test]
async fn a_killed_server_is_started_again_at_the_next_opening() {
    let journal = Journal::new();
    let bench = bench(settings(&[&journal.option()]));
    let (link, mut ears) = bench.open().await;
    let pid = pid_of(&link).await;
    let call = tokio::spawn(async move { tool(&link, "hang", json!({})).await });
    journal.has("\"hang\"").await;
    kill(pid);
    let fault = within(Duration::from_secs(2), call)
        .await
        .unwrap()
        .unwrap_err();
    assert!(
        matches!(&fault, Fault::Crashed { reason } if reason.contains("signal 9")),
        "{fault:?}"
    );
    ears.end().await;
    let (link, _ears) = within(Duration::from_secs(2), bench.open()).await;
    assert_ne!(pid_of(&link).await, pid);
    assert_eq!(bench.metrics.restarts.get(), 1);
    assert_eq!(bench.supervisor.health(), Health::Up(1));
    bench.end().await;
}

#[tokio::test]
async fn an_answer_written_just_before_the_exit_counts() {
    let bench = bench(settings(&[]));
    for _ in 0..5 {
        let (link, mut ears) = bench.open().await;
        assert_eq!(tool(&link, "exit", json!({})).await.unwrap(), "bye");
        assert!(matches!(ears.end().await, Fault::Crashed { .. }));
    }
    bench.end().await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_over() {
    let bench = bench(settings(&["--ignore-eof"]));
    let (link, mut ears) = bench.open().await;
    let pid = pid_of(&link).await;
    let fault = tool(&link, "close-output", json!({})).await.unwrap_err();
    assert!(matches!(fault, Fault::Crashed { .. }));
    ears.end().await;
    gone(pid).await;
    bench.end().await;
}

#[tokio::test]
async fn a_stubborn_server_is_killed() {
    let mut settings = settings(&["--ignore-eof", "--ignore-term"]);
    settings.ending.quiet = Duration::from_millis(100);
    settings.ending.grace = Duration::from_millis(100);
    let bench = bench(settings);
    let (link, _ears) = bench.open().await;
    let pid = pid_of(&link).await;
    link.close().await;
    gone(pid).await;
    bench.end().await;
}

#[tokio::test]
async fn a_shutdown_does_not_wait_longer_than_its_grace() {
    let bench = bench(settings(&["--ignore-eof", "--ignore-term"]));
    let (link, mut ears) = bench.open().await;
    let pid = pid_of(&link).await;
    let call = tokio::spawn(async move { tool(&link, "hang", json!({})).await });
    // Its own ending would take three seconds.
    let shutdown = bench.supervisor.shutdown(Duration::from_millis(200));
    within(Duration::from_millis(1500), shutdown).await;
    assert!(!runs(pid));
    assert!(matches!(call.await.unwrap(), Err(Fault::Stopped(_))));
    assert!(matches!(ears.end().await, Fault::Stopped(_)));
    assert!(matches!(bench.refusal().await, Fault::Unreachable { .. }));
    bench.end().await;
}

#[tokio::test]
async fn a_killed_keeper_takes_its_server_with_it() {
    let bench = bench(settings(&["--ignore-eof", "--ignore-term"]));
    let (link, mut ears) = bench.open().await;
    let pid = pid_of(&link).await;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    kill(
        rest.split_ascii_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap(),
    );
    assert!(matches!(ears.end().await, Fault::Crashed { .. }));
    gone(pid).await;
    bench.end().await;
}

#[tokio::test]
async fn a_process_for_each_request_leaves_none_behind() {
    let mut settings = settings(&[]);
    settings.isolation = Isolation::Request;
    settings.limits.per_principal = 4;
    let bench = bench(settings);
    let mut pids = std::collections::HashSet::new();
    for _ in 0..25 {
        let (link, _ears) = bench.open().await;
        pids.insert(pid_of(&link).await);
        link.close().await;
    }
    assert_eq!(pids.len(), 25);
    bench.end().await;
    assert!(!pids.into_iter().any(runs));
}

/// Not a test: what [`nothing_outlives_a_gateway_that_is_killed`] runs as its gateway.
#[tokio::test]
#[ignore = "run by another test"]
async fn gateway() {
    let bench = bench(settings(&["--ignore-eof", "--ignore-term"]));
    let (link, _ears) = bench.open().await;
    println!("\npid {}", pid_of(&link).await);
    for detach in [false, true] {
        let pid = tool(&link, "spawn", json!({"detach": detach}))
            .await
            .unwrap();
        println!("pid {pid}");
    }
    println!("ready");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_outlives_a_gateway_that_is_killed() {
    let mut gateway = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "life::gateway", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let lines = lines.map(Result::unwrap).take_while(|line| line != "ready");
    let pids: Vec<i32> = lines
        .filter_map(|line| line.strip_prefix("pid ")?.parse().ok())
        .collect();
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|pid| runs(*pid)));
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    for pid in pids {
        gone(pid).await;
    }
}
