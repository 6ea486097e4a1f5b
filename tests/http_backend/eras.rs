//! Which era a server is spoken to in (K44, K45).

use super::{
    hb::{Hb, Reply, Script, Seen},
    *,
};
use drawbridge::backend::http::Fixed;

async fn open(hb: &Hb, era: Era) -> Result<HttpLink, Fault> {
    let ear = Arc::new(Ear::default());
    origin(hb).open(opening(era, &ear)).await
}

#[tokio::test]
async fn a_modern_server_is_spoken_to_without_a_session() {
    let hb = Hb::modern().start().await;
    let (link, _) = modern_with(settings(&hb)).await;
    assert_eq!(link.profile().revision, Revision::V2026_07_28);
    let mut request = tool_call(&link, "wetter 世界");
    let param = http::HeaderName::from_static("mcp-param-region");
    request
        .params
        .push((param, http::HeaderValue::from_static("eu")));
    link.call(request).await.unwrap();
    link.post(Bytes::from_static(
        br#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
    ))
    .await
    .unwrap();
    link.close().await;
    assert_eq!(hb.methods(), ["server/discover", "tools/call"]);
    let seen = hb.seen();
    for request in &seen {
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(
            request.header("mcp-method"),
            Some(request.method().as_str())
        );
        assert_eq!(request.header("mcp-session-id"), None);
    }
    let meta = &seen[0].json()["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "test");
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({"roots": {}})
    );
    assert_eq!(seen[0].header("mcp-name"), None);
    assert_eq!(
        seen[1].header("mcp-name"),
        Some("=?base64?d2V0dGVyIOS4lueVjA==?=")
    );
    assert_eq!(seen[1].header("mcp-param-region"), Some("eu"));
}

#[tokio::test]
async fn a_modern_server_is_asked_once_for_many_links() {
    let hb = Hb::modern().start().await;
    let origin = origin(&hb);
    let ear = Arc::new(Ear::default());
    let links = (0..8).map(|_| origin.open(opening(Era::Modern, &ear)));
    for link in futures_util::future::join_all(links).await {
        call(&link.unwrap(), "a").await.unwrap();
    }
    assert_eq!(hb.count("server/discover"), 1);
}

type Answer = fn(&Seen) -> Reply;
type Expected = fn(&Fault) -> bool;

/// What `server/discover` is answered with by a server that speaks the legacy era only.
const LEGACY: [(&str, Answer); 9] = [
    ("200 with -32601", |s| Reply::json(s.error(-32601, "x"))),
    ("an error as an event", |s| {
        Reply::events().message(s.error(-32602, "x"))
    }),
    ("400 with -32600", |s| {
        Reply::json(s.error(-32600, "x")).with_status(400)
    }),
    ("400 without id", |_| {
        let error = json!({"jsonrpc": "2.0", "id": null, "error":
            {"code": -32000, "message": "Bad Request: Server not initialized"}});
        Reply::json(error).with_status(400)
    }),
    ("400 with another id", |_| {
        let error = json!({"jsonrpc": "2.0", "id": "server-error", "error":
            {"code": -32600, "message": "Bad Request: Missing session ID"}});
        Reply::json(error).with_status(400)
    }),
    ("404 without a body", |_| Reply::status(404)),
    ("405", |_| Reply::status(405)),
    ("400 with text", |_| {
        Reply::status(400).raw("unsupported version")
    }),
    ("a result of nothing", |s| Reply::json(s.result(json!({})))),
];

#[tokio::test]
async fn a_legacy_server_is_known_by_any_answer_that_no_modern_one_gives() {
    for (what, answer) in LEGACY {
        let hb = Hb::legacy().on("server/discover", answer).start().await;
        let origin = origin(&hb);
        let ear = Arc::new(Ear::default());
        let link = origin.open(opening(Era::Modern, &ear)).await;
        let link = link.unwrap_or_else(|fault| panic!("{what}: {fault}"));
        assert_eq!(link.profile().era(), Era::Legacy, "{what}");
        assert!(call(&link, "a").await.is_ok());
        // The verdict is kept.
        origin.open(opening(Era::Modern, &ear)).await.unwrap();
        assert_eq!(hb.count("server/discover"), 1, "{what}");
    }
}

