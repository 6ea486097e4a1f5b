//! Starts: what a server is given, slow ones, failing ones (K15, K21, K22).

use crate::support::*;
use drawbridge::backend::{Fault, stdio::Health};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_server_gets_the_named_environment_and_nothing_else() {
    let mut settings = settings(&[]);
    settings.env = vec![("OWN".into(), "1".into()), ("LANG".into(), "xx".into())];
    settings.inherit_env = vec!["CARGO_PKG_NAME".into()];
    let bench = bench(settings);
    let (link, _ears) = bench.open().await;
    let text = tool(&link, "env", json!({})).await.unwrap();
    let env: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&env["OWN"], &env["LANG"]), (&json!("1"), &json!("xx")));
    assert_eq!(env["PATH"].as_str(), std::env::var("PATH").ok().as_deref());
    assert!(!text.contains("MIMALLOC"));
    // Cargo sets many variables for a test; they stand for what is secret.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let cargo: Vec<_> = env
        .as_object()
        .unwrap()
        .keys()
        .filter(|k| k.starts_with("CARGO"))
        .collect();
    assert_eq!(cargo, ["CARGO_PKG_NAME"]);
    bench.end().await;
}

#[tokio::test]
async fn a_command_that_is_not_there_says_so() {
    let mut settings = settings(&[]);
    settings.command = "no-such-command".into();
    let bench1 = bench(settings.clone());
    let fault = bench1.refusal().await;
    assert!(!fault.may_have_run());
    assert!(
        fault.to_string().contains("cannot run no-such-command"),
        "{fault}"
    );
    assert_eq!(bench1.supervisor.health(), Health::Down);
    bench1.end().await;
    settings.cwd = Some("/no/such/place".into());
    let bench2 = bench(settings);
    let fault = bench2.refusal().await;
    assert!(fault.to_string().contains("/no/such/place"), "{fault}");
    bench2.end().await;
}

#[tokio::test]
async fn a_server_has_no_more_memory_than_it_is_given() {
    let mut settings = settings(&[]);
    settings.limits.memory = Some(64 << 20);
    let bench = bench(settings);
    let (link, _ears) = bench.open().await;
    assert!(tool(&link, "big", json!({"bytes": 1 << 20})).await.is_ok());
    let fault = tool(&link, "big", json!({"bytes": 500 << 20}))
        .await
        .unwrap_err();
    assert!(matches!(fault, Fault::Crashed { .. }), "{fault:?}");
    bench.end().await;
}

#[tokio::test]
async fn a_server_that_exits_at_once_is_started_few_times() {
    let journal = Journal::new();
    let mut settings = settings(&["--exit-at-start=7", &journal.option()]);
    settings.start.restarts = 2;
    settings.start.backoff = (Duration::from_millis(50), Duration::from_secs(60));
    let bench = bench(settings);
    let fault = bench.refusal().await;
    assert!(fault.to_string().contains("status 7"), "{fault}");
    assert!(
        fault.to_string().contains("sb: exits at once"),
        "its last words: {fault}"
    );
    assert_eq!(journal.count("start"), 1);
    let mut opening = opening("alice").0;
    opening.era = drawbridge::mcp::Era::Modern;
    assert!(bench.supervisor.open(opening).await.is_err());
    assert_eq!(journal.count("start"), 3, "once more, as legacy");
    bench.refusal().await;
    assert!(matches!(bench.supervisor.health(), Health::Failing(_)));
    for _ in 0..10 {
        let begun = Instant::now();
        let fault = bench.refusal().await;
        assert!(fault.to_string().contains("crash loop"), "{fault}");
        assert!(begun.elapsed() < Duration::from_millis(50));
    }
    assert_eq!(journal.count("start"), 4);
    assert_eq!(bench.metrics.up.get(), 0);
    bench.end().await;
}

