//! K45: every plain call of every client revision with servers of every revision, on both transports.

use crate::support::{
    caller::{Caller, LEGACY, MODERN, names},
    gateway,
    stock::{example, servers},
};
use drawbridge::example::{ExampleArgs, Spoken, Which, serve};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

/// An example server over HTTP; it ends with the guard.
async fn remote(which: Which, revision: &str) -> (String, DropGuard) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mut args = ExampleArgs::new(which);
    args.protocol = revision.parse::<Spoken>().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(serve(args, listener, stop.clone()));
    (format!("{{ url: {url:?} }}"), stop.drop_guard())
}

/// Everything that two sides can do without each other's answers.
async fn plain_calls(caller: &Caller, way: &str) {
    let weather = format!("weather-{way}");
    let travel = format!("travel-{way}");
    let tools = caller.result("list", "tools/list", json!({})).await;
    assert!(
        names(&tools, "tools").contains(&format!("{weather}__checkWeather")),
        "{}: {tools}",
        caller.name
    );
    let prompts = caller.result("prompts", "prompts/list", json!({})).await;
    assert!(
        names(&prompts, "prompts").contains(&format!("{travel}__plan-vacation")),
        "{}: {prompts}",
        caller.name
    );
    let call = json!({"name": format!("{weather}__checkWeather"), "arguments": {"city": "Paris"}});
    let called = caller.result("call", "tools/call", call).await;
    assert!(
        called["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("Paris"),
        "{called}"
    );
    let bad = json!({"name": format!("{weather}__checkWeather"), "arguments": {"city": "Nowhere"}});
    let failed = caller.result("a tool's failure", "tools/call", bad).await;
    assert_eq!(failed["isError"], true, "{failed}");
    let uri = format!("{weather}+weather://forecast/Paris/2024-06-15");
    let read = caller
        .result("read", "resources/read", json!({"uri": uri}))
        .await;
    assert!(
        read["contents"][0]["text"]
            .as_str()
            .unwrap()
            .contains("Paris"),
        "{read}"
    );
    let missing = caller
        .ask(
            "resources/read",
            json!({"uri": format!("{weather}+weather://forecast/Nowhere/2024-06-15")}),
        )
        .await;
    let code = if caller.modern { -32602 } else { -32002 };
    assert_eq!(missing["error"]["code"], code, "{}: {missing}", caller.name);
    let get = json!({"name": format!("{travel}__plan-vacation"), "arguments": {"destination": "Barcelona", "budget": "3000"}});
    let prompt = caller.result("prompt", "prompts/get", get).await;
    assert!(
        prompt["messages"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("Barcelona"),
        "{prompt}"
    );
    let complete = json!({"ref": {"type": "ref/resource", "uri": format!("{weather}+weather://forecast/{{city}}/{{date}}")}, "argument": {"name": "city", "value": "Par"}});
    let completed = caller
        .result("complete", "completion/complete", complete)
        .await;
    assert_eq!(
        completed["completion"]["values"],
        json!(["Paris", "Park City"]),
        "{}",
        caller.name
    );
    progress_and_cancel(caller, &weather).await;
}

async fn progress_and_cancel(caller: &Caller, weather: &str) {
    let wait = |seconds: f64, token: Value| json!({"name": format!("{weather}__wait"), "arguments": {"seconds": seconds, "steps": 3}, "_meta": {"progressToken": token}});
    let mut events = caller.start(wait(0.15, json!("mine"))).await;
    let mut seen = 0;
    loop {
        let message = events.next().await.expect("an answer");
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "mine");
            seen += 1;
        } else if message.get("method").is_none() {
            assert!(
                message.get("result").is_some(),
                "{}: {message}",
                caller.name
            );
            break;
        }
    }
    assert!(seen >= 1, "{}: progress comes", caller.name);
    let activity = async || {
        let uri = format!("{weather}+weather://activity");
        let read = caller
            .result("activity", "resources/read", json!({"uri": uri}))
            .await;
        serde_json::from_str::<Value>(read["contents"][0]["text"].as_str().unwrap()).unwrap()
    };
    let before = activity().await["cancelled"].as_u64().unwrap();
    let mut events = caller.start(wait(100.0, json!(1))).await;
    while activity().await["running"] == 0 {}
    match caller.modern {
        true => drop(events),
        false => {
            caller
                .client
                .notify("notifications/cancelled", json!({"requestId": "open"}))
                .await;
            let answer = events.next().await.expect("an answer");
            assert!(answer.get("error").is_some(), "{}: {answer}", caller.name);
        }
    }
    while activity().await["cancelled"] == before {}
}

/// All client revisions against a server of one revision, on both transports.
async fn row(server: &str) {
    let (weather, _weather) = remote(Which::Weather, server).await;
    let (travel, _travel) = remote(Which::Travel, server).await;
    let all = servers(&[
        (
            "weather-stdio",
            example(&["weather", "--protocol", server], ""),
        ),
        (
            "travel-stdio",
            example(&["travel", "--protocol", server], ""),
        ),
        ("weather-http", weather),
        ("travel-http", travel),
    ]);
    // A call that is left open becomes a stream soon.
    let gw = gateway(&format!("streams: {{ silence: 20ms }}\n{all}")).await;
    for client in LEGACY.into_iter().chain([MODERN]) {
        let caller = Caller::of(&gw, client).await;
        plain_calls(&caller, "stdio").await;
        plain_calls(&caller, "http").await;
    }
    gw.stop().await;
}

#[tokio::test]
async fn every_client_uses_a_server_of_2025_03_26() {
    row("2025-03-26").await;
}

#[tokio::test]
async fn every_client_uses_a_server_of_2025_06_18() {
    row("2025-06-18").await;
}

#[tokio::test]
async fn every_client_uses_a_server_of_2025_11_25() {
    row("2025-11-25").await;
}

#[tokio::test]
async fn every_client_uses_a_server_of_2026_07_28() {
    row("2026-07-28").await;
}

#[tokio::test]
async fn every_client_uses_a_server_of_all_revisions() {
    row("all").await;
}

#[tokio::test]
async fn every_client_uses_a_stdio_server_of_2024_11_05() {
    let all = servers(&[
        (
            "weather-stdio",
            example(&["weather", "--protocol", "2024-11-05"], ""),
        ),
        (
            "travel-stdio",
            example(&["travel", "--protocol", "2024-11-05"], ""),
        ),
    ]);
    // A call that is left open becomes a stream soon.
    let gw = gateway(&format!("streams: {{ silence: 20ms }}\n{all}")).await;
    for client in LEGACY.into_iter().chain([MODERN]) {
        let caller = Caller::of(&gw, client).await;
        plain_calls(&caller, "stdio").await;
    }
    gw.stop().await;
}