#[tokio::test]
async fn many_that_come_at_once_ask_a_legacy_server_one_question() {
    let hb = Hb::legacy().start().await;
    let origin = origin(&hb);
    let ear = Arc::new(Ear::default());
    let links = (0..8).map(|_| origin.open(opening(Era::Modern, &ear)));
    for link in futures_util::future::join_all(links).await {
        call(&link.unwrap(), "a").await.unwrap();
    }
    assert_eq!(hb.count("server/discover"), 1);
    assert_eq!(hb.count("initialize"), 8);
}

#[tokio::test]
async fn a_modern_server_is_known_by_its_errors() {
    let answers: [(&str, Answer); 2] = [
        ("404 with -32601", |s| {
            Reply::json(s.error(-32601, "x")).with_status(404)
        }),
        ("400 with -32021", |s| {
            Reply::json(s.error(-32021, "x")).with_status(400)
        }),
    ];
    for (what, answer) in answers {
        let hb = Hb::modern().on("server/discover", answer).start().await;
        let link = open(&hb, Era::Modern).await.unwrap();
        assert_eq!(link.profile().era(), Era::Modern, "{what}");
        assert!(call(&link, "a").await.is_ok());
        assert_eq!(hb.count("initialize"), 0, "{what}");
    }
    let hb = Hb::modern()
        .on("server/discover", |s| {
            Reply::json(s.error(-32020, "x")).with_status(400)
        })
        .start()
        .await;
    assert!(matches!(
        open(&hb, Era::Modern).await,
        Err(Fault::Declined(_))
    ));
    assert_eq!(hb.count("initialize"), 0);
}

#[tokio::test]
async fn what_says_nothing_of_the_era_is_reported_and_not_guessed_from() {
    let answers: [(&str, Answer, Expected); 6] = [
        (
            "401",
            |_| Reply::status(401),
            |f| *f == Fault::Refused { status: 401 },
        ),
        (
            "403",
            |_| Reply::status(403),
            |f| *f == Fault::Refused { status: 403 },
        ),
        (
            "429",
            |_| Reply::status(429).header("retry-after", "7"),
            |f| {
                *f == Fault::Throttled {
                    retry_after: Some(7),
                }
            },
        ),
        (
            "500",
            |_| Reply::status(500),
            |f| *f == Fault::unreachable("answered 500"),
        ),
        (
            "503 with an error",
            |s| Reply::json(s.error(-32601, "x")).with_status(503),
            |f| *f == Fault::unreachable("answered 503"),
        ),
        (
            "cut",
            |_| Reply::status(200).cut_head(),
            |f| !f.may_have_run(),
        ),
    ];
    for (what, answer, expected) in answers {
        let hb = Hb::legacy().on("server/discover", answer).start().await;
        let fault = open(&hb, Era::Modern).await.err().unwrap();
        assert!(expected(&fault), "{what}: {fault:?}");
        assert_eq!(hb.count("initialize"), 0, "{what}");
    }
}

#[tokio::test]
async fn silence_is_no_verdict_either() {
    let hb = Hb::legacy()
        .on("server/discover", |_| {
            Reply::status(200).gate_head(&hb::Gate::new())
        })
        .start()
        .await;
    let mut settings = settings(&hb);
    settings.start = Duration::from_millis(100);
    let ear = Arc::new(Ear::default());
    let fault = origin_of(settings).open(opening(Era::Modern, &ear)).await;
    assert_eq!(
        fault.err(),
        Some(Fault::TimedOut(Duration::from_millis(100)))
    );
    assert_eq!(hb.count("initialize"), 0);
}

fn unsupported(seen: &Seen, supported: Value) -> Reply {
    let mut error = seen.error(-32022, "Unsupported protocol version");
    error["error"]["data"] = json!({"supported": supported, "requested": "2026-07-28"});
    Reply::json(error).with_status(400)
}

