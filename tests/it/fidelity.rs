//! K31, K32: what servers say arrives as they said it, errors included.

use crate::support::{
    Client, gateway,
    hb::{Hb, Reply, Script, Seen},
    sb,
    stock::{Stock, at, servers},
};
use bytes::Bytes;
use serde_json::{Value, json};

/// A tool with every field of the protocol and more, as text: numbers that no float holds, spaces, escapes.
const TOOL: &str = r##"{"zz":1,"name":"t","title":"T \u00e9","description":"d\u2028","icons":[{"src":"data:x","sizes":["48x48"]}],"inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"a":{"type":"integer","maximum":123456789012345678901234567890}},"properties":{"p":{"$ref":"#/$defs/a"},"q":{"type":"number","multipleOf":1.50}},"required":["p"]},"outputSchema":{"type":"object","properties":{"r":{"const":1e400}}},"annotations":{"readOnlyHint":true,"x":null},"execution":{"taskSupport":"optional"},"_meta":{"com.example/a":[1,{"b":9007199254740993}]},"aa":"last"}"##;

/// The same for a result.
const RESULT: &str = r#"{"content":[{"type":"text","text":"a\/b\u0000","annotations":{"audience":["user"]},"_meta":{"k":1.0}},{"type":"new-kind","x":[]}],"structuredContent":{"big":9007199254740993,"huge":1e400,"exact":0.10000000000000000555,"neg":-0,"z":1,"a":2},"isError":true,"_meta":{"com.example/trace":"t","n":18446744073709551616},"unknown":{"deep":{"er":[null,true]}}}"#;

fn raw_result(seen: &Seen, result: &str) -> Reply {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        seen.id()
    );
    Reply::status(200)
        .header("content-type", "application/json")
        .raw(text)
}

fn raw_error(seen: &Seen, error: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, seen.id())
}

fn faithful() -> Script {
    Hb::legacy()
        .on("tools/list", |seen| {
            raw_result(seen, &format!("{{\"tools\":[{TOOL}]}}"))
        })
        .on("tools/call", |seen| raw_result(seen, RESULT))
}

async fn text_of(client: &Client, method: &str, params: Value) -> String {
    let message = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
    client.post(&message).await.text().await
}

#[tokio::test]
async fn a_tool_keeps_every_byte_but_its_name() {
    let hb = faithful().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let merged = gw.client("/mcp").connected().await;
    let list = text_of(&merged, "tools/list", json!({})).await;
    assert!(
        list.contains(&TOOL.replace("\"name\":\"t\"", "\"name\":\"one__t\"")),
        "{list}"
    );
    let alone = gw.client("/mcp/one").connected().await;
    let list = text_of(&alone, "tools/list", json!({})).await;
    assert!(list.contains(TOOL), "{list}");
    let modern = gw
        .client("/mcp")
        .modern("tools/list", json!({}))
        .await
        .text()
        .await;
    assert!(
        modern.contains(&TOOL.replace("\"name\":\"t\"", "\"name\":\"one__t\"")),
        "{modern}"
    );
    gw.stop().await;
}

#[tokio::test]
async fn a_result_keeps_every_byte() {
    let hb = faithful().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    for (path, name) in [("/mcp", "one__t"), ("/mcp/one", "t")] {
        let client = gw.client(path).connected().await;
        let answer = text_of(&client, "tools/call", json!({"name": name})).await;
        assert_eq!(
            answer,
            format!(r#"{{"jsonrpc":"2.0","id":5,"result":{RESULT}}}"#)
        );
        let modern = gw
            .client(path)
            .modern("tools/call", json!({"name": name}))
            .await
            .text()
            .await;
        let (before, meta) = RESULT[1..].split_once("\"_meta\":{\"com").unwrap();
        assert!(
            modern.contains(before) && modern.contains(&format!("\"com{meta}")),
            "{modern}"
        );
    }
    gw.stop().await;
}

#[tokio::test]
async fn arguments_and_metadata_reach_the_server_as_they_were_sent() {
    let hb = Stock::new("one", json!({"tools": ["t"]}))
        .legacy()
        .start()
        .await;
    let modern = Stock::new("new", json!({"tools": ["t"]}))
        .modern()
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, "")), ("new", at(&modern, ""))])).await;
    let arguments = r#"{"z":1.50,"big":9007199254740993,"a":"\u00e9\u2028","huge":1e300,"n":123456789012345678901234567890,"deep":[{"x":null}]}"#;
    let meta = r#""com.example/k":[9007199254740993,1e+2]"#;
    for server in ["one", "new"] {
        let client = gw.client("/mcp").connected().await;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"{server}__t","arguments":{arguments},"_meta":{{{meta}}},"later":true}}}}"#
        );
        let answer = client
            .send(http::Method::POST, &[], body)
            .await
            .message()
            .await;
        assert!(answer.get("result").is_some(), "{answer}");
        let modern_body = format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"{server}__t","arguments":{arguments},"_meta":{{{meta},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"c","version":"1"}}}},"later":true}}}}"#
        );
        let name = format!("{server}__t");
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", name.as_str()),
        ];
        let answer = gw
            .client("/mcp")
            .send(http::Method::POST, &headers, modern_body)
            .await
            .message()
            .await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
    for hb in [&hb, &modern] {
        let calls: Vec<Seen> = hb
            .seen()
            .into_iter()
            .filter(|s| s.method() == "tools/call")
            .collect();
        assert_eq!(calls.len(), 2);
        for call in calls {
            let text = String::from_utf8(call.body.to_vec()).unwrap();
            assert!(
                text.contains(&format!("\"arguments\":{arguments}")),
                "{text}"
            );
            assert!(
                text.contains(meta) && text.contains("\"later\":true"),
                "{text}"
            );
            assert!(
                call.json()["id"].is_i64(),
                "an id that every server takes: {text}"
            );
        }
    }
    gw.stop().await;
}

