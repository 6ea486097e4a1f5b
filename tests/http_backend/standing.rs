//! The stream of a legacy server that belongs to no call (K10, K11, K43).

use super::{
    hb::{Hb, Reply},
    *,
};

fn changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

fn event(message: &Value) -> Bytes {
    format!("data: {message}\n\n").into()
}

#[tokio::test]
async fn a_server_without_the_stream_is_asked_once() {
    let replies: [fn() -> Reply; 6] = [
        || Reply::status(405),
        || Reply::status(404),
        || Reply::status(501),
        || Reply::status(400),
        || Reply::json(json!({})),
        || {
            Reply::status(200)
                .header("content-type", "text/html")
                .raw("<p>")
        },
    ];
    let mut all = Vec::new();
    for reply in replies {
        let hb = Hb::legacy().on("GET", move |_| reply()).start().await;
        let (link, ear) = legacy(&hb).await;
        all.push((hb, link, ear));
    }
    // Longer than the first wait before another attempt would be.
    tokio::time::sleep(Duration::from_millis(1600)).await;
    for (hb, link, ear) in all {
        assert_eq!(hb.count("GET"), 1);
        assert!(link.is_alive() && ear.heard().is_empty() && ear.ended().is_empty());
        assert!(call(&link, "a").await.is_ok());
    }
}

#[tokio::test]
async fn a_notification_during_the_first_call_finds_the_stream_open() {
    let standing = Arc::new(Mutex::new(None));
    let held = standing.clone();
    let hb = Hb::legacy()
        .on("GET", move |_| {
            let (sender, reply) = Reply::live();
            *held.lock().unwrap() = Some(sender);
            reply
        })
        .on("tools/call", move |seen| {
            let sender = standing.lock().unwrap();
            sender
                .as_ref()
                .expect("the stream is open")
                .send(event(&changed()))
                .unwrap();
            Reply::json(seen.result(json!({})))
        })
        .start()
        .await;
    let (link, ear) = legacy(&hb).await;
    call(&link, "a").await.unwrap();
    ear.until(|e| e.heard() == [(changed(), None)]).await;
}

#[tokio::test]
async fn a_silent_stream_is_left_alone_however_short_the_calls_limit() {
    let hb = Hb::legacy()
        .on("GET", |_| {
            Reply::events()
                .wait(Duration::from_millis(900))
                .message(changed())
                .silence()
        })
        .start()
        .await;
    let mut settings = settings(&hb);
    settings.call = Duration::from_millis(500);
    let (_link, ear) = legacy_with(settings).await;
    ear.until(|e| e.heard().len() == 1).await;
    assert_eq!(hb.count("GET"), 1);
}

#[tokio::test]
async fn a_stream_that_breaks_is_opened_again_where_it_left_off() {
    let hb = Hb::legacy()
        .on("GET", |seen| match seen.header("last-event-id") {
            None => Reply::events()
                .raw("retry: 10\n\n")
                .message_with_id("a-1", changed())
                .cut(),
            Some(id) => {
                assert_eq!(id, "a-1");
                Reply::events().message(changed()).silence()
            }
        })
        .start()
        .await;
    let (link, ear) = legacy(&hb).await;
    ear.until(|e| e.heard().len() == 2).await;
    link.close().await;
    assert_eq!(hb.count("GET"), 2);
}

#[tokio::test]
async fn a_stream_without_a_byte_for_too_long_is_opened_again() {
    let hb = Hb::legacy()
        .on("GET", |_| {
            Reply::events().raw("retry: 10\ndata:\n\n").silence()
        })
        .start()
        .await;
    let mut settings = settings(&hb);
    settings.idle_stream = Some(Duration::from_millis(50));
    let (_link, _) = legacy_with(settings).await;
    hb.wait_for_nth(3, |s| s.method() == "GET").await;
}

#[tokio::test]
async fn a_stream_that_comes_back_to_a_forgotten_session_ends_the_link() {
    let hb = Hb::legacy()
        .on("GET", |_| {
            Reply::events().raw("retry: 200\n\n").message(changed())
        })
        .start()
        .await;
    let (link, ear) = legacy(&hb).await;
    hb.forget_sessions();
    ear.until(|e| !e.ended().is_empty()).await;
    assert_eq!(ear.ended(), [Fault::SessionLost]);
    assert!(!link.is_alive());
    assert_eq!(call(&link, "a").await, Err(Fault::SessionLost));
}

#[tokio::test]
async fn a_head_that_does_not_come_does_not_hold_up_the_link() {
    let hb = Hb::legacy()
        .on("GET", |_| Reply::status(200).gate_head(&hb::Gate::new()))
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    assert!(call(&link, "a").await.is_ok());
    link.close().await;
}

#[tokio::test]
async fn the_stream_ends_with_the_link() {
    let hb = Hb::legacy()
        .on("GET", |_| Reply::events().silence())
        .start()
        .await;
    let origin = origin(&hb);
    let ear = Arc::new(Ear::default());
    let link = origin.open(opening(Era::Legacy, &ear)).await.unwrap();
    link.close().await;
    hb.wait_until_open(1).await;
    origin.close(Duration::from_secs(5)).await;
    assert!(ear.ended().is_empty());
}
