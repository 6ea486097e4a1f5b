//! Arguments that the operator fixed, and arguments that travel in headers.
//!
//! Answers "Custom Headers from Tool Parameters" of the streamable HTTP page of
//! revision 2026-07-28: what came is compared with the body, what goes out is made
//! from the body that the server gets.

use super::{client::Client, target::Route};
use crate::mcp::{Message, RpcError, code, param::Param};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use indexmap::IndexMap;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// The arguments of a call as its server gets them.
pub(super) struct Arguments<'a> {
    /// As the client sent them; raw JSON.
    given: Option<&'a [u8]>,
    /// With the operator's fixed ones over them; raw JSON, only where there are any.
    pub fixed: Option<Bytes>,
}

pub(super) fn arguments<'a>(message: &'a Message, route: &Route) -> Arguments<'a> {
    let given = message.inner().arguments.map(|s| message.raw(s));
    let fixed = route.fixed.as_ref().map(|fixed| fix(given, fixed));
    Arguments { given, fixed }
}

/// Puts the fixed parameters over the given ones, which keep their spelling.
fn fix(given: Option<&[u8]>, fixed: &serde_json::Map<String, Value>) -> Bytes {
    let given =
        given.and_then(|g| serde_json::from_slice::<IndexMap<String, Box<RawValue>>>(g).ok());
    let mut all = given.unwrap_or_default();
    for (name, value) in fixed {
        let value = to_raw_value(value).expect("a JSON value can be written");
        all.insert(name.clone(), value);
    }
    serde_json::to_vec(&all)
        .expect("JSON values can be written")
        .into()
}

impl Arguments<'_> {
    fn value(&self) -> Value {
        let text = self.fixed.as_deref().or(self.given);
        let value = text.and_then(|t| serde_json::from_slice(t).ok());
        value.unwrap_or_default()
    }
}

/// `Mcp-Param-*` towards a modern server. A modern client sent its own, which were checked; they pass unless
/// arguments were fixed since. For a legacy one they are made from the schema.
pub(super) fn headers(
    client: &Client,
    arguments: &Arguments<'_>,
    route: &Route,
) -> Vec<(HeaderName, HeaderValue)> {
    let sent = match client {
        Client::Modern(caller) => &caller.params[..],
        Client::Legacy(_) => &[],
    };
    if route.params.is_empty() || (arguments.fixed.is_none() && matches!(client, Client::Modern(_)))
    {
        return sent.to_vec();
    }
    let known = |name: &HeaderName| route.params.iter().any(|p| name.as_str() == p.header);
    let mut headers: Vec<_> = sent
        .iter()
        .filter(|(name, _)| !known(name))
        .cloned()
        .collect();
    let value = arguments.value();
    headers.extend(route.params.iter().filter_map(|param| {
        let text = param.value(&value)?;
        let name = HeaderName::try_from(&param.header).ok()?;
        Some((name, HeaderValue::try_from(text).ok()?))
    }));
    headers
}

/// Whether a modern client's `Mcp-Param-*` headers say what its arguments say.
pub(super) fn check(
    headers: &[(HeaderName, HeaderValue)],
    message: &Message,
    params: &[Param],
) -> Result<(), RpcError> {
    if params.is_empty() {
        return Ok(());
    }
    let raw = message.inner().arguments.map(|s| message.raw(s));
    let arguments: Value = raw
        .and_then(|a| serde_json::from_slice(a).ok())
        .unwrap_or_default();
    for param in params {
        let mine = |(name, _): &&(HeaderName, HeaderValue)| name.as_str() == param.header;
        let mut said = headers.iter().filter(mine);
        let text = said
            .next()
            .map(|(_, value)| value.to_str().unwrap_or("\u{fffd}"));
        // Of two headers, somebody on the way may have read the other one.
        if said.next().is_some() || !param.agrees(&arguments, text) {
            let text = format!(
                "Header mismatch: {} does not match the argument",
                param.header
            );
            return Err(RpcError::new(code::HEADER_MISMATCH, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fixed_arguments_leave_the_others_as_they_were_written() {
        let Value::Object(fixed) = json!({"b": {"x": 1}, "new": "n"}) else {
            unreachable!()
        };
        let given =
            br#"{ "a" : 123456789012345678901234567890, "b" : 1, "c" : "\u00fc\/" , "d": 1.0e5 }"#;
        let text = fix(Some(given), &fixed);
        assert_eq!(
            text,
            r#"{"a":123456789012345678901234567890,"b":{"x":1},"c":"\u00fc\/","d":1.0e5,"new":"n"}"#
        );
        assert_eq!(fix(None, &fixed), r#"{"b":{"x":1},"new":"n"}"#);
    }
}
