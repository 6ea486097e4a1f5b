//! What the headers of a 2026-07-28 request must say again of its body, so that those between client and
//! server need not read it: revision, method, name, and arguments whose schema asks for it.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::fault::{Fault, HEADER_MISMATCH};
use super::modern;
use super::world::World;

/// The header that names the revision.
pub const VERSION: &str = "mcp-protocol-version";

/// The header's value, if it is there and is text.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn mismatch(reason: String) -> Fault {
    Fault::rpc(HEADER_MISMATCH, format!("Header mismatch: {reason}"))
}

/// Checks that the version header says what `_meta` says; a body that says nothing is for another check.
pub fn check_version(headers: &HeaderMap, message: &Value) -> Result<(), Fault> {
    match (text(headers, VERSION), modern::version(message)) {
        (Some(header), Some(body)) if header != body => Err(mismatch(format!(
            "MCP-Protocol-Version is '{header}', the body says '{body}'"
        ))),
        (None, _) => Err(mismatch("MCP-Protocol-Version is missing".to_owned())),
        _ => Ok(()),
    }
}

/// Checks `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` against the request's method and parameters.
pub fn check(
    world: &World,
    headers: &HeaderMap,
    method: &str,
    params: &Value,
) -> Result<(), Fault> {
    agree(headers, "Mcp-Method", &Value::from(method))?;
    match method {
        "tools/call" => {
            agree(headers, "Mcp-Name", &params["name"])?;
            check_arguments(world, headers, params)
        }
        "prompts/get" => agree(headers, "Mcp-Name", &params["name"]),
        "resources/read" => agree(headers, "Mcp-Name", &params["uri"]),
        _ => Ok(()),
    }
}

fn check_arguments(world: &World, headers: &HeaderMap, params: &Value) -> Result<(), Fault> {
    let tools = world.server.tools(&world.diary);
    let Some(tool) = tools.iter().find(|tool| tool["name"] == params["name"]) else {
        return Ok(());
    };
    let properties = tool["inputSchema"]["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        if let Some(suffix) = property["x-mcp-header"].as_str() {
            let header = format!("Mcp-Param-{suffix}");
            agree(headers, &header, &params["arguments"][name])?;
        }
    }
    Ok(())
}

/// Checks that the header is there exactly if the value is, and says the same.
fn agree(headers: &HeaderMap, name: &str, value: &Value) -> Result<(), Fault> {
    let Some(raw) = headers.get(name) else {
        if value.is_null() {
            return Ok(());
        }
        return Err(mismatch(format!("{name} is missing")));
    };
    let header = decode(raw.as_bytes())
        .ok_or_else(|| mismatch(format!("{name} is not text, nor properly encoded")))?;
    let same = match value {
        Value::String(text) => header == *text,
        Value::Bool(truth) => header == truth.to_string(),
        Value::Number(number) => header.parse::<f64>().ok() == number.as_f64(),
        _ => false,
    };
    if same {
        Ok(())
    } else {
        Err(mismatch(format!(
            "{name} is '{header}', the body says {value}"
        )))
    }
}

fn decode(raw: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(raw)
        .ok()
        .filter(|text| text.is_ascii())?;
    let encoded = text
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match encoded {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(header: &str, value: &Value) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("mcp-param-x", header.parse().unwrap());
        agree(&headers, "Mcp-Param-X", value).is_ok()
    }

    #[test]
    fn a_header_is_compared_after_decoding() {
        assert!(says("Barcelona", &json!("Barcelona")));
        assert!(says("=?base64?UmV5a2phdsOtaw==?=", &json!("Reykjavík")));
        assert!(!says("=?base64?!?=", &json!("=?base64?!?=")));
        assert!(!says("barcelona", &json!("Barcelona")));
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(says("42.0", &json!(42)));
        assert!(says("true", &json!(true)));
        assert!(!says("42", &json!("42.0")));
    }

    #[test]
    fn a_header_without_a_value_or_a_value_without_a_header_is_refused() {
        assert!(!says("x", &Value::Null));
        assert!(agree(&HeaderMap::new(), "Mcp-Param-X", &Value::Null).is_ok());
        assert!(agree(&HeaderMap::new(), "Mcp-Param-X", &json!("x")).is_err());
    }
}
