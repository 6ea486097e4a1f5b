//! One call: its answer, its errors, its cancellation, its time (K32, K33, K36, K37).

use super::{
    hb::{Gate, Hb, Reply},
    *,
};
use drawbridge::backend::Ran;
use futures_util::future::join_all;

#[tokio::test]
async fn errors_of_the_server_pass_as_they_are() {
    let bodies = [
        r#"{"code":-32042,"message":"m","data":{"z":1,"a":[1.50]}}"#,
        r#"{"code":1e30,"message":"m"}"#,
        r#"{"code":-9999999999,"message":"m"}"#,
        r#"{"code":3.5,"message":"m"}"#,
        r#"{"code":"text","message":"m"}"#,
    ];
    for stream in [false, true] {
        for body in bodies {
            let hb = Hb::legacy()
                .on("tools/call", move |seen| {
                    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{body}}}"#, seen.id());
                    match stream {
                        true => Reply::events().raw(format!("data: {text}\n\n")),
                        false => Reply::status(200)
                            .header("content-type", "application/json; charset=utf-8")
                            .raw(text),
                    }
                })
                .start()
                .await;
            let (link, _) = legacy(&hb).await;
            let answer = link.call(tool_call(&link, "a")).await.unwrap();
            assert_eq!(answer.payload().unwrap(), body.as_bytes());
        }
    }
}

