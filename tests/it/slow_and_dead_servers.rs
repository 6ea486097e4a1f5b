//! K21, K23: one server that is slow, dead or broken costs its own part and nothing else.

use crate::support::{
    Client, gateway,
    hb::{Gate, Hb, Reply, Script},
    sb,
    stock::{Stock, at, servers},
    until,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, atomic::{AtomicBool, Ordering}},
    time::{Duration, Instant},
};

const QUICK: &str = "discovery: { wait: 300ms, list_wait: 300ms }\n";

/// What is missing of a list, as its `_meta` says.
fn missing(answer: &Value) -> Value {
    answer["result"]["_meta"]["drawbridge/missingServers"].clone()
}

async fn lists_hold(client: &Client, label: &str) {
    for (method, member, key, item) in [
        ("tools/list", "tools", "name", format!("{label}__{label}-tool")),
        ("prompts/list", "prompts", "name", format!("{label}__{label}-prompt")),
        ("resources/list", "resources", "uri", format!("{label}://thing")),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", format!("{label}://item/{{id}}")),
    ] {
        let names = client.names(method, member, key).await;
        assert!(names.contains(&item), "{method}: {names:?}");
    }
}

/// Everything that a client asks of the healthy server works.
async fn all_is_well(client: &Client, label: &str) {
    lists_hold(client, label).await;
    let text = client.text(&format!("{label}__{label}-tool"), json!({})).await;
    assert!(text.contains(label));
    for (method, params) in [
        ("prompts/get", json!({"name": format!("{label}__{label}-prompt")})),
        ("resources/read", json!({"uri": format!("{label}://thing")})),
        ("resources/read", json!({"uri": format!("{label}://item/3")})),
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": format!("{label}__{label}-prompt")}, "argument": {"name": "a", "value": ""}})),
        ("ping", json!({})),
        ("logging/setLevel", json!({"level": "info"})),
    ] {
        let answer = client.request(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
    }
}

/// Servers that are of no use in one way each.
fn broken() -> Vec<(&'static str, Script)> {
    let gate = Gate::new;
    let hang = move |_: &crate::support::hb::Seen| Reply::status(200).gate_head(&gate());
    let plain = |status: u16| move |_: &crate::support::hb::Seen| Reply::status(status);
    vec![
        ("takes everything and answers nothing", Hb::bare().otherwise(hang).on("GET", hang)),
        ("500", Hb::bare().otherwise(plain(500))),
        ("503", Hb::bare().otherwise(plain(503))),
        ("401", Hb::bare().otherwise(plain(401))),
        ("404", Hb::bare().otherwise(plain(404))),
        ("429", Hb::bare().otherwise(plain(429))),
        ("a web page", Hb::bare().otherwise(|_| Reply::status(200).header("content-type", "text/html").raw("<html>hello</html>"))),
        ("half a message", Hb::bare().otherwise(|_| Reply::status(200).header("content-type", "application/json").raw("{\"jsonrpc\":"))),
        ("cuts connections", Hb::bare().otherwise(|_| Reply::status(200).cut_head())),
        ("a stream without an end", Hb::bare().otherwise(|_| Reply::events().silence())),
        ("a server that has no licence", Hb::legacy().on("initialize", |seen| Reply::json(seen.error(-32000, "no licence")))),
    ]
}

#[tokio::test]
async fn whatever_is_wrong_with_one_server_the_other_one_works() {
    let good = Stock::of_all("good").legacy().start().await;
    for (what, script) in broken() {
        let bad = script.start().await;
        let gw = gateway(&format!("{QUICK}{}", servers(&[("bad", at(&bad, "timeouts: { call: 1s }")), ("good", at(&good, ""))]))).await;
        let began = Instant::now();
        let client = gw.client("/mcp").connected().await;
        assert!(began.elapsed() < Duration::from_secs(2), "{what}: initialize took {:?}", began.elapsed());
        all_is_well(&client, "good").await;
        let answer = client.call("bad__anything", json!({})).await;
        let code = answer["error"]["code"].as_i64().unwrap();
        assert!([-31001, -31003, -31004].contains(&code), "{what}: {answer}");
        assert_eq!(answer["error"]["data"]["server"], "bad", "{what}: {answer}");
        let list = client.request("tools/list", json!({})).await;
        assert_eq!(missing(&list), json!(["bad"]), "{what}: {list}");
        let modern = gw.client("/mcp").modern("tools/list", json!({})).await.message().await;
        assert_eq!(modern["result"]["tools"].as_array().map(Vec::len), Some(1), "{what}: {modern}");
        assert_eq!(modern["result"]["ttlMs"], 0, "{what}: {modern}");
        assert!(began.elapsed() < Duration::from_secs(8), "{what}: all of it took {:?}", began.elapsed());
        gw.stop().await;
    }
}

#[tokio::test]
async fn a_command_that_is_not_there_costs_only_its_own_server() {
    let good = Stock::of_all("good").legacy().start().await;
    let none = "{ command: /nowhere/at-all }".to_owned();
    let gw = gateway(&format!("{QUICK}{}", servers(&[("none", none), ("good", at(&good, "")), ("crash", sb(&["--exit-at-start=1"], ""))]))).await;
    let client = gw.client("/mcp").connected().await;
    all_is_well(&client, "good").await;
    for server in ["none", "crash"] {
        let answer = client.call(&format!("{server}__x"), json!({})).await;
        assert_eq!(answer["error"]["code"], -31001, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(server), "{answer}");
    }
    gw.stop().await;
}

#[tokio::test]
async fn with_the_standard_settings_a_hanging_server_delays_nothing_much() {
    let gate = Gate::new();
    let held = gate.clone();
    let bad = Hb::bare().otherwise(move |_| Reply::status(200).gate_head(&held)).start().await;
    let good = Stock::of_all("good").legacy().start().await;
    let gw = gateway(&servers(&[("bad", at(&bad, "")), ("good", at(&good, ""))])).await;
    let began = Instant::now();
    let client = gw.client("/mcp").connected().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let began = Instant::now();
    client.text("good__good-tool", json!({})).await;
    client.request("resources/read", json!({"uri": "good://thing"})).await;
    client.request("logging/setLevel", json!({"level": "info"})).await;
    assert!(began.elapsed() < Duration::from_secs(1), "calls of the other: {:?}", began.elapsed());
    let (first, second) = (gw.client("/mcp").connected().await, gw.client("/mcp").connected().await);
    // All lists of all sessions together wait no longer than the bound for one list.
    let began = Instant::now();
    for client in [&client, &first, &second] {
        lists_hold(client, "good").await;
    }
    assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
    gate.open();
    gw.stop().await;
}

#[tokio::test]
async fn a_server_whose_list_hangs_is_waited_for_once_and_works_otherwise() {
    let gate = Gate::new();
    let held = gate.clone();
    let stock = Stock::of_all("bad");
    let bad = stock
        .legacy()
        .on("tools/list", move |seen| {
            Reply::json(seen.result(json!({"tools": [{"name": "late"}]}))).gate_head(&held)
        })
        .start()
        .await;
    let good = Stock::of_all("good").legacy().start().await;
    let wait = "discovery: { wait: 300ms, list_wait: 500ms }\n";
    let gw = gateway(&format!("{wait}{}", servers(&[("bad", at(&bad, "timeouts: { call: 5s }")), ("good", at(&good, ""))]))).await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    let list = client.request("tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(missing(&list), json!(["bad"]));
    let began = Instant::now();
    for _ in 0..5 {
        client.tools().await;
    }
    assert!(began.elapsed() < Duration::from_millis(1200), "{:?}", began.elapsed());
    let asked = bad.count("tools/list");
    assert!(asked <= 3, "a hanging server is asked {asked} times");
    // What hangs is the list of tools, not the server.
    let prompts = client.names("prompts/list", "prompts", "name").await;
    assert_eq!(prompts, ["bad__bad-prompt", "good__good-prompt"]);
    assert!(client.request("resources/read", json!({"uri": "bad://thing"})).await.get("result").is_some());
    gate.open();
    events.next_of("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, ["bad__late", "good__good-tool"]);
    gw.stop().await;
}

#[tokio::test]
async fn a_server_with_one_broken_list_keeps_the_others() {
    for reply in [
        |seen: &crate::support::hb::Seen| Reply::json(seen.error(-32603, "internal")),
        |_: &crate::support::hb::Seen| Reply::status(500),
        |seen: &crate::support::hb::Seen| Reply::json(seen.result(json!({"prompts": "none"}))),
    ] {
        let bad = Stock::of_all("bad").legacy().on("prompts/list", reply).start().await;
        let good = Stock::of_all("good").legacy().start().await;
        let gw = gateway(&format!("{QUICK}{}", servers(&[("bad", at(&bad, "")), ("good", at(&good, ""))]))).await;
        let client = gw.client("/mcp").connected().await;
        all_is_well(&client, "good").await;
        assert_eq!(client.tools().await, ["bad__bad-tool", "good__good-tool"]);
        let resources = client.request("resources/list", json!({})).await;
        assert_eq!(missing(&resources), Value::Null, "{resources}");
        assert_eq!(resources["result"]["resources"].as_array().map(Vec::len), Some(2));
        assert!(client.text("bad__bad-tool", json!({})).await.contains("bad"));
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
    let bad = ["initialize", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "tools/call", "prompts/get", "resources/read"]
        .into_iter()
        .fold(bad, |script, method| script.gone_unless(method, &flag));
    let bad = bad.start().await;
    let good = Stock::of_all("good").legacy().start().await;
    let gw = gateway(&format!("{QUICK}{}", servers(&[("bad", at(&bad, "")), ("good", at(&good, ""))]))).await;
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
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "bad__bad-prompt"}, "argument": {"name": "a", "value": ""}})),
    ] {
        let answer = client.request(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], -31001, "{method} {params}: {answer}");
        assert_eq!(answer["error"]["data"]["server"], "bad", "{answer}");
    }
    all_is_well(&client, "good").await;
    assert_eq!(client.tools().await, tools, "what was last known stays listed");
    // A name that no server can have is unknown all the same.
    let answer = client.call("good__nothing", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    gw.stop().await;
}