#[tokio::test]
async fn what_the_operator_changes_of_a_tool_changes_nothing_else() {
    let hb = faithful().start().await;
    let more = "tools: { describe: { t: \"ours\" }, fix: { t: { q: 7 } } }";
    let gw = gateway(&servers(&[("one", at(&hb, more))])).await;
    let client = gw.client("/mcp").connected().await;
    let list = text_of(&client, "tools/list", json!({})).await;
    for part in [
        "\"maximum\":123456789012345678901234567890",
        "{\"const\":1e400}",
        "\"description\":\"ours\"",
        "\"com.example/a\":[1,{\"b\":9007199254740993}]",
    ] {
        assert!(list.contains(part), "{part} in {list}");
    }
    assert!(
        !list.contains("multipleOf"),
        "the fixed parameter is hidden: {list}"
    );
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__t","arguments":{"p":9007199254740993,"r":1.50}}}"#;
    client.send(http::Method::POST, &[], body).await;
    let seen = hb.wait_for(|s| s.method() == "tools/call").await;
    let text = String::from_utf8(seen.body.to_vec()).unwrap();
    assert!(
        text.contains(r#""arguments":{"p":9007199254740993,"r":1.50,"q":7}"#),
        "{text}"
    );
    gw.stop().await;
}

#[tokio::test]
async fn errors_of_a_server_pass_with_code_message_and_data_at_status_200() {
    let errors = [
        r#"{"code":-32042,"message":"m","data":{"a":[1,9007199254740993],"z":1e400}}"#,
        r#"{"code":0,"message":""}"#,
        r#"{"code":-1,"message":"x","data":null,"more":1}"#,
        r#"{"code":-32603,"message":"internal","data":"text"}"#,
        r#"{"code":2147483647,"message":"big"}"#,
        r#"{"code":-32602,"message":"bad arguments"}"#,
    ];
    for as_stream in [false, true] {
        for error in errors {
            let hb = Stock::new(
                "one",
                json!({"tools": ["t"], "prompts": ["p"], "resources": ["a://x"]}),
            )
            .legacy();
            let hb = ["tools/call", "prompts/get"]
                .into_iter()
                .fold(hb, |hb, method| {
                    hb.on(method, move |seen| match as_stream {
                        true => {
                            Reply::events().raw(format!("data: {}\n\n", raw_error(seen, error)))
                        }
                        false => Reply::status(200)
                            .header("content-type", "application/json")
                            .raw(raw_error(seen, error)),
                    })
                });
            let hb = hb.start().await;
            let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
            for (path, tool) in [("/mcp", "one__t"), ("/mcp/one", "t")] {
                let client = gw.client(path).connected().await;
                let message = json!({"jsonrpc": "2.0", "id": "mine", "method": "tools/call", "params": {"name": tool}});
                let response = client.post(&message).await;
                assert_eq!(response.status, 200);
                let text = response.text().await;
                assert!(
                    text.contains(&format!("\"error\":{error}"))
                        && text.contains("\"id\":\"mine\""),
                    "{text}"
                );
                assert_eq!(
                    client.request("ping", json!({})).await["result"],
                    json!({}),
                    "the session lives"
                );
            }
            let response = gw
                .client("/mcp")
                .modern("tools/call", json!({"name": "one__t"}))
                .await;
            assert_eq!(response.status, 200);
            let text = response.text().await;
            let carried = !error.contains("-32042");
            assert_eq!(
                text.contains(&format!("\"error\":{error}")),
                carried,
                "{text}"
            );
            gw.stop().await;
        }
    }
}

#[tokio::test]
async fn odd_errors_crash_nothing_and_are_answers_that_a_client_can_read() {
    for error in [
        r#"{"code":1e30,"message":"m"}"#,
        r#"{"code":-9999999999,"message":"m"}"#,
        r#"{"code":3.5,"message":"m"}"#,
        r#"{"code":"E42","message":"m"}"#,
        r#"{"code":99999999999999999999999,"message":"m"}"#,
        r#"{"message":"m"}"#,
        r#"{"code":null,"message":null}"#,
        r#"{}"#,
        r#""just text""#,
        "null",
        "[]",
    ] {
        let hb = Stock::new("one", json!({"tools": ["t"]}))
            .legacy()
            .on("tools/call", move |seen| {
                Reply::status(200)
                    .header("content-type", "application/json")
                    .raw(raw_error(seen, error))
            })
            .start()
            .await;
        let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
        let client = gw.client("/mcp").connected().await;
        let answer = client.call("one__t", json!({})).await;
        assert!(answer["error"]["code"].is_i64(), "{error}: {answer}");
        assert!(answer["error"]["message"].is_string(), "{error}: {answer}");
        let modern = gw
            .client("/mcp")
            .modern("tools/call", json!({"name": "one__t"}))
            .await
            .message()
            .await;
        assert!(modern["error"]["code"].is_i64(), "{error}: {modern}");
        assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
        gw.stop().await;
    }
}

#[tokio::test]
async fn a_tools_own_failure_stays_a_result() {
    let hb = Stock::new("one", json!({"tools": ["t"]}))
        .legacy()
        .on("tools/call", |seen| {
            Reply::json(seen.result(json!({"content": [], "isError": true})))
        })
        .start()
        .await;
    let gw = gateway(&servers(&[("one", at(&hb, ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let answer = client.call("one__t", json!({})).await;
    assert_eq!(answer["result"], json!({"content": [], "isError": true}));
    gw.stop().await;
}

#[tokio::test]
async fn unknown_things_have_one_text_and_the_right_code() {
    let hb = Stock::of_all("one").legacy().start().await;
    let gw = gateway(&servers(&[("one", at(&hb, "tools: { deny: [one-tool] }"))])).await;
    let client = gw.client("/mcp").connected().await;
    let hidden = client.call("one__one-tool", json!({})).await;
    let unknown = client.call("one__no-such", json!({})).await;
    assert_eq!(hidden["error"]["code"], -32602);
    let text = |a: &Value| {
        a["error"]["message"]
            .as_str()
            .unwrap()
            .replace("one-tool", "X")
            .replace("no-such", "X")
    };
    assert_eq!(
        text(&hidden),
        text(&unknown),
        "nobody can tell what is hidden"
    );
    for (method, params) in [
        ("tools/call", json!({})),
        ("tools/call", json!({"name": 7})),
        ("tools/call", json!({"name": null})),
        ("prompts/get", json!({"name": "one__nothing"})),
        ("resources/read", json!({})),
        ("resources/read", json!({"uri": ["x"]})),
    ] {
        let answer = client.request(method, params.clone()).await;
        assert_eq!(
            answer["error"]["code"], -32602,
            "{method} {params}: {answer}"
        );
    }
    assert_eq!(hb.count("tools/call"), 0, "none of it reached the server");
    gw.stop().await;
}

#[tokio::test]
async fn an_answer_in_any_form_is_answered_once() {
    let odd: Vec<(&str, fn(&Seen) -> Reply)> = vec![
        ("nothing", |_| Reply::status(200)),
        ("202", |_| Reply::status(202)),
        ("204", |_| Reply::status(204)),
        ("text", |_| {
            Reply::status(200)
                .header("content-type", "text/plain")
                .raw("hello")
        }),
        ("an empty stream", |_| Reply::events()),
        ("null", |_| {
            Reply::status(200)
                .header("content-type", "application/json")
                .raw("null")
        }),
        ("another id", |_| {
            Reply::json(json!({"jsonrpc": "2.0", "id": 987654, "result": {}}))
        }),
        ("half", |_| {
            Reply::status(200)
                .header("content-type", "application/json")
                .raw("{\"jsonrpc\":\"2.0\"")
        }),
        ("deep", |_| {
            Reply::status(200)
                .header("content-type", "application/json")
                .raw(Bytes::from(format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}1{}}}",
                    "[".repeat(5000),
                    "]".repeat(5000)
                )))
        }),
    ];
    for (what, reply) in odd {
        let hb = Stock::new("one", json!({"tools": ["t"]}))
            .legacy()
            .on("tools/call", reply)
            .start()
            .await;
        let gw = gateway(&servers(&[("one", at(&hb, "timeouts: { call: 500ms }"))])).await;
        for (path, tool) in [("/mcp", "one__t"), ("/mcp/one", "t")] {
            let client = gw.client(path).connected().await;
            let answer = client.call(tool, json!({})).await;
            let code = answer["error"]["code"].as_i64();
            assert!(matches!(code, Some(-31001 | -31002)), "{what}: {answer}");
            assert_eq!(answer["error"]["data"]["server"], "one", "{what}: {answer}");
        }
        gw.stop().await;
    }
}

#[tokio::test]
async fn a_stdio_server_is_carried_just_as_faithfully() {
    let gw = gateway(&servers(&[("one", sb(&[], ""))])).await;
    let client = gw.client("/mcp").connected().await;
    let arguments = r#"{"z":9007199254740993,"a":"\u2028é","l":[1,2]}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"one__echo","arguments":{arguments}}}}}"#
    );
    let answer = client
        .send(http::Method::POST, &[], body)
        .await
        .message()
        .await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        text, "{\"z\":9007199254740993,\"a\":\"\u{2028}\u{e9}\",\"l\":[1,2]}",
        "in the order they were sent"
    );
    gw.stop().await;
}
