//! Nobody sees anything of anybody else: equal ids, equal tokens, all calls at a time, answered in any order.

use crate::support::{
    Client, Standing, TestGateway, arguments, echoing, gateway,
    hb::{Gate, Reply},
    keys::keys,
    sb, text, until,
};
use http::Method;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

const CLIENTS: usize = 24;
const QUICK: &str = "streams: { silence: 50ms, keep_alive: 100ms }\n";

/// Numbers below `count` in an order that differs from run to run.
fn shuffled(count: usize) -> Vec<usize> {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|n| random.hash_one(n));
    order
}

/// One call with the id and the token that all clients use, and what only this client may see.
fn call(tool: &str, who: usize) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tool, "arguments": {"who": who, "text": format!("for {who}"), "count": 3, "ms": 1}, "_meta": {"progressToken": "same"}}})
    .to_string()
}

/// Everything on the stream of a call: it must all be for `who`.
async fn read_all(client: &Client, tool: &str, who: usize) -> Vec<Value> {
    let accept = [
        "application/json",
        "text/event-stream",
        "application/json, text/event-stream",
    ][who % 3];
    let headers = [("accept", accept)];
    let response = client.send(Method::POST, &headers, call(tool, who)).await;
    if !response.is_stream() {
        return vec![response.json().await];
    }
    let mut stream = response.events();
    let mut all = Vec::new();
    while let Some(message) = stream.next().await {
        all.push(message);
    }
    all
}

async fn clients(gw: &TestGateway, keys: &[String], path: &str) -> Vec<Client> {
    let mut clients = Vec::new();
    for who in 0..CLIENTS {
        let mut client = gw.client(path);
        if !keys.is_empty() {
            client = client.key(&keys[who % keys.len()]);
        }
        client.initialize(json!({"elicitation": {}})).await;
        clients.push(client);
    }
    clients
}