#[tokio::test]
async fn a_server_that_supports_legacy_revisions_only_is_opened_with_the_newest_of_them() {
    let hb = Hb::legacy()
        .on("server/discover", |s| {
            unsupported(s, json!(["2025-03-26", "2025-06-18"]))
        })
        .start()
        .await;
    let link = open(&hb, Era::Modern).await.unwrap();
    assert_eq!(link.profile().revision, Revision::V2025_06_18);
    let seen = hb.wait_for(|s| s.method() == "initialize").await;
    assert_eq!(seen.json()["params"]["protocolVersion"], "2025-06-18");
}

#[tokio::test]
async fn a_legacy_holder_is_served_by_a_modern_server_that_refuses_initialize() {
    let refusals: [(&str, Answer); 4] = [
        ("-32022", |s| unsupported(s, json!(["2026-07-28"]))),
        ("-32020", |s| {
            Reply::json(s.error(-32020, "x")).with_status(400)
        }),
        ("404", |s| {
            Reply::json(s.error(-32601, "x")).with_status(404)
        }),
        ("-32602", |s| {
            Reply::json(s.error(-32602, "_meta?")).with_status(400)
        }),
    ];
    for (what, answer) in refusals {
        let hb = Hb::modern().on("initialize", answer).start().await;
        let origin = origin(&hb);
        let ear = Arc::new(Ear::default());
        for _ in 0..2 {
            let link = origin.open(opening(Era::Legacy, &ear)).await.unwrap();
            assert_eq!(link.profile().era(), Era::Modern, "{what}");
            assert!(call(&link, "a").await.is_ok());
        }
        assert_eq!(hb.count("initialize"), 1, "{what}");
        assert_eq!(hb.count("server/discover"), 1, "{what}");
    }
}

#[tokio::test]
async fn each_holder_gets_its_own_era_from_a_server_of_both() {
    let script: Script = Hb::legacy().on("server/discover", |seen| {
        Reply::json(seen.result(json!({
            "supportedVersions": ["2026-07-28", "2025-11-25"], "capabilities": {"tools": {}}})))
    });
    let hb = script.without_sessions().start().await;
    let origin = origin(&hb);
    let ear = Arc::new(Ear::default());
    for era in [Era::Legacy, Era::Modern, Era::Legacy, Era::Modern] {
        let link = origin.open(opening(era, &ear)).await.unwrap();
        assert_eq!(link.profile().era(), era);
    }
}

#[tokio::test]
async fn a_server_that_knows_only_older_revisions_is_connected() {
    let answers: [(&str, Answer); 4] = [
        ("400 with data", |s| {
            let mut error = s.error(-32602, "Unsupported protocol version");
            error["error"]["data"] =
                json!({"supported": ["2025-03-26"], "requested": "2025-11-25"});
            Reply::json(error).with_status(400)
        }),
        ("200 with text", |s| {
            Reply::json(s.error(-32000, "Unsupported protocol version: 2025-11-25 (supported versions: 2025-03-26, 2024-11-05)"))
        }),
        ("400 without JSON", |_| {
            Reply::status(400).raw("supported: 2025-03-26")
        }),
        ("an older result", |s| {
            Reply::json(s.result(json!({"protocolVersion": "2025-03-26", "capabilities": {}})))
        }),
    ];
    for (what, answer) in answers {
        let hb = Hb::legacy()
            .on(
                "initialize",
                move |seen| match seen.json()["params"]["protocolVersion"].as_str() {
                    Some("2025-03-26") => Reply::json(
                        seen.result(json!({"protocolVersion": "2025-03-26", "capabilities": {}})),
                    ),
                    _ => answer(seen),
                },
            )
            .start()
            .await;
        let link = open(&hb, Era::Legacy).await;
        let link = link.unwrap_or_else(|fault| panic!("{what}: {fault}"));
        assert_eq!(link.profile().revision, Revision::V2025_03_26, "{what}");
        call(&link, "a").await.unwrap();
        let called = hb.wait_for(|s| s.method() == "tools/call").await;
        assert_eq!(called.header("mcp-protocol-version"), Some("2025-03-26"));
        assert!(hb.count("initialize") <= 2, "{what}");
    }
}

