//! What crosses to a server, and what never does (K51, K53, K54, K60, K62).

use super::{
    hb::{Hb, Reply},
    *,
};
use http::{HeaderName, HeaderValue};

fn with_key(hb: &Hb) -> Settings {
    let mut settings = settings(hb);
    let name = HeaderName::from_static("authorization");
    let value = HeaderValue::from_static("Bearer canary");
    settings.headers = vec![
        (name, value),
        (
            HeaderName::from_static("x-team"),
            HeaderValue::from_static("agents"),
        ),
    ];
    settings
}

#[tokio::test]
async fn every_request_bears_the_configured_headers_and_the_protocols_own_only() {
    let hb = Hb::legacy().start().await;
    let (link, _) = legacy_with(with_key(&hb)).await;
    call(&link, "a").await.unwrap();
    link.close().await;
    let allowed = [
        "authorization",
        "x-team",
        "user-agent",
        "accept",
        "content-type",
        "content-length",
        "host",
        "mcp-session-id",
        "mcp-protocol-version",
    ];
    for seen in hb.seen() {
        assert_eq!(seen.header("authorization"), Some("Bearer canary"));
        assert_eq!(seen.header("x-team"), Some("agents"));
        assert_eq!(
            seen.header("host"),
            Some(format!("127.0.0.1:{}", hb.port).as_str())
        );
        let agent = concat!("drawbridge/", env!("CARGO_PKG_VERSION"));
        assert_eq!(seen.header("user-agent"), Some(agent));
        for (name, _) in &seen.headers {
            assert!(allowed.contains(&name.as_str()), "{}: {name}", seen.verb);
        }
        if seen.verb == "POST" {
            let both = "application/json, text/event-stream";
            assert_eq!(seen.header("accept"), Some(both));
            assert_eq!(seen.header("content-type"), Some("application/json"));
        }
    }
}

#[tokio::test]
async fn a_server_that_wants_event_streams_named_first_gets_them_so() {
    let hb = Hb::legacy()
        .on("initialize", |seen| {
            let accept = seen.header("accept").unwrap();
            if !accept.starts_with("text/event-stream") {
                return Reply::status(406);
            }
            Reply::json(seen.result(json!({"protocolVersion": "2025-06-18", "capabilities": {}})))
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    call(&link, "a").await.unwrap();
    let called = hb.wait_for(|s| s.method() == "tools/call").await;
    let both = "text/event-stream, application/json";
    assert_eq!(called.header("accept"), Some(both));
    assert_eq!(hb.count("initialize"), 2);
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_with_the_body() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| match seen.path.as_str() {
            "/mcp" => Reply::status(307).header("location", "/mcp/"),
            "/mcp/" => Reply::status(308).header("location", "sub?x=1"),
            _ => Reply::json(seen.result(json!({"path": seen.path}))),
        })
        .start()
        .await;
    let (link, _) = legacy_with(with_key(&hb)).await;
    let answer = call(&link, "a").await.unwrap();
    assert_eq!(answer["result"]["path"], "/mcp/sub?x=1");
    let last = hb.wait_for(|s| s.path == "/mcp/sub?x=1").await;
    assert_eq!(last.header("authorization"), Some("Bearer canary"));
    assert_eq!(last.header("mcp-session-id"), Some("session-1"));
}

#[tokio::test]
async fn no_redirect_leads_to_another_origin() {
    let elsewhere = Hb::legacy().start().await;
    let target = elsewhere.url();
    let port = elsewhere.port;
    let hb = Hb::legacy()
        .on("tools/call", move |seen| match tool(seen).as_str() {
            "port" => Reply::status(307).header("location", &target),
            "scheme" => Reply::status(308).header("location", "https://127.0.0.1/mcp"),
            "host" => {
                Reply::status(307).header("location", &format!("http://localhost:{port}/mcp"))
            }
            "see other" => Reply::status(303).header("location", "/mcp"),
            "found" => Reply::status(302).header("location", "/mcp"),
            "nowhere" => Reply::status(307),
            _ => Reply::status(307).header("location", "/mcp"),
        })
        .start()
        .await;
    let (link, _) = legacy_with(with_key(&hb)).await;
    for name in [
        "port",
        "scheme",
        "host",
        "see other",
        "found",
        "nowhere",
        "loop",
    ] {
        let fault = call(&link, name).await.unwrap_err();
        let Fault::Unreachable { reason, .. } = &fault else {
            panic!("{name}: {fault:?}");
        };
        assert!(reason.contains("redirect"), "{name}: {reason}");
        assert!(!fault.may_have_run());
    }
    assert!(elsewhere.seen().is_empty());
    // The first, and three redirects.
    assert_eq!(hb.seen().iter().filter(|s| tool(s) == "loop").count(), 4);
}

#[tokio::test]
async fn refused_credentials_are_told_as_that() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| match tool(seen).as_str() {
            "401" => Reply::json(seen.error(-32000, "session token?")).with_status(401),
            "403" => Reply::status(403),
            "429" => Reply::status(429).header("retry-after", "7"),
            _ => Reply::status(429).header("retry-after", "soon"),
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    assert_eq!(
        call(&link, "401").await,
        Err(Fault::Refused { status: 401 })
    );
    assert_eq!(
        call(&link, "403").await,
        Err(Fault::Refused { status: 403 })
    );
    let throttled = |retry_after| Err(Fault::Throttled { retry_after });
    assert_eq!(call(&link, "429").await, throttled(Some(7)));
    assert_eq!(call(&link, "later").await, throttled(None));
    assert!(link.is_alive());
}

#[tokio::test]
async fn an_opening_that_is_refused_for_its_credentials_says_so() {
    for era in [Era::Legacy, Era::Modern] {
        let hb = Hb::bare().otherwise(|_| Reply::status(401)).start().await;
        let ear = Arc::new(Ear::default());
        let fault = origin(&hb).open(opening(era, &ear)).await.err();
        assert_eq!(fault, Some(Fault::Refused { status: 401 }));
        assert_eq!(hb.seen().len(), 1);
    }
}
