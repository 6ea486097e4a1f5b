//! K22: variables in the configuration, and the environment that processes get.

use crate::support::{
    gateway, sb,
    stock::{Stock, at, servers},
    until,
};
use drawbridge::config::{Config, Format};
use serde_json::{Value, json};

#[tokio::test]
async fn headers_and_addresses_are_expanded_on_every_request_and_connection() {
    let hb = Stock::of_all("one").legacy().start().await;
    // Cargo sets it for every test.
    let more = "headers: { X-Team: \"${CARGO_PKG_NAME}\", X-Else: \"${NOT_SET_ANYWHERE:-default}\", Authorization: \"Bearer ${CARGO_PKG_NAME}-key\" }";
    let gw = gateway(&servers(&[("one", at(&hb, more))])).await;
    let client = gw.client("/mcp").connected().await;
    client.tools().await;
    client.text("one__one-tool", json!({})).await;
    hb.forget_sessions();
    client.text("one__one-tool", json!({})).await;
    for seen in hb.seen() {
        assert_eq!(
            seen.header("x-team"),
            Some("mcp-drawbridge"),
            "{}",
            seen.method()
        );
        assert_eq!(seen.header("x-else"), Some("default"));
        assert_eq!(
            seen.header("authorization"),
            Some("Bearer mcp-drawbridge-key")
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn an_unset_variable_costs_its_own_server_only_and_is_named() {
    let hb = Stock::of_all("one").legacy().start().await;
    let good = Stock::of_all("good").legacy().start().await;
    let yaml = servers(&[
        (
            "one",
            at(
                &hb,
                "headers: { Authorization: \"Bearer ${NOT_SET_ANYWHERE}\" }",
            ),
        ),
        ("two", sb(&[], "env: { KEY: \"${NOT_SET_EITHER}\" }")),
        ("good", at(&good, "")),
    ]);
    let loaded = Config::parse("test.yaml", &yaml, Some(Format::Yaml), &|_| None);
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    let told = format!("{:?} {:?}", loaded.config.servers, loaded.warnings);
    for name in ["NOT_SET_ANYWHERE", "NOT_SET_EITHER"] {
        assert!(told.contains(name), "{name} in {told}");
    }
    let gw = gateway(&yaml).await;
    let client = gw.client("/mcp").connected().await;
    assert_eq!(client.tools().await, ["good__good-tool"]);
    for server in ["one", "two"] {
        let answer = client.call(&format!("{server}__x"), json!({})).await;
        assert_eq!(answer["error"]["code"], -31001, "{answer}");
    }
    assert!(hb.seen().is_empty(), "nothing was sent to it");
    gw.stop().await;
}

async fn environment(client: &crate::support::Client) -> Value {
    serde_json::from_str(&client.text("one__env", json!({})).await).unwrap()
}

#[tokio::test]
async fn a_process_gets_what_it_needs_and_nothing_of_the_gateways_own() {
    let more =
        "env: { OWN: \"${CARGO_PKG_NAME} \u{e9}\", EMPTY: \"\" }, inherit_env: [CARGO_PKG_VERSION]";
    let gw = gateway(&servers(&[("one", sb(&[], more))])).await;
    let client = gw.client("/mcp").connected().await;
    let before = environment(&client).await;
    assert_eq!(before["OWN"], "mcp-drawbridge \u{e9}");
    assert_eq!(before["EMPTY"], "");
    assert_eq!(before["PATH"], std::env::var("PATH").unwrap());
    assert_eq!(before["CARGO_PKG_VERSION"], env!("CARGO_PKG_VERSION"));
    // Cargo sets this one for the gateway of the test, as an operator may set a secret.
    assert_eq!(before.get("CARGO_MANIFEST_DIR"), None, "{before}");
    // The same after a crash.
    client.call("one__crash", json!({})).await;
    until("it is gone", || {
        gw.router.servers[0].metrics.processes.get() == 0
    })
    .await;
    assert_eq!(environment(&client).await, before);
    gw.stop().await;
}
