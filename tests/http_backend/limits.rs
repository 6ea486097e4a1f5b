//! Sizes and numbers that stay bounded.

use super::{
    hb::{Hb, Reply},
    *,
};
use drawbridge::backend::http::Health;

#[tokio::test]
async fn an_answer_over_the_limit_is_refused_in_every_form() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let big = seen.result(json!({"text": "x".repeat(20_000)}));
            match tool(seen).as_str() {
                "json" => Reply::json(big),
                "chunked" => Reply::json(big).chunked().in_pieces_of(1000),
                "events" => Reply::events().message(big),
                _ => Reply::json(seen.result(json!({"text": "x".repeat(9_000)}))),
            }
        })
        .start()
        .await;
    let mut settings = settings(&hb);
    settings.frame = 10_000;
    let (link, _) = legacy_with(settings).await;
    for name in ["json", "chunked", "events"] {
        assert_eq!(
            call(&link, name).await,
            Err(Fault::TooLarge(10_000)),
            "{name}"
        );
    }
    assert!(call(&link, "fits").await.is_ok());
}

#[tokio::test]
async fn large_answers_come_whole() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let big = seen.result(json!({"text": "漢".repeat(500_000)}));
            match tool(seen).as_str() {
                "json" => Reply::json(big),
                "chunked" => Reply::json(big).chunked().in_pieces_of(70_001),
                _ => Reply::events().message(big),
            }
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    for name in ["json", "chunked", "events"] {
        let answer = call(&link, name).await.unwrap();
        let text = answer["result"]["text"].as_str().unwrap();
        assert_eq!(text.len(), 1_500_000, "{name}");
    }
}

#[tokio::test]
async fn a_thousand_calls_use_few_connections() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let answer = seen.result(json!({}));
            match tool(seen).as_str() {
                "json" => Reply::json(answer),
                _ => Reply::events().message(answer),
            }
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    for _ in 0..500 {
        call(&link, "json").await.unwrap();
        call(&link, "events").await.unwrap();
    }
    assert!(hb.connections() <= 8, "{}", hb.connections());
    link.close().await;
}

#[tokio::test]
async fn a_stream_that_ends_a_little_after_its_answer_keeps_its_connection() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let reply = Reply::events().message(seen.result(json!({})));
            reply.wait(Duration::from_millis(2))
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    for _ in 0..100 {
        call(&link, "a").await.unwrap();
    }
    // On a busy machine some streams end too late; if none were waited for, there would be a hundred.
    assert!(hb.connections() < 90, "{}", hb.connections());
}

#[tokio::test]
async fn health_follows_the_last_contact() {
    let failing = Arc::new(Mutex::new(false));
    let at = failing.clone();
    let hb = Hb::legacy()
        .on("tools/call", move |seen| match *at.lock().unwrap() {
            true => Reply::status(503),
            false => Reply::json(seen.result(json!({}))),
        })
        .start()
        .await;
    let metrics = Metrics::new();
    let (server, client) = (metrics.server("hb"), Client::new());
    let origin = Origin::new(
        ServerId::new("hb").unwrap(),
        settings(&hb),
        &client,
        server.clone(),
    );
    assert_eq!(origin.health(), Health::Unknown);
    let ear = Arc::new(Ear::default());
    let link = origin.open(opening(Era::Legacy, &ear)).await.unwrap();
    assert_eq!(origin.health(), Health::Up);
    assert_eq!((server.up.get(), server.sessions.get()), (1, 1));
    *failing.lock().unwrap() = true;
    call(&link, "a").await.unwrap_err();
    assert_eq!(origin.health(), Health::Down("answered 503".into()));
    assert_eq!(server.up.get(), 0);
    *failing.lock().unwrap() = false;
    call(&link, "b").await.unwrap();
    assert_eq!((origin.health(), server.up.get()), (Health::Up, 1));
    link.close().await;
    assert_eq!(server.sessions.get(), 0);
}