#[tokio::test]
async fn a_server_that_starts_slowly_appears_in_the_same_session_and_is_announced() {
    let good = Stock::of_all("good").legacy().start().await;
    let quick = "discovery: { wait: 100ms, list_wait: 100ms }\n";
    let gw = gateway(&format!("{quick}{}", servers(&[("slow", sb(&["--init-delay=900"], "")), ("good", at(&good, ""))]))).await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    let tools = client.tools().await;
    assert_eq!(tools, ["good__good-tool"]);
    events.next_of("notifications/tools/list_changed").await;
    let tools = client.tools().await;
    assert!(tools.contains(&"slow__echo".to_owned()), "{tools:?}");
    assert_eq!(client.text("slow__echo", json!({})).await, "{}");
    gw.stop().await;
}

#[tokio::test]
async fn a_first_start_longer_than_its_limit_is_not_killed_but_finishes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("installed").display().to_string();
    let slow = sb(&[&format!("--install={file},1500")], "start: { timeout: 300ms }");
    let gw = gateway(&format!("{QUICK}{}", servers(&[("slow", slow)]))).await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    events.next_of("notifications/tools/list_changed").await;
    assert!(client.tools().await.contains(&"slow__echo".to_owned()));
    assert_eq!(client.text("slow__echo", json!({})).await, "{}");
    gw.stop().await;
}

