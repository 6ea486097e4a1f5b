//! Backend sessions: opened, kept apart, lost, ended (K02, K07, B191).

use super::{
    hb::{Hb, Reply},
    *,
};
use drawbridge::backend::Ran;

#[tokio::test]
async fn a_session_is_opened_used_and_ended() {
    let hb = Hb::legacy().start().await;
    let (link, _) = legacy(&hb).await;
    let answer = call(&link, "a").await.unwrap();
    assert_eq!(answer["result"]["params"]["name"], "a");
    assert_eq!(link.profile().revision, Revision::V2025_11_25);
    link.close().await;
    assert!(!link.is_alive());
    assert_eq!(
        hb.methods(),
        [
            "initialize",
            "notifications/initialized",
            "GET",
            "tools/call",
            "DELETE"
        ]
    );
    assert_eq!(hb.sessions(), 0);
    let seen = hb.seen();
    assert_eq!(seen[0].header("mcp-session-id"), None);
    assert_eq!(seen[0].header("mcp-protocol-version"), None);
    assert_eq!(
        seen[0].json()["params"]["capabilities"],
        json!({"roots": {}})
    );
    assert_eq!(seen[0].json()["params"]["clientInfo"]["name"], "test");
    for later in &seen[1..] {
        assert_eq!(later.header("mcp-session-id"), Some("session-1"));
        assert_eq!(later.header("mcp-protocol-version"), Some("2025-11-25"));
    }
}

#[tokio::test]
async fn a_server_without_session_ids_is_served_all_the_same() {
    let hb = Hb::legacy().without_sessions().start().await;
    let (link, _) = legacy(&hb).await;
    assert!(call(&link, "a").await.is_ok());
    link.close().await;
    assert_eq!(hb.count("DELETE"), 0);
    assert!(
        hb.seen()
            .iter()
            .all(|s| s.header("mcp-session-id").is_none())
    );
}

#[tokio::test]
async fn two_holders_never_share_a_session() {
    let hb = Hb::legacy().start().await;
    let origin = origin(&hb);
    let ear = Arc::new(Ear::default());
    let one = origin.open(opening(Era::Legacy, &ear)).await.unwrap();
    let two = origin.open(opening(Era::Legacy, &ear)).await.unwrap();
    call(&one, "one").await.unwrap();
    call(&two, "two").await.unwrap();
    let used = |name: &str| {
        let seen = hb.seen().into_iter().find(|s| tool(s) == name).unwrap();
        seen.header("mcp-session-id").unwrap().to_owned()
    };
    assert_ne!(used("one"), used("two"));
}

#[tokio::test]
async fn a_dropped_link_ends_its_session() {
    let hb = Hb::legacy().start().await;
    let (link, _) = legacy(&hb).await;
    drop(link);
    hb.wait_for(|s| s.method() == "DELETE").await;
}

#[tokio::test]
async fn a_server_that_refuses_to_end_sessions_is_left_alone() {
    let hb = Hb::legacy()
        .on("DELETE", |_| Reply::status(405))
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    link.close().await;
    link.close().await;
    assert_eq!(hb.count("DELETE"), 1);
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_lost_at_the_next_call() {
    let hb = Hb::legacy().start().await;
    let origin = origin(&hb);
    let ear = Arc::new(Ear::default());
    let link = origin.open(opening(Era::Legacy, &ear)).await.unwrap();
    hb.forget_sessions();
    let fault = call(&link, "a").await.unwrap_err();
    assert_eq!(fault, Fault::SessionLost);
    assert!(!fault.may_have_run());
    assert!(!link.is_alive());
    // Said once, without asking the server again.
    assert_eq!(call(&link, "b").await, Err(Fault::SessionLost));
    assert_eq!(ear.ended(), [Fault::SessionLost]);
    assert_eq!(hb.count("tools/call"), 1);
    let again = origin.open(opening(Era::Legacy, &ear)).await.unwrap();
    assert!(call(&again, "c").await.is_ok());
    assert_eq!(hb.count("initialize"), 2);
    link.close().await;
    assert_eq!(hb.count("DELETE"), 0);
}

#[tokio::test]
async fn a_400_that_speaks_of_the_session_loses_it_too() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let error = seen.error(-32000, "Bad Request: No valid session ID provided");
            Reply::json(error).with_status(400)
        })
        .start()
        .await;
    let (link, ear) = legacy(&hb).await;
    assert_eq!(call(&link, "a").await, Err(Fault::SessionLost));
    assert_eq!(ear.ended().len(), 1);
}