#[tokio::test]
async fn many_openings_of_a_failing_server_start_it_one_at_a_time() {
    let journal = Journal::new();
    let mut settings = settings(&["--exit-at-start=7", &journal.option()]);
    settings.start.restarts = 3;
    settings.start.backoff = (Duration::from_millis(20), Duration::from_secs(60));
    let bench = bench(settings);
    bench.refusal().await;
    let many = futures_util::future::join_all((0..50).map(|_| bench.refusal()));
    within(Duration::from_secs(5), many).await;
    assert_eq!(journal.count("start"), 4);
    bench.end().await;
}

#[tokio::test]
async fn a_server_that_recovers_is_used_again() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("ready");
    let mut settings = settings(&[&format!("--exit-unless={}", file.display())]);
    settings.start.restarts = 1;
    settings.start.backoff = (Duration::from_millis(50), Duration::from_millis(100));
    let bench = bench(settings);
    while bench.supervisor.health() != Health::Down {
        bench.refusal().await;
    }
    bench.refusal().await;
    std::fs::write(&file, "").unwrap();
    let begun = Instant::now();
    let link = loop {
        assert!(begun.elapsed() < Duration::from_secs(5));
        match bench.supervisor.open(opening("alice").0).await {
            Ok(link) => break link,
            Err(fault) => assert!(fault.to_string().contains("crash loop"), "{fault}"),
        }
        if let Health::Failing(wait) = bench.supervisor.health() {
            tokio::time::sleep(wait).await;
        }
    };
    assert!(tool(&link, "pid", json!({})).await.is_ok());
    assert_eq!(bench.supervisor.health(), Health::Up(1));
    assert!(bench.metrics.restarts.get() >= 2);
    bench.end().await;
}

#[tokio::test]
async fn a_start_longer_than_the_limit_goes_on_until_it_is_done() {
    let (journal, home) = (Journal::new(), tempfile::tempdir().unwrap());
    let install = format!("--install={},900", home.path().join("done").display());
    let mut settings = settings(&[&install, &journal.option()]);
    settings.start.timeout = Duration::from_millis(300);
    let bench = bench(settings);
    assert!(matches!(bench.refusal().await, Fault::TimedOut(_)));
    assert_eq!(bench.supervisor.health(), Health::Starting);
    let begun = Instant::now();
    let link = loop {
        assert!(begun.elapsed() < Duration::from_secs(5));
        match bench.supervisor.open(opening("alice").0).await {
            Ok(link) => break link,
            Err(fault) => assert!(matches!(fault, Fault::TimedOut(_)), "{fault}"),
        }
    };
    assert!(tool(&link, "pid", json!({})).await.is_ok());
    assert_eq!(journal.count("start"), 1);
    bench.end().await;
}

#[tokio::test]
async fn only_one_start_goes_on_without_anybody_waiting() {
    let journal = Journal::new();
    let mut settings = settings(&["--start-delay=60000", &journal.option()]);
    settings.start.timeout = Duration::from_millis(200);
    let bench = bench(settings);
    let openings = (0..4).map(|n| {
        let opening = opening(&format!("caller {n}")).0;
        bench.supervisor.open(opening)
    });
    let faults = futures_util::future::join_all(openings).await;
    assert!(faults.iter().all(|f| matches!(f, Err(Fault::TimedOut(_)))));
    assert_eq!(journal.count("start"), 4);
    let begun = Instant::now();
    while bench.metrics.processes.get() > 1 {
        assert!(begun.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(bench.supervisor.health(), Health::Starting);
    bench.end().await;
}

#[tokio::test]
async fn another_caller_does_not_take_over_a_start() {
    let journal = Journal::new();
    let mut settings = settings(&["--init-delay=500", &journal.option()]);
    settings.start.timeout = Duration::from_millis(300);
    let bench = bench(settings);
    assert!(matches!(bench.refusal().await, Fault::TimedOut(_)));
    let (other, _) = opening("bob");
    assert!(matches!(
        bench.supervisor.open(other).await,
        Err(Fault::TimedOut(_))
    ));
    assert_eq!(journal.count("start"), 2);
    let (link, _ears) = bench.open().await;
    assert_eq!(journal.count("start"), 2);
    assert!(tool(&link, "pid", json!({})).await.is_ok());
    bench.end().await;
}
