//! What goes over the pipes: framing, noise, size, standard error, both directions at once (K17, K18, K19, K36).

use crate::support::*;
use drawbridge::backend::Fault;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn noise_on_stdout_is_skipped_and_counted() {
    let bench = bench(settings(&["--noisy"]));
    let (link, _ears) = bench.open().await;
    for n in 0..5 {
        let text = tool(&link, "echo", json!({"n": n})).await.unwrap();
        assert_eq!(text, format!("{{\"n\":{n}}}"));
    }
    assert!(bench.metrics.noise.get() >= 6 * 12);
    assert_eq!(bench.metrics.dropped.get(), 0);
    bench.end().await;
}

#[tokio::test]
async fn a_line_that_waits_for_its_end_is_not_glued_to_the_next() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    let noise = "no json here {\"jsonrpc\"";
    let text = tool(&link, "raw", json!({"text": noise, "chunk": 3})).await;
    assert_eq!(text.unwrap(), "written");
    assert_eq!(bench.metrics.noise.get(), 1);
    bench.end().await;
}

#[tokio::test]
async fn a_large_answer_is_the_same_in_whatever_pieces_it_comes() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    for chunk in [65_536, 5 << 20] {
        let arguments = json!({"bytes": 5 << 20, "chunk": chunk});
        let text = tool(&link, "big", arguments).await.unwrap();
        assert_eq!(text.len(), 5 << 20);
    }
    bench.end().await;
}

#[tokio::test]
async fn characters_survive_single_bytes_and_line_separators() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    let text = "\u{1f680} a\u{2028}b\u{2029}c\u{85}d \u{1f469}\u{200d}\u{1f4bb}";
    let arguments = json!({"text": text, "chunk": 1});
    assert_eq!(tool(&link, "text", arguments).await.unwrap(), text);
    bench.end().await;
}

#[tokio::test]
async fn an_answer_with_invalid_utf8_fails_its_call_at_once() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    let begun = Instant::now();
    let fault = tool(&link, "bad-utf8", json!({})).await.unwrap_err();
    assert!(matches!(fault, Fault::NotMcp(_)), "{fault:?}");
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(tool(&link, "pid", json!({})).await.is_ok());
    bench.end().await;
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_its_call_and_no_other() {
    let mut settings = settings(&[]);
    settings.limits.frame = 1 << 20;
    let bench = bench(settings);
    let (link, _ears) = bench.open().await;
    for id_last in [false, true] {
        let arguments = json!({"bytes": 3 << 20, "id_last": id_last});
        let waiting = tool(&link, "sleep", json!({"ms": 50}));
        let (fault, other) = tokio::join!(tool(&link, "big", arguments), waiting);
        assert_eq!(fault.unwrap_err(), Fault::TooLarge(1 << 20));
        assert_eq!(other.unwrap(), "slept");
    }
    let arguments = json!({"bytes": 900 << 10});
    assert!(tool(&link, "big", arguments).await.is_ok());
    bench.end().await;
}

#[tokio::test]
async fn stderr_is_read_whatever_comes() {
    let bench = bench(settings(&["--banner=here I am"]));
    let (link, _ears) = bench.open().await;
    let text = tool(&link, "stderr", json!({"bytes": 8 << 20})).await;
    assert_eq!(text.unwrap(), "written");
    bench.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_and_answers_never_wait_for_each_other() {
    let journal = Journal::new();
    let bench = bench(settings(&[&journal.option()]));
    let (link, _ears) = bench.open().await;
    // The server answers each before it reads the next; all of them exceed both pipes.
    let payload = |n: usize| json!({"n": n, "text": format!("{n:03}").repeat(70_000)});
    let calls = (0..20).map(|n| {
        let link = &link;
        async move { (n, tool(link, "echo", payload(n)).await.unwrap()) }
    });
    let answers = within(
        Duration::from_secs(20),
        futures_util::future::join_all(calls),
    )
    .await;
    for (n, text) in answers {
        let want = payload(n).to_string();
        assert!(text == want, "answer {n}");
    }
    assert_eq!(journal.count("bad"), 0);
    bench.end().await;
}

#[tokio::test]
async fn a_server_that_reads_nothing_is_sent_no_more_than_the_bound() {
    let mut settings = settings(&[]);
    settings.limits.unread = 1 << 20;
    let bench = bench(settings);
    let (link, _ears) = bench.open().await;
    let deaf = tool(&link, "deaf", json!({"ms": 400}));
    let flood = async {
        let text = "x".repeat(300_000);
        let calls = (0..8).map(|_| tool(&link, "echo", json!({"text": text})));
        futures_util::future::join_all(calls).await
    };
    let (deaf, answers) = tokio::join!(deaf, flood);
    assert_eq!(deaf.unwrap(), "back");
    let refused = answers.iter().filter(|a| matches!(a, Err(Fault::Busy(_))));
    let taken = answers.iter().filter(|a| a.is_ok());
    assert!(refused.count() >= 3 && taken.count() >= 3, "{answers:?}");
    bench.end().await;
}

#[tokio::test]
async fn a_message_of_several_lines_is_sent_as_one() {
    let bench = bench(settings(&[]));
    let (link, _ears) = bench.open().await;
    let mut call = request(&link, "echo", &json!({"a": 1}));
    let text = String::from_utf8(call.message.clone().into_bytes().to_vec()).unwrap();
    call.message = text.replace(",", ",\n\r ").into();
    assert!(link.call(call).await.is_ok());
    bench.end().await;
}