#[tokio::test]
async fn an_error_of_the_server_costs_no_session() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| match tool(seen).as_str() {
            "unknown" => Reply::json(seen.error(-32601, "Method not found")).with_status(404),
            "session" => Reply::json(seen.error(-32602, "no such session: 9")).with_status(400),
            "html" => Reply::status(500).raw("<h1>session</h1>"),
            _ => Reply::status(503),
        })
        .start()
        .await;
    let (link, ear) = legacy(&hb).await;
    assert_eq!(
        call(&link, "unknown").await.unwrap()["error"]["code"],
        -32601
    );
    assert_eq!(
        call(&link, "session").await.unwrap()["error"]["code"],
        -32602
    );
    for (name, status) in [("html", 500), ("busy", 503)] {
        let expected = Fault::Unreachable {
            reason: format!("answered {status}"),
            ran: Ran::Maybe,
        };
        assert_eq!(call(&link, name).await, Err(expected));
    }
    assert!(link.is_alive());
    assert!(ear.ended().is_empty());
    assert_eq!(hb.count("initialize"), 1);
}

#[tokio::test]
async fn a_notification_also_finds_out_that_the_session_is_lost() {
    let hb = Hb::legacy().start().await;
    let (link, ear) = legacy(&hb).await;
    hb.forget_sessions();
    let message =
        Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
    assert_eq!(link.post(message).await, Err(Fault::SessionLost));
    assert_eq!(ear.ended(), [Fault::SessionLost]);
}

#[tokio::test]
async fn any_good_status_accepts_a_notification() {
    let replies: [fn() -> Reply; 5] = [
        || Reply::status(200),
        || Reply::status(204),
        || Reply::status(202).raw("accepted"),
        || {
            Reply::status(200)
                .header("content-type", "application/json")
                .raw("null")
        },
        || Reply::json(json!({"jsonrpc": "2.0", "id": null, "result": {}})),
    ];
    for reply in replies {
        let hb = Hb::legacy()
            .on("notifications/initialized", move |_| reply())
            .start()
            .await;
        let (link, _) = legacy(&hb).await;
        assert!(call(&link, "a").await.is_ok());
    }
}

#[tokio::test]
async fn a_started_session_is_not_left_behind_when_opening_fails() {
    let hb = Hb::legacy()
        .on("notifications/initialized", |_| Reply::status(503))
        .start()
        .await;
    let ear = Arc::new(Ear::default());
    let fault = origin(&hb)
        .open(opening(Era::Legacy, &ear))
        .await
        .err()
        .unwrap();
    assert_eq!(fault, Fault::unreachable("answered 503 to a notification"));
    hb.wait_for(|s| s.method() == "DELETE").await;
}

#[tokio::test]
async fn a_ping_of_the_server_is_answered_by_the_link() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            Reply::events()
                .message(json!({"jsonrpc": "2.0", "id": "p-1", "method": "ping"}))
                .message(seen.result(json!({})))
        })
        .start()
        .await;
    let (link, ear) = legacy(&hb).await;
    call(&link, "a").await.unwrap();
    let answer = hb.wait_for(|s| s.method() == "response").await;
    assert_eq!(
        answer.json(),
        json!({"jsonrpc": "2.0", "id": "p-1", "result": {}})
    );
    assert!(ear.heard().is_empty());
}
