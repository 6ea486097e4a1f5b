//! Which era a server is found to speak, and at what cost.

use crate::support::*;
use drawbridge::{
    backend::{
        Call, Fault,
        stdio::{Protocol, Settings},
    },
    mcp::{Era, Revision},
};
use serde_json::json;
use std::time::{Duration, Instant};

fn quick(args: &[&str]) -> Settings {
    let mut settings = settings(args);
    settings.start.silence = Duration::from_millis(400);
    settings.start.silence_after_output = Duration::from_millis(100);
    settings
}

/// The era found for a client of either era, and how often the server was started for it.
async fn found(args: &[&str], wanted: Era) -> (Era, usize) {
    let journal = Journal::new();
    let option = journal.option();
    let args: Vec<_> = args.iter().copied().chain([option.as_str()]).collect();
    let bench = bench(quick(&args));
    let (link, _ears) = match wanted {
        Era::Legacy => bench.open().await,
        Era::Modern => bench.open_modern().await,
    };
    assert!(tool(&link, "pid", json!({})).await.is_ok());
    let found = (link.profile().era(), journal.count("start"));
    bench.end().await;
    found
}

#[tokio::test]
async fn a_client_gets_its_own_era_where_the_server_has_it() {
    use Era::{Legacy, Modern};
    assert_eq!(found(&["--era=legacy"], Legacy).await, (Legacy, 1));
    assert_eq!(found(&["--era=legacy"], Modern).await, (Legacy, 1));
    assert_eq!(found(&["--era=both"], Legacy).await, (Legacy, 1));
    assert_eq!(found(&["--era=both"], Modern).await, (Modern, 1));
    assert_eq!(found(&["--era=modern"], Modern).await, (Modern, 1));
    assert_eq!(
        found(&["--era=modern"], Legacy).await,
        (Modern, 2),
        "a fresh process"
    );
}

#[tokio::test]
async fn a_legacy_server_may_take_the_probe_in_any_way() {
    for (unknown, starts) in [
        ("error", 1),
        ("null", 1),
        ("silent", 1),
        ("flood", 1),
        ("exit", 2),
    ] {
        let option = format!("--unknown={unknown}");
        let begun = Instant::now();
        let found = found(&[&option], Era::Modern).await;
        assert_eq!(found, (Era::Legacy, starts), "{unknown}");
        if unknown == "silent" {
            assert!(begun.elapsed() >= Duration::from_millis(400));
        }
    }
}

#[tokio::test]
async fn a_server_that_has_written_something_is_waited_for_less() {
    let mut settings = quick(&["--unknown=silent", "--banner=up"]);
    settings.start.silence = Duration::from_secs(30);
    let bench = bench(settings);
    let (link, _ears) = within(Duration::from_secs(5), bench.open_modern()).await;
    assert_eq!(link.profile().era(), Era::Legacy);
    bench.end().await;
}

#[tokio::test]
async fn a_modern_answer_that_comes_late_is_still_believed() {
    let found = found(&["--era=both", "--late=700"], Era::Modern).await;
    assert_eq!(found, (Era::Modern, 2));
}

#[tokio::test]
async fn a_verdict_is_kept() {
    let journal = Journal::new();
    let bench = bench(quick(&["--unknown=exit", &journal.option()]));
    for starts in [2, 3, 4] {
        let (link, _ears) = bench.open_modern().await;
        assert_eq!(link.profile().era(), Era::Legacy);
        assert_eq!(journal.count("start"), starts);
    }
    assert_eq!(journal.count("server/discover"), 1);
    bench.end().await;
}

#[tokio::test]
async fn what_the_operator_set_is_not_questioned() {
    let journal = Journal::new();
    let mut legacy = quick(&["--era=both", &journal.option()]);
    legacy.protocol = Protocol::Exactly(Revision::V2025_03_26);
    let bench1 = bench(legacy);
    let (link, _ears) = bench1.open_modern().await;
    assert_eq!(link.profile().revision, Revision::V2025_03_26);
    assert_eq!(journal.count("server/discover"), 0);
    bench1.end().await;
    let mut modern = quick(&["--era=legacy"]);
    modern.protocol = Protocol::Fixed(Era::Modern);
    let bench2 = bench(modern);
    assert_eq!(bench2.refusal().await, Fault::WrongEra("modern"));
    bench2.end().await;
}

#[tokio::test]
async fn the_servers_own_revision_is_accepted_and_a_refusal_is_told() {
    let bench1 = bench(quick(&["--revision=2024-11-05"]));
    let (link, _ears) = bench1.open().await;
    assert_eq!(link.profile().revision, Revision::V2024_11_05);
    bench1.end().await;
    let bench2 = bench(quick(&["--refuse"]));
    let fault = bench2.refusal().await;
    assert_eq!(fault, Fault::Declined("-32000 no licence".into()));
    bench2.end().await;
}

#[tokio::test]
async fn a_subscription_is_open_without_end_and_its_messages_name_it() {
    let journal = Journal::new();
    let mut settings = quick(&["--era=modern", &journal.option()]);
    settings.timeouts.call = Duration::from_millis(100);
    settings.limits.idle = Duration::from_millis(200);
    let bench = bench(settings);
    let (link, mut ears) = bench.open_modern().await;
    let id = link.next_id();
    let message =
        json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {}});
    let listening = link.call(Call {
        id,
        message: message.to_string().into(),
        method: "subscriptions/listen",
        other_method: None,
        name: None,
        params: Vec::new(),
    });
    let hearing = async {
        let (message, call) = ears.message().await;
        assert_eq!(
            message.method_name(),
            "notifications/subscriptions/acknowledged"
        );
        assert_eq!(call, Some(id));
        // Longer than a call may take, and longer than a process may be idle.
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    tokio::select! {
        answer = listening => panic!("{answer:?}"),
        () = hearing => {}
    }
    journal.has(&format!("\"requestId\":{id}")).await;
    assert_eq!(ears.end().await, Fault::Stopped("idle"));
    bench.end().await;
}
