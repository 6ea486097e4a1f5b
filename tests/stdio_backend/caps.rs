//! How many processes there may be, and who makes room (K15).

use crate::support::*;
use drawbridge::backend::{Fault, stdio::Processes};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_caller_over_his_cap_gives_up_his_longest_idle_process() {
    let mut settings = settings(&[]);
    settings.limits.per_principal = 2;
    let bench = bench(settings);
    let (first, mut first_ears) = bench.open().await;
    let (second, mut second_ears) = bench.open().await;
    let (_other, mut other_ears) = bench.open_as("bob").await;
    pid_of(&first).await;
    let (third, _third_ears) = bench.open().await;
    assert!(
        matches!(second_ears.end().await, Fault::Stopped(_)),
        "idle for longest"
    );
    assert!(pid_of(&first).await != pid_of(&third).await);
    assert!(!second.is_alive());
    first_ears.nothing();
    other_ears.nothing();
    bench.end().await;
}

#[tokio::test]
async fn a_busy_process_is_not_given_up_and_the_wait_has_an_end() {
    let mut settings = settings(&[]);
    settings.limits.per_principal = 1;
    settings.limits.queue = Duration::from_millis(300);
    let bench = bench(settings);
    let (link, mut ears) = bench.open().await;
    let busy = tool(&link, "hang", json!({}));
    let begun = Instant::now();
    let fault = tokio::select! {
        answer = busy => panic!("{answer:?}"),
        fault = bench.refusal() => fault,
    };
    assert!(matches!(fault, Fault::Busy(_)), "{fault:?}");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    ears.nothing();
    // The call is over now: the next opening finds an idle process.
    bench.open().await;
    ears.end().await;
    bench.end().await;
}

#[tokio::test]
async fn who_waits_gets_the_place_of_who_leaves_in_the_order_of_arrival() {
    let mut settings = settings(&[]);
    settings.limits.processes = 1;
    let bench = bench(settings);
    let (link, _ears) = bench.open().await;
    let order = std::sync::Mutex::new(Vec::new());
    let wait = async |name: &'static str| {
        let (link, _ears) = bench.open_as(name).await;
        order.lock().unwrap().push(name);
        pid_of(&link).await;
        link.close().await;
    };
    let leave = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(order.lock().unwrap().is_empty());
        link.close().await;
    };
    tokio::join!(wait("bob"), wait("carol"), wait("dave"), leave);
    assert_eq!(*order.lock().unwrap(), ["bob", "carol", "dave"]);
    bench.end().await;
}

#[tokio::test]
async fn at_the_cap_of_all_a_callers_process_of_another_server_makes_room() {
    let processes = Processes::new(2);
    let [a, b] = [(), ()].map(|()| {
        let mut settings = settings(&[]);
        settings.limits.queue = Duration::from_millis(200);
        bench_within(settings, processes.clone())
    });
    let (_alices, mut alice) = a.open().await;
    let (_bobs, mut bob) = a.open_as("bob").await;
    let (carols, _) = opening("carol");
    assert!(
        matches!(b.supervisor.open(carols).await, Err(Fault::Busy(_))),
        "nobody else's"
    );
    let (_link, _ears) = b.open().await;
    alice.end().await;
    bob.nothing();
    a.supervisor.shutdown(Duration::from_secs(3)).await;
    b.end().await;
}

#[tokio::test]
async fn who_does_not_wait_any_more_leaves_the_line() {
    let mut settings = settings(&[]);
    settings.limits.processes = 1;
    let bench = bench(settings);
    let (link, _ears) = bench.open().await;
    let bobs = bench.supervisor.open(opening("bob").0);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), bobs)
            .await
            .is_err()
    );
    link.close().await;
    let (_link, _ears) = within(Duration::from_secs(3), bench.open_as("carol")).await;
    assert_eq!(bench.processes.count(), 1);
    bench.end().await;
}

#[tokio::test]
async fn an_idle_process_is_ended_and_a_busy_one_is_not() {
    let mut settings = settings(&[]);
    settings.limits.idle = Duration::from_millis(200);
    let bench = bench(settings);
    let (link, mut ears) = bench.open().await;
    let pid = pid_of(&link).await;
    assert!(tool(&link, "sleep", json!({"ms": 600})).await.is_ok());
    ears.nothing();
    assert_eq!(ears.end().await, Fault::Stopped("idle"));
    let fault = tool(&link, "pid", json!({})).await.unwrap_err();
    assert!(
        !fault.may_have_run(),
        "it may be sent to another process: {fault:?}"
    );
    gone(pid).await;
    assert_eq!(bench.metrics.restarts.get(), 0);
    bench.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openings_without_end_keep_the_number_of_processes_bounded() {
    let mut settings = settings(&[]);
    settings.limits.per_principal = 3;
    settings.limits.queue = Duration::from_secs(20);
    let bench = bench(settings);
    // A client that opens a session for each call and never closes one.
    let mut links = Vec::new();
    for _ in 0..20 {
        let (link, _ears) = bench.open().await;
        pid_of(&link).await;
        links.push(link);
        assert!(bench.processes.count() <= 3);
    }
    assert_eq!(links.iter().filter(|link| link.is_alive()).count(), 3);
    bench.end().await;
}
