//! K23: one server that is dead or broken costs its own part and nothing else, and is welcome back.

use crate::support::{
    gateway,
    hb::{Gate, Hb, Reply, Script},
    health::{QUICK, all_is_well, missing},
    sb,
    stock::{Stock, at, servers},
    until,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Servers that are of no use in one way each.
fn broken() -> Vec<(&'static str, Script)> {
    let gate = Gate::new;
    let hang = move |_: &crate::support::hb::Seen| Reply::status(200).gate_head(&gate());
    let plain = |status: u16| move |_: &crate::support::hb::Seen| Reply::status(status);
    vec![
        (
            "takes everything and answers nothing",
            Hb::bare().otherwise(hang).on("GET", hang),
        ),
        ("500", Hb::bare().otherwise(plain(500))),
        ("503", Hb::bare().otherwise(plain(503))),
        ("401", Hb::bare().otherwise(plain(401))),
        ("404", Hb::bare().otherwise(plain(404))),
        ("429", Hb::bare().otherwise(plain(429))),
        (
            "a web page",
            Hb::bare().otherwise(|_| {
                Reply::status(200)
                    .header("content-type", "text/html")
                    .raw("<html>hello</html>")
            }),
        ),
        (
            "half a message",
            Hb::bare().otherwise(|_| {
                Reply::status(200)
                    .header("content-type", "application/json")
                    .raw("{\"jsonrpc\":")
            }),
        ),
        (
            "cuts connections",
            Hb::bare().otherwise(|_| Reply::status(200).cut_head()),
        ),
        (
            "a stream without an end",
            Hb::bare().otherwise(|_| Reply::events().silence()),
        ),
        (
            "a server that has no licence",
            Hb::legacy().on("initialize", |seen| {
                Reply::json(seen.error(-32000, "no licence"))
            }),
        ),
    ]
}

#[tokio::test]
async fn whatever_is_wrong_with_one_server_the_other_one_works() {
    let good = Stock::of_all("good").legacy().start().await;
    let good = &good;
    let trials = broken().into_iter().map(|(what, script)| async move {
        let bad = script.start().await;
        let gw = gateway(&format!(
            "{QUICK}{}",
            servers(&[
                ("bad", at(&bad, "timeouts: { call: 1s }")),
                ("good", at(good, ""))
            ])
        ))
        .await;
        let began = Instant::now();
        let client = gw.client("/mcp").connected().await;
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{what}: initialize took {:?}",
            began.elapsed()
        );
        all_is_well(&client, "good").await;
        let answer = client.call("bad__anything", json!({})).await;
        let code = answer["error"]["code"].as_i64().unwrap();
        assert!([-31001, -31003, -31004].contains(&code), "{what}: {answer}");
        assert_eq!(answer["error"]["data"]["server"], "bad", "{what}: {answer}");
        let list = client.request("tools/list", json!({})).await;
        assert_eq!(missing(&list), json!(["bad"]), "{what}: {list}");
        let modern = gw
            .client("/mcp")
            .modern("tools/list", json!({}))
            .await
            .message()
            .await;
        assert_eq!(
            modern["result"]["tools"].as_array().map(Vec::len),
            Some(1),
            "{what}: {modern}"
        );
        assert_eq!(modern["result"]["ttlMs"], 0, "{what}: {modern}");
        assert!(
            began.elapsed() < Duration::from_secs(8),
            "{what}: all of it took {:?}",
            began.elapsed()
        );
        gw.stop().await;
    });
    futures_util::future::join_all(trials).await;
}

