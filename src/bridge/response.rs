//! Answers on their way back to a client of the other era.

use crate::mcp::{Edit, Kind, Message, Method, RpcError, code, list, raw, scan::MAX_DEPTH};
use serde_json::{Value, value::RawValue};

/// What the gateway adds to a legacy server's result for a modern client.
#[derive(Clone, Copy, Debug)]
pub struct ResultHints<'a> {
    /// `ttlMs` and `cacheScope: private`, where the method's results are cacheable ("Cacheable Results").
    pub ttl_ms: Option<u64>,
    /// Raw JSON of the server's `serverInfo`.
    pub server_info: Option<&'a [u8]>,
}

/// Edits a legacy server's answer so that a modern client can read it. An error code that the modern era does not have becomes the one it has.
pub fn from_legacy(
    message: &Message,
    hints: ResultHints<'_>,
    edit: &mut Edit,
) -> Result<(), RpcError> {
    if message.kind() == Kind::Error {
        return match message.error_code() {
            Some(code::RESOURCE_NOT_FOUND) => {
                recode(message, code::INVALID_PARAMS, edit);
                Ok(())
            }
            Some(code::URL_ELICITATION) => Err(not_carried(
                "the server asks the person to open a link, which cannot be carried to this client yet",
            )),
            _ => Ok(()),
        };
    }
    let Some(result) = message.payload_span() else {
        return Ok(());
    };
    let text = message.bytes();
    if message.raw(result).first() != Some(&b'{') {
        edit.replace(result, r#"{"resultType":"complete"}"#);
        return Ok(());
    }
    let inner = message.inner();
    if let Some(info) = hints
        .server_info
        .filter(|_| inner.meta_server_info.is_none())
    {
        let name = "io.modelcontextprotocol/serverInfo";
        match inner.meta {
            Some(meta) if message.raw(meta).first() == Some(&b'{') => {
                edit.add_member(text, meta, name, info);
            }
            Some(_) => {}
            None => {
                let meta = format!("{{\"{name}\":{}}}", String::from_utf8_lossy(info));
                edit.add_member(text, result, "_meta", meta.as_bytes());
            }
        }
    }
    if let Some(ttl) = hints.ttl_ms {
        if inner.cache_scope.is_none() {
            edit.add_member(text, result, "cacheScope", br#""private""#);
        }
        if inner.ttl.is_none() {
            edit.add_member(text, result, "ttlMs", ttl.to_string().as_bytes());
        }
    }
    if inner.result_type.is_none() {
        edit.add_member(text, result, "resultType", br#""complete""#);
    }
    Ok(())
}

/// Edits a modern server's answer so that a legacy client can read it.
pub fn from_modern(message: &Message, method: Method, edit: &mut Edit) -> Result<(), RpcError> {
    if message.kind() == Kind::Error {
        let missing =
            method == Method::ReadResource && message.error_code() == Some(code::INVALID_PARAMS);
        return match message.error_code() {
            Some(code::MISSING_CAPABILITY) => Err(not_carried(
                "the server needs something of the client that cannot be carried between these revisions yet",
            )),
            _ if missing => {
                recode(message, code::RESOURCE_NOT_FOUND, edit);
                Ok(())
            }
            _ => Ok(()),
        };
    }
    let kind = message.inner().result_type.and_then(|s| message.text(s));
    match kind.as_deref() {
        None | Some("complete") => {}
        Some(_) => {
            return Err(not_carried(
                "the server asks for input in the middle of the call, which cannot be carried to this client yet",
            ));
        }
    }
    if method == Method::CallTool {
        flatten_structured(message, edit);
    }
    Ok(())
}

/// `structuredContent` that is no object: older revisions reject the message for it, so it becomes a text block.
fn flatten_structured(message: &Message, edit: &mut Edit) {
    let Some(result) = message.payload_span() else {
        return;
    };
    let raw = message.raw(result);
    let Some(span) = list::member(raw, "structuredContent", MAX_DEPTH) else {
        return;
    };
    if span.of(raw).first() == Some(&b'{') {
        return;
    }
    let Some(mut fields) = raw::object(raw) else {
        return;
    };
    let Some(structured) = fields.shift_remove("structuredContent") else {
        return;
    };
    let said = serde_json::json!({"type": "text", "text": structured.get()}).to_string();
    if let Some(content) = fields
        .get("content")
        .and_then(|c| with_block(c.get(), &said))
    {
        fields.insert("content".into(), content);
    }
    edit.replace(result, raw::write(&fields));
}

/// The content with one more block, unless a block of it says the same.
fn with_block(content: &str, block: &str) -> Option<Box<RawValue>> {
    let said = |one: &RawValue| {
        let one: Option<Value> = serde_json::from_str(one.get()).ok();
        let wanted: Option<Value> = serde_json::from_str(block).ok();
        one.zip(wanted)
            .is_some_and(|(one, wanted)| one["text"] == wanted["text"])
    };
    let mut blocks: Vec<Box<RawValue>> = serde_json::from_str(content).ok()?;
    if !blocks.iter().any(|one| said(one)) {
        blocks.push(raw::value(block)?);
    }
    raw::value(serde_json::to_string(&blocks).ok()?)
}

fn not_carried(text: &str) -> RpcError {
    RpcError::new(code::NOT_CARRIED, text)
}

/// What stands for a server's error whose code is no integer: strict clients cannot read such a message at all, and wait on. `None` for any other answer.
pub fn readable_error(message: &Message) -> Option<RpcError> {
    if message.kind() != Kind::Error || message.error_code().is_some() {
        return None;
    }
    let error: Value = message
        .payload()
        .and_then(|p| serde_json::from_slice(p).ok())
        .unwrap_or_default();
    let text = error["message"]
        .as_str()
        .unwrap_or("the server's error has neither code nor text");
    Some(RpcError {
        code: code::INTERNAL,
        message: text.to_owned(),
        data: error.get("data").cloned(),
    })
}

/// Gives an error another code.
fn recode(message: &Message, code: i64, edit: &mut Edit) {
    let Some(error) = message.payload_span() else {
        return;
    };
    if let Some(span) = list::member(message.raw(error), "code", MAX_DEPTH) {
        edit.replace(error.within(span), code.to_string());
    }
}

/// A tool for legacy clients: an `outputSchema` whose root is no object would make strict ones reject the whole list.
pub fn legacy_tool(json: &[u8]) -> Option<String> {
    let mut tool = raw::object(json)?;
    let schema = raw::object(tool.get("outputSchema")?.get().as_bytes());
    let kind = schema.as_ref().and_then(|s| s.get("type"));
    if kind.is_some_and(|kind| kind.get() == "\"object\"") {
        return None;
    }
    tool.shift_remove("outputSchema");
    Some(raw::write(&tool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::json;

    fn parse(text: &str) -> Message {
        Message::parse(Bytes::copy_from_slice(text.as_bytes()), 64).unwrap()
    }

    #[test]
    fn a_legacy_result_becomes_complete_and_private() {
        let hints = ResultHints {
            ttl_ms: Some(0),
            server_info: Some(br#"{"name":"s"}"#),
        };
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":1},"x":2}}"#,
        ] {
            let message = parse(text);
            let mut edit = Edit::new();
            from_legacy(&message, hints, &mut edit).unwrap();
            let out: Value = serde_json::from_slice(&edit.apply(message.bytes())).unwrap();
            let result = &out["result"];
            assert_eq!(result["resultType"], "complete");
            assert_eq!(result["ttlMs"], 0);
            assert_eq!(result["cacheScope"], "private");
            assert_eq!(
                result["_meta"]["io.modelcontextprotocol/serverInfo"],
                json!({"name": "s"})
            );
        }
    }

    #[test]
    fn codes_that_one_era_lacks_are_changed() {
        let hints = ResultHints {
            ttl_ms: None,
            server_info: None,
        };
        let gone = parse(
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no","data":{"uri":"x"}}}"#,
        );
        let mut edit = Edit::new();
        from_legacy(&gone, hints, &mut edit).unwrap();
        let out: Value = serde_json::from_slice(&edit.apply(gone.bytes())).unwrap();
        let wanted = json!({"code": -32602, "message": "no", "data": {"uri": "x"}});
        assert_eq!(out["error"], wanted);
        let missing = parse(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#);
        let mut edit = Edit::new();
        from_modern(&missing, Method::ReadResource, &mut edit).unwrap();
        let out: Value = serde_json::from_slice(&edit.apply(missing.bytes())).unwrap();
        assert_eq!(out["error"]["code"], -32002);
        assert!(from_modern(&missing, Method::CallTool, &mut Edit::new()).is_ok());
    }

    #[test]
    fn a_question_in_the_middle_is_a_clear_error_for_a_legacy_client() {
        let asks = parse(
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"x"}}"#,
        );
        let error = from_modern(&asks, Method::CallTool, &mut Edit::new()).unwrap_err();
        assert_eq!(error.code, code::NOT_CARRIED);
    }

    #[test]
    fn structured_content_that_is_no_object_becomes_text() {
        let message =
            parse(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":[1,2]}}"#);
        let mut edit = Edit::new();
        from_modern(&message, Method::CallTool, &mut edit).unwrap();
        let out: Value = serde_json::from_slice(&edit.apply(message.bytes())).unwrap();
        assert_eq!(
            out["result"],
            json!({"content": [{"type": "text", "text": "[1,2]"}]})
        );
        assert!(legacy_tool(br#"{"outputSchema":{"type":"array"}}"#).is_some());
        assert!(legacy_tool(br#"{"outputSchema":{"type":"object"}}"#).is_none());
    }
}