#[tokio::test]
async fn an_error_with_an_http_status_is_still_the_answer() {
    for status in [400, 404, 409, 422, 500, 502] {
        let hb = Hb::legacy()
            .without_sessions()
            .on("tools/call", move |seen| {
                Reply::json(seen.error(-32050, "no")).with_status(status)
            })
            .start()
            .await;
        let (link, _) = legacy(&hb).await;
        assert_eq!(
            call(&link, "a").await.unwrap()["error"]["code"],
            -32050,
            "{status}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_bears_the_id_as_text_or_an_error_without_id_is_taken() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let mut answer = seen.result(json!({"n": 1}));
            if tool(seen) == "text" {
                answer["id"] = seen.id().to_string().into();
            } else {
                answer = seen.error(-32000, "broken");
                answer["id"] = Value::Null;
            }
            Reply::json(answer)
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    let request = tool_call(&link, "text");
    let id = request.id;
    let answer = link.call(request).await.unwrap();
    assert_eq!(answer.own_id(), Some(id));
    let request = tool_call(&link, "null");
    let id = request.id;
    let answer = link.call(request).await.unwrap();
    assert_eq!(answer.own_id(), Some(id));
    assert_eq!(answer.error_code(), Some(-32000));
}

#[tokio::test]
async fn what_is_no_answer_is_called_that() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| match tool(seen).as_str() {
            "202" => Reply::status(202),
            "204" => Reply::status(204),
            "empty" => Reply::status(200),
            "html" => Reply::status(200)
                .header("content-type", "text/html")
                .raw("<p>"),
            "other" => Reply::json(json!({"jsonrpc": "2.0", "id": 9999, "result": {}})),
            _ => Reply::events().raw("data: {\"jsonrpc\":\n\n"),
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    for name in ["202", "204", "empty", "html", "other", "garbled"] {
        let answer = call(&link, name).await;
        assert!(
            matches!(answer, Err(Fault::NotMcp(_))),
            "{name}: {answer:?}"
        );
    }
    assert!(link.is_alive());
}

#[tokio::test]
async fn calls_of_one_link_run_side_by_side_and_never_cross() {
    let gates: Arc<Vec<Gate>> = Arc::new((0..20).map(|_| Gate::new()).collect());
    let held = gates.clone();
    let hb = Hb::legacy()
        .on("tools/call", move |seen| {
            let number: usize = tool(seen).parse().unwrap();
            let answer = seen.result(json!({"n": number}));
            match number % 2 {
                0 => Reply::json(answer).gate_head(&held[number]),
                _ => Reply::events().gate(&held[number]).message(answer),
            }
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let calls = join_all(names.iter().map(|name| call(&link, name)));
    let release = async {
        hb.wait_for_nth(20, |s| s.method() == "tools/call").await;
        // All are held, and the link is free for more.
        link.post(Bytes::from_static(
            br#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
        ))
        .await
        .unwrap();
        for number in (0..20).map(|n| (n * 7) % 20) {
            gates[number].open();
        }
    };
    let (answers, ()) = tokio::join!(calls, release);
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap()["result"]["n"], number);
    }
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_the_server_is_told() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| match tool(seen).as_str() {
            "head" => Reply::status(200).gate_head(&Gate::new()),
            _ => Reply::events().silence(),
        })
        .start()
        .await;
    let mut settings = settings(&hb);
    settings.call = Duration::from_millis(400);
    let (link, _) = legacy_with(settings).await;
    for name in ["head", "body"] {
        let request = tool_call(&link, name);
        let id = request.id;
        let fault = link.call(request).await.unwrap_err();
        assert_eq!(fault, Fault::TimedOut(Duration::from_millis(400)));
        let told = hb.wait_for(|s| s.json()["params"]["requestId"] == id).await;
        assert_eq!(told.method(), "notifications/cancelled");
        assert_eq!(told.header("mcp-session-id"), Some("session-1"));
    }
    assert!(link.is_alive());
}

#[tokio::test]
async fn progress_extends_a_call_up_to_its_limit() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| {
            let mut reply = Reply::events();
            let steps = if tool(seen) == "endless" { 100 } else { 6 };
            for step in 0..steps {
                reply = reply
                    .message(seen.progress(step))
                    .wait(Duration::from_millis(250));
            }
            reply.message(seen.result(json!({})))
        })
        .start()
        .await;
    let mut settings = settings(&hb);
    settings.call = Duration::from_secs(1);
    settings.call_max = Duration::from_millis(2500);
    let (link, ear) = legacy_with(settings).await;
    let request = tool_call(&link, "steady");
    let id = request.id;
    assert!(link.call(request).await.is_ok());
    let heard = ear.heard();
    assert_eq!(heard.len(), 6);
    assert!(
        heard
            .iter()
            .all(|(m, call)| *call == Some(id) && m["params"]["progressToken"] == id)
    );
    let answer = call(&link, "endless").await;
    assert!(matches!(answer, Err(Fault::TimedOut(_))), "{answer:?}");
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_the_server_is_told_why() {
    let hb = Hb::legacy()
        .on("tools/call", |_| Reply::events().silence())
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    let request = tool_call(&link, "a");
    let id = request.id;
    let cancel = async {
        hb.wait_for(|s| s.method() == "tools/call").await;
        link.cancel(id, Some(br#""no longer \u00e9""#));
    };
    let (answer, ()) = tokio::join!(link.call(request), cancel);
    assert_eq!(answer.unwrap_err(), Fault::Cancelled);
    let told = hb
        .wait_for(|s| s.method() == "notifications/cancelled")
        .await;
    assert_eq!(
        told.json()["params"],
        json!({"requestId": id, "reason": "no longer é"})
    );
    // Once is enough, and a call that is over cannot be cancelled.
    link.cancel(id, None);
    call_and_close(&hb, link).await;
    assert_eq!(hb.count("notifications/cancelled"), 1);
}

/// Gives everything that is on its way time to arrive: what follows on the link comes later.
async fn call_and_close(hb: &Hb, link: HttpLink) {
    link.post(Bytes::from_static(
        br#"{"jsonrpc":"2.0","method":"notifications/last"}"#,
    ))
    .await
    .unwrap();
    link.close().await;
    hb.wait_for(|s| s.method() == "DELETE").await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let hb = Hb::legacy()
        .on("tools/call", |_| Reply::events().silence())
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    let request = tool_call(&link, "a");
    let id = request.id;
    tokio::select! {
        _ = link.call(request) => unreachable!("the server is silent"),
        _ = hb.wait_for(|s| s.method() == "tools/call") => {}
    }
    let told = hb
        .wait_for(|s| s.method() == "notifications/cancelled")
        .await;
    assert_eq!(told.json()["params"]["requestId"], id);
}

#[tokio::test]
async fn a_dropped_call_to_a_modern_server_closes_its_stream() {
    let hb = Hb::modern()
        .on("tools/call", |_| Reply::events().silence())
        .start()
        .await;
    let (link, _) = modern_with(settings(&hb)).await;
    tokio::select! {
        _ = call(&link, "a") => unreachable!("the server is silent"),
        _ = hb.wait_for(|s| s.method() == "tools/call") => {}
    }
    hb.wait_until_open(1).await;
    assert_eq!(hb.count("notifications/cancelled"), 0);
}

#[tokio::test]
async fn a_refused_connection_provably_ran_nothing() {
    let hb = Hb::legacy().start().await;
    let (link, _) = legacy(&hb).await;
    // The listener closes with it.
    drop(hb);
    let fault = loop {
        match call(&link, "a").await {
            Err(Fault::Unreachable {
                ran: Ran::No,
                reason,
            }) => break reason,
            Err(Fault::Unreachable { .. } | Fault::Crashed { .. }) => {
                tokio::task::yield_now().await
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(fault.contains("refused"), "{fault}");
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_may_have_run_the_call() {
    let hb = Hb::legacy()
        .on("tools/call", |seen| match tool(seen).as_str() {
            "head" => Reply::status(200).cut_head(),
            "json" => Reply::status(200)
                .header("content-type", "application/json")
                .header("content-length", "100")
                .raw("{\"jsonrpc\"")
                .cut_short(),
            _ => Reply::events().raw(": hello\n\n").cut(),
        })
        .start()
        .await;
    let (link, _) = legacy(&hb).await;
    for name in ["head", "json", "events"] {
        let fault = call(&link, name).await.unwrap_err();
        assert!(fault.may_have_run(), "{name}: {fault:?}");
        assert!(
            matches!(fault, Fault::Unreachable { .. } | Fault::Crashed { .. }),
            "{fault:?}"
        );
    }
    assert_eq!(hb.count("tools/call"), 3);
}