#[tokio::test]
async fn a_command_that_is_not_there_costs_only_its_own_server() {
    let good = Stock::of_all("good").legacy().start().await;
    let none = "{ command: /nowhere/at-all }".to_owned();
    let gw = gateway(&format!(
        "{QUICK}{}",
        servers(&[
            ("none", none),
            ("good", at(&good, "")),
            ("crash", sb(&["--exit-at-start=1"], ""))
        ])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    all_is_well(&client, "good").await;
    for server in ["none", "crash"] {
        let answer = client.call(&format!("{server}__x"), json!({})).await;
        assert_eq!(answer["error"]["code"], -31001, "{answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains(server),
            "{answer}"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_server_with_one_broken_list_keeps_the_others() {
    for reply in [
        |seen: &crate::support::hb::Seen| Reply::json(seen.error(-32603, "internal")),
        |_: &crate::support::hb::Seen| Reply::status(500),
        |seen: &crate::support::hb::Seen| Reply::json(seen.result(json!({"prompts": "none"}))),
    ] {
        let bad = Stock::of_all("bad")
            .legacy()
            .on("prompts/list", reply)
            .start()
            .await;
        let good = Stock::of_all("good").legacy().start().await;
        let gw = gateway(&format!(
            "{QUICK}{}",
            servers(&[("bad", at(&bad, "")), ("good", at(&good, ""))])
        ))
        .await;
        let client = gw.client("/mcp").connected().await;
        all_is_well(&client, "good").await;
        assert_eq!(client.tools().await, ["bad__bad-tool", "good__good-tool"]);
        let resources = client.request("resources/list", json!({})).await;
        assert_eq!(missing(&resources), Value::Null, "{resources}");
        assert_eq!(
            resources["result"]["resources"].as_array().map(Vec::len),
            Some(2)
        );
        assert!(
            client
                .text("bad__bad-tool", json!({}))
                .await
                .contains("bad")
        );
        gw.stop().await;
    }
}

#[tokio::test]
async fn calls_to_a_server_that_cannot_be_reached_say_so_whatever_they_ask_for() {
    let up = Arc::new(AtomicBool::new(true));
    let flag = up.clone();
    let stock = Stock::of_all("bad");
    let inner = stock.clone();
    let bad = inner.legacy();
    // Works, then is gone: every request is refused as by a proxy without a server behind it.
    let bad = [
        "initialize",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "tools/call",
        "prompts/get",
        "resources/read",
    ]
    .into_iter()
    .fold(bad, |script, method| script.gone_unless(method, &flag));
    let bad = bad.start().await;
    let good = Stock::of_all("good").legacy().start().await;
    let gw = gateway(&format!(
        "{QUICK}{}",
        servers(&[("bad", at(&bad, "")), ("good", at(&good, ""))])
    ))
    .await;
    let client = gw.client("/mcp").connected().await;
    let tools = client.tools().await;
    assert_eq!(tools, ["bad__bad-tool", "good__good-tool"]);
    up.store(false, Ordering::SeqCst);
    bad.forget_sessions();
    for (method, params) in [
        ("tools/call", json!({"name": "bad__bad-tool"})),
        ("tools/call", json!({"name": "bad__other"})),
        ("prompts/get", json!({"name": "bad__bad-prompt"})),
        ("prompts/get", json!({"name": "bad__other"})),
        ("resources/read", json!({"uri": "bad://thing"})),
        ("resources/read", json!({"uri": "bad://item/4"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "bad__bad-prompt"}, "argument": {"name": "a", "value": ""}}),
        ),
    ] {
        let answer = client.request(method, params.clone()).await;
        assert_eq!(
            answer["error"]["code"], -31001,
            "{method} {params}: {answer}"
        );
        assert_eq!(answer["error"]["data"]["server"], "bad", "{answer}");
    }
    all_is_well(&client, "good").await;
    assert_eq!(
        client.tools().await,
        tools,
        "what was last known stays listed"
    );
    // A name that no server can have is unknown all the same.
    let answer = client.call("good__nothing", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    gw.stop().await;
}

#[tokio::test]
async fn the_return_of_a_dead_server_is_announced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("there");
    let option = format!("--exit-unless={}", file.display());
    let up = Arc::new(AtomicBool::new(false));
    let http = Stock::of_all("http")
        .legacy()
        .gone_unless("initialize", &up)
        .start()
        .await;
    let good = Stock::of_all("good").legacy().start().await;
    let all = servers(&[
        ("dead", sb(&[&option], "start: { backoff: 10ms..50ms }")),
        ("http", at(&http, "")),
        ("good", at(&good, "")),
    ]);
    let gw = gateway(&format!("{QUICK}{all}")).await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    let list = client.request("tools/list", json!({})).await;
    assert_eq!(missing(&list), json!(["dead", "http"]), "{list}");
    std::fs::write(&file, "").unwrap();
    up.store(true, Ordering::SeqCst);
    let mut tools = Vec::new();
    while !(tools.contains(&"dead__echo".to_owned())
        && tools.contains(&"http__http-tool".to_owned()))
    {
        events.next_of("notifications/tools/list_changed").await;
        tools = client.tools().await;
    }
    assert!(tools.contains(&"good__good-tool".to_owned()));
    assert_eq!(client.text("dead__echo", json!({})).await, "{}");
    gw.stop().await;
}

#[tokio::test]
async fn one_remote_and_two_local_servers_show_all_their_tools() {
    let http = Stock::of_all("remote").legacy().start().await;
    let all = servers(&[
        ("one", sb(&["--tools=1"], "")),
        ("remote", at(&http, "")),
        ("two", sb(&["--era=modern"], "")),
    ]);
    let gw = gateway(&all).await;
    let client = gw.client("/mcp").connected().await;
    let modern = gw
        .client("/mcp")
        .modern("tools/list", json!({}))
        .await
        .message()
        .await;
    let modern: Vec<&str> = modern["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|t| t["name"].as_str())
        .collect();
    let tools = client.tools().await;
    for name in ["one__tool0", "remote__remote-tool", "two__echo"] {
        assert!(tools.iter().any(|t| t == name), "{name} in {tools:?}");
        assert!(modern.contains(&name), "{name} in {modern:?}");
    }
    gw.stop().await;
}

#[tokio::test]
async fn the_state_of_each_server_can_be_seen() {
    let dead = Hb::bare().start().await;
    let good = Stock::of_all("good").legacy().start().await;
    let gw = gateway(&format!(
        "{QUICK}{}",
        servers(&[("dead", at(&dead, "")), ("good", at(&good, ""))])
    ))
    .await;
    let up = |n: usize| gw.router.servers[n].metrics.up.get();
    until("each server's state shows", || up(0) == 0 && up(1) == 1).await;
    gw.stop().await;
}
