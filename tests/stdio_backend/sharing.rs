//! Whose is what a server says, when several links use its process.

use crate::support::*;
use drawbridge::backend::{Fault, stdio::Isolation};
use serde_json::json;

fn isolated(isolation: Isolation) -> Bench {
    let mut settings = settings(&[]);
    settings.isolation = isolation;
    bench(settings)
}

#[tokio::test]
async fn sessions_and_principals_share_as_the_operator_says() {
    for (isolation, own, others) in [
        (Isolation::Session, false, false),
        (Isolation::Principal, true, false),
        (Isolation::Shared, true, true),
    ] {
        let bench = isolated(isolation);
        // At once: the start is one for all that share.
        let (a, b, c) = tokio::join!(bench.open(), bench.open(), bench.open_as("bob"));
        let pids = [pid_of(&a.0).await, pid_of(&b.0).await, pid_of(&c.0).await];
        assert_eq!(pids[0] == pids[1], own, "{isolation:?}");
        assert_eq!(pids[0] == pids[2], others, "{isolation:?}");
        assert_eq!(bench.metrics.sessions.get(), bench.metrics.processes.get());
        bench.end().await;
    }
}

#[tokio::test]
async fn a_shared_process_lives_on_when_a_link_leaves() {
    let bench = isolated(Isolation::Shared);
    let (a, mut a_ears) = bench.open().await;
    let (b, mut b_ears) = bench.open_as("bob").await;
    let pid = pid_of(&a).await;
    a.close().await;
    assert_eq!(pid_of(&b).await, pid);
    kill(pid);
    assert!(matches!(b_ears.end().await, Fault::Crashed { .. }));
    a_ears.nothing();
    let (a, _ears) = bench.open().await;
    assert_ne!(pid_of(&a).await, pid);
    bench.end().await;
}

#[tokio::test]
async fn on_a_shared_process_nobody_is_asked_and_nothing_is_declared() {
    let bench = isolated(Isolation::Shared);
    let (link, mut ears) = bench.open().await;
    let declared = tool(&link, "declared", json!({})).await.unwrap();
    assert!(declared.contains(r#""capabilities":{}"#), "{declared}");
    let question = json!({"method": "sampling/createMessage", "params": {}});
    let text = tool(&link, "ask", question).await.unwrap();
    assert!(text.contains("-32601"), "{text}");
    let log = json!({"method": "notifications/message", "params": {"data": "secret"}});
    tool(&link, "notify", log).await.unwrap();
    assert_eq!(bench.metrics.dropped.get(), 1);
    ears.nothing();
    bench.end().await;
}

#[tokio::test]
async fn list_changes_reach_all_and_progress_its_own_call() {
    let bench = isolated(Isolation::Shared);
    let (a, mut a_ears) = bench.open().await;
    let (_b, mut b_ears) = bench.open_as("bob").await;
    let change = json!({"method": "notifications/tools/list_changed", "params": {}});
    tool(&a, "notify", change).await.unwrap();
    for ears in [&mut a_ears, &mut b_ears] {
        let (message, call) = ears.message().await;
        assert_eq!(message.method_name(), "notifications/tools/list_changed");
        assert_eq!(call, None);
    }
    let call = request(&a, "progress", &json!({"count": 1}));
    let id = call.id;
    a.call(call).await.unwrap();
    assert_eq!(a_ears.message().await.1, Some(id));
    b_ears.nothing();
    bench.end().await;
}

#[tokio::test]
async fn a_principals_process_asks_whom_it_works_for_if_that_is_certain() {
    let bench = isolated(Isolation::Principal);
    let (a, mut a_ears) = bench.open().await;
    let (b, mut b_ears) = bench.open().await;
    let question = || json!({"method": "elicitation/create", "params": {}});
    // The only call in flight: its link is asked.
    let asking = tool(&b, "ask", question());
    let answering = async {
        let (message, _) = b_ears.message().await;
        let id = String::from_utf8(message.id().unwrap().to_vec()).unwrap();
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#);
        b.send(answer.into()).unwrap();
    };
    let (text, ()) = tokio::join!(asking, answering);
    assert!(text.unwrap().contains("decline"));
    a_ears.nothing();
    // Two calls of two links: nobody is.
    let asking = async {
        let text = tool(&b, "ask", question()).await.unwrap();
        tool(&b, "release", json!({})).await.unwrap();
        text
    };
    let (_, text) = tokio::join!(tool(&a, "hold", json!({})), asking);
    assert!(text.contains("-32601"), "{text}");
    // The other link has gone: the one that is left it is.
    drop(a);
    let log = json!({"method": "notifications/message", "params": {"data": 1}});
    tool(&b, "notify", log).await.unwrap();
    assert_eq!(
        b_ears.message().await.0.method_name(),
        "notifications/message"
    );
    a_ears.nothing();
    bench.end().await;
}