#[tokio::test]
async fn the_return_of_a_dead_server_is_announced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("there");
    let option = format!("--exit-unless={}", file.display());
    let up = Arc::new(AtomicBool::new(false));
    let http = Stock::of_all("http").legacy().gone_unless("initialize", &up).start().await;
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
    while !(tools.contains(&"dead__echo".to_owned()) && tools.contains(&"http__http-tool".to_owned())) {
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
    let all = servers(&[("one", sb(&["--tools=1"], "")), ("remote", at(&http, "")), ("two", sb(&["--era=modern"], ""))]);
    let gw = gateway(&all).await;
    let client = gw.client("/mcp").connected().await;
    let modern = gw.client("/mcp").modern("tools/list", json!({})).await.message().await;
    let modern: Vec<&str> = modern["result"]["tools"].as_array().unwrap().iter().filter_map(|t| t["name"].as_str()).collect();
    let tools = client.tools().await;
    for name in ["one__tool0", "remote__remote-tool", "two__echo"] {
        assert!(tools.iter().any(|t| t == name), "{name} in {tools:?}");
        assert!(modern.contains(&name), "{name} in {modern:?}");
    }
    gw.stop().await;
}

#[tokio::test]
async fn many_servers_that_start_one_after_the_other_all_come_up() {
    let mut all = Vec::new();
    let names: Vec<String> = (0..12).map(|n| format!("s{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        all.push((name.as_str(), sb(&[&format!("--init-delay={}", n * 80)], "")));
    }
    let gw = gateway(&format!("discovery: {{ wait: 100ms, list_wait: 100ms }}\n{}", servers(&all))).await;
    let client = gw.client("/mcp").connected().await;
    let mut events = client.listen().await;
    let listed = |tools: &[String]| names.iter().filter(|n| tools.contains(&format!("{n}__echo"))).count();
    let mut tools = client.tools().await;
    while listed(&tools) < names.len() {
        events.next_of("notifications/tools/list_changed").await;
        tools = client.tools().await;
    }
    gw.stop().await;
}

#[tokio::test]
async fn a_gateway_of_dead_servers_only_answers_within_its_bound() {
    let gate = Gate::new();
    let held = gate.clone();
    let dead = Hb::bare().otherwise(move |_| Reply::status(200).gate_head(&held)).start().await;
    let gw = gateway(&format!("{QUICK}{}", servers(&[("dead", at(&dead, ""))]))).await;
    for path in ["/mcp", "/mcp/dead"] {
        let began = Instant::now();
        let client = gw.client(path).connected().await;
        assert!(began.elapsed() < Duration::from_secs(2), "{path}: {:?}", began.elapsed());
        let began = Instant::now();
        let list = client.request("tools/list", json!({})).await;
        assert!(began.elapsed() < Duration::from_secs(2), "{path}: {:?}", began.elapsed());
        let empty = list["result"]["tools"] == json!([]) && missing(&list) == json!(["dead"]);
        assert!(empty || list["error"]["code"] == -31001, "{path}: {list}");
        assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
    }
    gate.open();
    gw.stop().await;
}

#[tokio::test]
async fn a_level_reaches_the_others_where_one_server_does_not_answer() {
    let gate = Gate::new();
    let held = gate.clone();
    let slow = Stock::of_all("slow")
        .legacy()
        .on("logging/setLevel", move |seen| Reply::json(seen.result(json!({}))).gate_head(&held))
        .start()
        .await;
    let good = Stock::of_all("good").legacy().start().await;
    let gw = gateway(&format!("{QUICK}{}", servers(&[("slow", at(&slow, "")), ("good", at(&good, ""))]))).await;
    let client = gw.client("/mcp").connected().await;
    client.text("slow__slow-tool", json!({})).await;
    client.text("good__good-tool", json!({})).await;
    let began = Instant::now();
    let answer = client.request("logging/setLevel", json!({"level": "error"})).await;
    assert_eq!(answer["result"], json!({}));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    good.wait_for(|s| s.method() == "logging/setLevel").await;
    gate.open();
    gw.stop().await;
}

#[tokio::test]
async fn the_state_of_each_server_can_be_seen() {
    let dead = Hb::bare().start().await;
    let good = Stock::of_all("good").legacy().start().await;
    let gw = gateway(&format!("{QUICK}{}", servers(&[("dead", at(&dead, "")), ("good", at(&good, ""))]))).await;
    let up = |n: usize| gw.router.servers[n].metrics.up.get();
    until("each server's state shows", || up(0) == 0 && up(1) == 1).await;
    gw.stop().await;
}