#[tokio::test]
async fn what_is_no_mcp_endpoint_is_said_to_be_none() {
    for status in [400, 404, 405] {
        let hb = Hb::bare()
            .otherwise(move |_| Reply::status(status))
            .start()
            .await;
        for era in [Era::Legacy, Era::Modern] {
            let fault = open(&hb, era).await.err().unwrap();
            assert!(
                matches!(&fault, Fault::Declined(text) if text.contains("2024-11-05")),
                "{fault:?}"
            );
        }
    }
    let hb = Hb::bare()
        .otherwise(|_| {
            Reply::status(200)
                .header("content-type", "text/html")
                .raw("<p>")
        })
        .start()
        .await;
    assert!(matches!(
        open(&hb, Era::Modern).await,
        Err(Fault::NotMcp(_))
    ));
}

#[tokio::test]
async fn a_server_that_settles_on_an_unknown_revision_is_refused() {
    for version in ["1999-01-01", "2026-07-28"] {
        let hb = Hb::legacy()
            .on("initialize", move |s| {
                Reply::json(s.result(json!({"protocolVersion": version, "capabilities": {}})))
            })
            .start()
            .await;
        assert!(open(&hb, Era::Legacy).await.is_err());
    }
}

#[tokio::test]
async fn what_the_operator_fixed_is_not_asked_about() {
    let with = |hb: &Hb, fixed| {
        let mut settings = settings(hb);
        settings.protocol = Some(fixed);
        origin_of(settings)
    };
    let ear = Arc::new(Ear::default());
    let hb = Hb::legacy().start().await;
    let origin = with(&hb, Fixed::Revision(Revision::V2025_06_18));
    let link = origin.open(opening(Era::Modern, &ear)).await.unwrap();
    assert_eq!(link.profile().revision, Revision::V2025_06_18);
    assert_eq!(hb.count("server/discover"), 0);
    let origin = with(&hb, Fixed::Era(Era::Modern));
    let fault = origin.open(opening(Era::Legacy, &ear)).await.err();
    assert_eq!(fault, Some(Fault::WrongEra("modern")));
    let hb = Hb::modern().start().await;
    let origin = with(&hb, Fixed::Era(Era::Legacy));
    let fault = origin.open(opening(Era::Legacy, &ear)).await.err();
    assert_eq!(fault, Some(Fault::WrongEra("legacy")));
    assert_eq!(hb.count("server/discover"), 0);
}

#[tokio::test]
async fn a_wrong_verdict_heals() {
    // A modern server is replaced by a legacy one at the same address, and back.
    let legacy = Arc::new(Mutex::new(false));
    let at = legacy.clone();
    let hb = Hb::bare()
        .otherwise(
            move |seen| match (*at.lock().unwrap(), seen.method().as_str()) {
                (true, "initialize") => Reply::json(
                    seen.result(json!({"protocolVersion": "2025-11-25", "capabilities": {}})),
                ),
                (true, _) if seen.header("mcp-method").is_some() => {
                    let error = seen.error(-32000, "Bad Request: Server not initialized");
                    Reply::json(error).with_status(400)
                }
                (false, "server/discover") => Reply::json(
                    seen.result(json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})),
                ),
                (false, _) if seen.header("mcp-method").is_none() => {
                    unsupported(seen, json!(["2026-07-28"]))
                }
                (_, "GET") => Reply::status(405),
                _ => Reply::json(seen.result(json!({}))),
            },
        )
        .start()
        .await;
    let origin = origin(&hb);
    let ear = Arc::new(Ear::default());
    let open = || origin.open(opening(Era::Modern, &ear));
    let link = open().await.unwrap();
    assert!(call(&link, "a").await.is_ok());
    *legacy.lock().unwrap() = true;
    assert_eq!(call(&link, "b").await, Err(Fault::SessionLost));
    let link = open().await.unwrap();
    assert_eq!(link.profile().era(), Era::Legacy);
    assert!(call(&link, "c").await.is_ok());
    *legacy.lock().unwrap() = false;
    assert_eq!(call(&link, "d").await, Err(Fault::SessionLost));
    let link = open().await.unwrap();
    assert_eq!(link.profile().era(), Era::Modern);
    assert!(call(&link, "e").await.is_ok());
}