#[tokio::test]
async fn over_http_everyone_gets_their_own_answer_progress_and_backend_session() {
    let gates: Arc<Mutex<HashMap<u64, Gate>>> = Arc::default();
    let held = gates.clone();
    let (script, standing) = Standing::on(echoing());
    let hb = script.on("tools/call", move |seen| {
        let who = arguments(seen)["who"].as_u64().unwrap();
        let gate = held.lock().unwrap().entry(who).or_default().clone();
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": {"who": who}}});
        let answer = seen.result(text(format!("for {who}")));
        match who % 2 {
            0 => Reply::events().message(seen.progress(who)).message(log).gate(&gate).message(seen.progress(who + 1000)).message(answer),
            _ => Reply::json(answer).gate_head(&gate),
        }
    });
    let hb = hb.start().await;
    let (auth, keys) = keys(&["ann", "bob", "cy", "di"]);
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{auth}{QUICK}",
        hb.url()
    ))
    .await;
    let clients = clients(&gw, &keys, "/mcp").await;
    let mut own_streams = Vec::new();
    for client in &clients {
        own_streams.push(client.listen().await);
    }
    let calls = clients
        .iter()
        .enumerate()
        .map(|(who, client)| read_all(client, "one__echo", who));
    let (answers, ()) = tokio::join!(futures_util::future::join_all(calls), async {
        hb.wait_for_nth(CLIENTS, |s| s.method() == "tools/call")
            .await;
        for who in shuffled(CLIENTS) {
            gates.lock().unwrap()[&(who as u64)].open();
        }
    });
    for (who, messages) in answers.iter().enumerate() {
        let (answer, before) = messages.split_last().unwrap();
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&json!(1), &json!(format!("for {who}"))),
            "{messages:?}"
        );
        for message in before {
            let params = &message["params"];
            match message["method"].as_str().unwrap() {
                "notifications/progress" => {
                    assert_eq!(params["progressToken"], "same");
                    assert_eq!(
                        params["progress"].as_u64().unwrap() % 1000,
                        who as u64,
                        "{message}"
                    );
                }
                _ => assert_eq!(params["data"]["who"], who, "{message}"),
            }
        }
    }
    // A backend session each, and none of another's.
    let seen = hb.seen();
    let sessions: HashMap<u64, String> = seen
        .iter()
        .filter(|s| s.method() == "tools/call")
        .map(|s| {
            (
                arguments(s)["who"].as_u64().unwrap(),
                s.header("mcp-session-id").unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(sessions.values().collect::<HashSet<_>>().len(), CLIENTS);
    // What a server says outside calls goes to the session that it says it to.
    for who in shuffled(CLIENTS) {
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": {"standing": who}}});
        standing.say(&sessions[&(who as u64)], &log);
    }
    for (who, stream) in own_streams.iter_mut().enumerate() {
        loop {
            let message = stream.next().await.unwrap();
            // A client that reads no events gets what belongs to its calls here.
            match message["params"]["data"]["standing"].as_u64() {
                Some(found) => {
                    assert_eq!(found, who as u64);
                    break;
                }
                None => {
                    let own = message["params"]["data"]["who"]
                        .as_u64()
                        .or(message["params"]["progress"].as_u64().map(|p| p % 1000));
                    assert_eq!((own, who % 3), (Some(who as u64), 0), "{message}");
                }
            }
        }
        assert!(stream.is_silent_for(Duration::from_millis(20)).await);
    }
}

#[tokio::test]
async fn on_one_shared_process_everyone_gets_their_own_answer_and_progress() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let option = format!("--journal={}", journal.path().display());
    let gw = gateway(&format!(
        "servers: {{ one: {} }}\n{QUICK}",
        sb(&[&option], "isolation: shared")
    ))
    .await;
    let clients = clients(&gw, &[], "/mcp").await;
    let held = || {
        std::fs::read_to_string(journal.path())
            .unwrap_or_default()
            .matches(r#""hold""#)
            .count()
    };
    let calls = clients
        .iter()
        .enumerate()
        .map(|(who, client)| read_all(client, "one__hold", who));
    let (answers, ()) = tokio::join!(futures_util::future::join_all(calls), async {
        until("all are held", || held() == CLIENTS).await;
        assert_eq!(
            clients[0].twin().text("one__release", json!({})).await,
            "released"
        );
    });
    for (who, messages) in answers.iter().enumerate() {
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert_eq!(
            messages[0]["result"]["content"][0]["text"],
            format!("for {who}")
        );
    }
    // Progress under one token for all, at the same time.
    let calls = clients
        .iter()
        .enumerate()
        .map(|(who, client)| read_all(client, "one__progress", who));
    for (who, messages) in futures_util::future::join_all(calls)
        .await
        .iter()
        .enumerate()
    {
        let (answer, before) = messages.split_last().unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "done");
        if who % 3 != 0 {
            let progress: Vec<_> = before
                .iter()
                .map(|m| m["params"]["progress"].as_u64().unwrap())
                .collect();
            assert_eq!(progress, [1, 2, 3]);
        }
    }
    let pids: HashSet<String> =
        futures_util::future::join_all(clients.iter().map(|c| c.text("one__pid", json!({}))))
            .await
            .into_iter()
            .collect();
    assert_eq!(pids.len(), 1);
}

#[tokio::test]
async fn nothing_that_a_shared_process_says_without_an_owner_reaches_anyone() {
    let gw = gateway(&format!(
        "servers: {{ one: {} }}\n{QUICK}",
        sb(&[], "isolation: shared")
    ))
    .await;
    let clients = clients(&gw, &[], "/mcp").await;
    let mut streams = Vec::new();
    for client in &clients {
        client.text("one__echo", json!({})).await;
        streams.push(client.listen().await);
    }
    let notes = [
        (
            "notifications/message",
            json!({"level": "emergency", "data": "secret"}),
        ),
        (
            "notifications/resources/updated",
            json!({"uri": "file:///secret"}),
        ),
        (
            "notifications/progress",
            json!({"progressToken": "same", "progress": 1}),
        ),
        ("notifications/vendor", json!({"secret": 1})),
        ("notifications/cancelled", json!({"requestId": 1})),
        (
            "notifications/elicitation/complete",
            json!({"elicitationId": "secret"}),
        ),
    ];
    let count = notes.len();
    for (method, params) in notes {
        assert_eq!(
            clients[0]
                .text("one__notify", json!({"method": method, "params": params}))
                .await,
            "sent"
        );
    }
    // A question without an owner is declined, though every client could answer it.
    let declined = clients[0]
        .text(
            "one__ask",
            json!({"method": "elicitation/create", "params": {"message": "secret"}}),
        )
        .await;
    assert!(declined.contains("-32601"), "{declined}");
    // Only what carries no content is for all.
    clients[0]
        .text(
            "one__notify",
            json!({"method": "notifications/tools/list_changed", "params": {}}),
        )
        .await;
    for stream in &mut streams[1..] {
        let message = stream.next().await.unwrap();
        assert_eq!(
            message,
            json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        );
        assert!(stream.is_silent_for(Duration::from_millis(20)).await);
    }
    assert!(gw.router.servers[0].metrics.dropped.get() >= count as u64 - 2);
}

#[tokio::test]
async fn with_a_process_each_nobody_meets_anybody() {
    let (auth, keys) = keys(&["ann", "bob", "cy"]);
    for (isolation, wanted) in [("session", 6), ("principal", 3)] {
        let gw = gateway(&format!(
            "servers: {{ one: {} }}\n{auth}{QUICK}",
            sb(&[], &format!("isolation: {isolation}"))
        ))
        .await;
        let mut clients = Vec::new();
        for who in 0..6 {
            clients.push(gw.client("/mcp").key(&keys[who % 3]).connected().await);
        }
        let pids =
            futures_util::future::join_all(clients.iter().map(|c| c.text("one__pid", json!({}))))
                .await;
        assert_eq!(
            pids.iter().collect::<HashSet<_>>().len(),
            wanted,
            "{isolation}"
        );
        assert!((0..3).all(|n| (pids[n] == pids[n + 3]) == (isolation == "principal")));
        let mut streams = Vec::new();
        for client in &clients {
            streams.push(client.listen().await);
        }
        let declared = futures_util::future::join_all(
            clients.iter().map(|c| c.text("one__declared", json!({}))),
        )
        .await;
        assert!(declared.iter().all(|d| d.contains("clientInfo")));
        // Held by one and released by another of its own only.
        let hold = call("one__hold", 0);
        let held = clients[0].send(Method::POST, &[], hold);
        let (held, _) = tokio::join!(held, async {
            futures_util::future::join_all(
                clients[1..3]
                    .iter()
                    .map(|c| c.text("one__release", json!({}))),
            )
            .await;
            loop {
                clients[if isolation == "session" { 0 } else { 3 }]
                    .twin()
                    .text("one__release", json!({}))
                    .await;
                if gw.router.calls() == 0 {
                    break;
                }
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(
            held.message().await["result"]["content"][0]["text"],
            "for 0"
        );
        for (who, stream) in streams.iter_mut().enumerate() {
            assert!(
                stream.is_silent_for(Duration::from_millis(10)).await,
                "{who}"
            );
        }
    }
}

#[tokio::test]
async fn modern_callers_with_equal_ids_never_cross_either() {
    let gates: Arc<Mutex<HashMap<u64, Gate>>> = Arc::default();
    let held = gates.clone();
    let hb = echoing().on("tools/call", move |seen| {
        let who = arguments(seen)["who"].as_u64().unwrap();
        let gate = held.lock().unwrap().entry(who).or_default().clone();
        Reply::events()
            .message(seen.progress(who))
            .gate(&gate)
            .message(seen.result(text(format!("for {who}"))))
    });
    let hb = hb.start().await;
    let (auth, keys) = keys(&["ann", "bob"]);
    let gw = gateway(&format!(
        "servers: {{ one: {{ url: {:?} }} }}\n{auth}{QUICK}",
        hb.url()
    ))
    .await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": 1});
    let calls = (0..CLIENTS).map(|who| {
        let client = gw.client("/mcp").key(&keys[who % 2]);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo", "arguments": {"who": who}, "_meta": meta}}).to_string();
        async move {
            let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "one__echo")];
            let mut stream = client.send(Method::POST, &headers, body).await.events();
            (stream.next().await.unwrap(), stream.next().await.unwrap())
        }
    });
    let (answers, ()) = tokio::join!(futures_util::future::join_all(calls), async {
        hb.wait_for_nth(CLIENTS, |s| s.method() == "tools/call")
            .await;
        for who in shuffled(CLIENTS) {
            gates.lock().unwrap()[&(who as u64)].open();
        }
    });
    for (who, (progress, answer)) in answers.iter().enumerate() {
        assert_eq!(
            (
                &progress["params"]["progress"],
                &progress["params"]["progressToken"]
            ),
            (&json!(who), &json!(1))
        );
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&json!(1), &json!(format!("for {who}")))
        );
    }
    // The callers of one key share a backend session; two keys never do.
    let mut by_session: HashMap<String, HashSet<u64>> = HashMap::new();
    for call in hb.seen().iter().filter(|s| s.method() == "tools/call") {
        let session = call.header("mcp-session-id").unwrap().to_owned();
        by_session
            .entry(session)
            .or_default()
            .insert(arguments(call)["who"].as_u64().unwrap() % 2);
    }
    assert!(
        by_session.values().all(|keys| keys.len() == 1),
        "{by_session:?}"
    );
}
