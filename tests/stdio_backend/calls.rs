//! Calls: at the same time, in any order, with limits, cancelled (K35, K36, K37).

use crate::support::*;
use drawbridge::{backend::Fault, mcp::Kind};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[tokio::test]
async fn calls_run_at_the_same_time_and_are_answered_in_any_order() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    let held = (0..5).map(|n| tool(&link, "hold", json!({"text": n.to_string()})));
    let held = futures_util::future::join_all(held);
    let release = async {
        let slow = tool(&link, "sleep", json!({"ms": 20_000}));
        tokio::select! {
            _ = slow => panic!("too early"),
            text = tool(&link, "release", json!({})) => text,
        }
    };
    let (held, released) = tokio::join!(held, release);
    assert_eq!(released.unwrap(), "released");
    for (n, text) in held.into_iter().enumerate() {
        assert_eq!(text.unwrap(), n.to_string());
    }
    bench.end().await;
}

#[tokio::test]
async fn a_call_over_its_limit_fails_and_the_server_is_told() {
    let journal = Journal::new();
    let mut settings = settings(&[&journal.option()]);
    settings.timeouts.call = Duration::from_millis(150);
    let bench = bench(settings);
    let (link, _ears) = bench.open().await;
    let call = request(&link, "hang", &json!({}));
    let id = call.id;
    let fault = link.call(call).await.unwrap_err();
    assert!(matches!(fault, Fault::TimedOut(_)), "{fault:?}");
    journal
        .has(&format!(
            "notifications/cancelled\",\"params\":{{\"requestId\":{id}}}"
        ))
        .await;
    assert!(tool(&link, "pid", json!({})).await.is_ok());
    bench.end().await;
}

#[tokio::test]
async fn progress_extends_a_call_up_to_the_longest_limit() {
    let mut settings = settings(&[]);
    settings.timeouts.call = Duration::from_millis(300);
    settings.timeouts.call_max = Duration::from_millis(1200);
    let bench = bench(settings);
    let (link, mut ears) = bench.open().await;
    let call = request(&link, "progress", &json!({"count": 5, "ms": 120}));
    let id = call.id;
    link.call(call).await.unwrap();
    for _ in 0..5 {
        let (message, whose) = ears.message().await;
        assert_eq!(message.method_name(), "notifications/progress");
        assert_eq!(whose, Some(id));
    }
    let begun = Instant::now();
    let endless = json!({"count": 1000, "ms": 120});
    let fault = tool(&link, "progress", endless).await.unwrap_err();
    assert!(matches!(fault, Fault::TimedOut(_)), "{fault:?}");
    assert!(begun.elapsed() >= Duration::from_millis(1200));
    bench.end().await;
}

#[tokio::test]
async fn an_abandoned_call_is_cancelled_at_the_server() {
    let journal = Journal::new();
    let bench = bench(settings(&[&journal.option()]));
    let (link, _ears) = bench.open().await;
    let call = request(&link, "hang", &json!({}));
    let id = call.id;
    let abandoned = link.call(call);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), abandoned)
            .await
            .is_err()
    );
    journal.has(&format!("\"requestId\":{id}")).await;
    bench.end().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_its_late_answer_is_dropped() {
    let journal = Journal::new();
    let bench = bench(settings(&[&journal.option()]));
    let (link, _ears) = bench.open().await;
    let call = request(&link, "hold", &json!({}));
    let id = call.id;
    let cancel = async {
        journal.has("\"hold\"").await;
        link.cancel(id + 1000, None);
        link.cancel(id, Some(br#""no need""#));
    };
    let (answer, ()) = tokio::join!(link.call(call), cancel);
    assert_eq!(answer.unwrap_err(), Fault::Cancelled);
    journal
        .has(&format!("\"requestId\":{id},\"reason\":\"no need\""))
        .await;
    assert_eq!(journal.count("notifications/cancelled"), 1);
    assert_eq!(bench.metrics.dropped.get(), 0);
    assert_eq!(tool(&link, "release", json!({})).await.unwrap(), "released");
    assert_eq!(bench.metrics.dropped.get(), 1);
    bench.end().await;
}

#[tokio::test]
async fn an_answer_without_an_id_is_for_the_only_call_that_waits() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
    let call = request(&link, "raw", &json!({"text": text}));
    let id = call.id;
    let answer = link.call(call).await.unwrap();
    assert_eq!(
        (answer.own_id(), answer.error_code()),
        (Some(id), Some(-32700))
    );
    bench.end().await;
}

#[tokio::test]
async fn an_answer_that_turned_the_id_into_a_string_is_taken() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    let mut call = request(&link, "raw", &json!({}));
    let text = format!(r#"{{"jsonrpc":"2.0","id":"{}","result":{{}}}}"#, call.id);
    let with_text = request(&link, "raw", &json!({"text": text})).message;
    let with_text = String::from_utf8(with_text.into_bytes().to_vec()).unwrap();
    let ids = [call.id + 1, call.id].map(|id| format!(r#""id":{id},"#));
    call.message = with_text.replace(&ids[0], &ids[1]).into();
    assert_eq!(link.call(call).await.unwrap().kind(), Kind::Result);
    assert_eq!(bench.metrics.noise.get(), 0);
    bench.end().await;
}

#[tokio::test]
async fn a_request_of_the_server_reaches_its_client_and_the_answer_the_server() {
    let bench = bench(settings(&["--ask-roots"]));
    let (link, mut ears) = bench.open().await;
    let (roots, whose) = ears.message().await;
    assert_eq!((roots.method_name().as_ref(), whose), ("roots/list", None));
    let asking = tool(
        &link,
        "ask",
        json!({"method": "sampling/createMessage", "params": {}}),
    );
    let answering = async {
        let (message, _) = ears.message().await;
        let id: Value = serde_json::from_slice(message.id().unwrap()).unwrap();
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"model": "m"}});
        link.send(answer.to_string().into()).unwrap();
    };
    let (text, ()) = tokio::join!(asking, answering);
    assert!(text.unwrap().contains(r#""model":"m""#));
    // `ping` is answered without anybody being asked.
    let text = tool(&link, "ask", json!({"method": "ping"})).await.unwrap();
    assert!(text.contains(r#""result":{}"#), "{text}");
    ears.nothing();
    bench.end().await;
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_refused_and_not_left_waiting() {
    let bench = bench(settings(&[]));
    let (link, mut ears) = bench.open().await;
    let question = json!({"method": "sampling/createMessage", "params": [1]});
    let text = tool(&link, "ask", question).await.unwrap();
    assert!(text.contains("-32600"), "{text}");
    ears.nothing();
    bench.end().await;
}
