//! One JSON-RPC message: its bytes, and where the members stand that we route on.
//!
//! Parsing is one pass over the text ([`super::scan`]). Nothing is decoded but
//! the method's name; parameters and results stay the bytes that came. A key that
//! stands twice where we look is refused: two readers of one message could
//! otherwise see two different messages.

use super::{
    method::{Method, Row},
    scan::{Checked, Key, ScanError, Scanner, Span, check_text, decode},
};
use bytes::Bytes;
use std::borrow::Cow;

/// What a message is, by JSON-RPC 2.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    Notification,
    Result,
    Error,
}

/// Why a text is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error(transparent)]
    Json(#[from] ScanError),
    #[error("{0}")]
    Shape(&'static str),
}

/// Members of `params` or `result`, and of `_meta` within, that the gateway looks at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inner {
    pub meta: Option<Span>,
    pub name: Option<Span>,
    pub uri: Option<Span>,
    pub arguments: Option<Span>,
    pub cursor: Option<Span>,
    pub next_cursor: Option<Span>,
    pub request_id: Option<Span>,
    pub level: Option<Span>,
    pub reference: Option<Span>,
    pub task: Option<Span>,
    pub task_id: Option<Span>,
    pub protocol_version: Option<Span>,
    pub capabilities: Option<Span>,
    pub client_info: Option<Span>,
    pub mode: Option<Span>,
    pub result_type: Option<Span>,
    pub ttl: Option<Span>,
    pub cache_scope: Option<Span>,
    /// `progressToken` of `_meta` in a request, of `params` in a progress notification.
    pub progress_token: Option<Span>,
    pub meta_version: Option<Span>,
    pub meta_client_info: Option<Span>,
    pub meta_capabilities: Option<Span>,
    pub meta_log_level: Option<Span>,
    pub meta_subscription: Option<Span>,
    pub meta_server_info: Option<Span>,
}

/// A message and its shape. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Bytes,
    kind: Kind,
    row: &'static Row,
    id: Option<Span>,
    method: Option<Span>,
    /// `params`, `result` or `error`.
    payload: Option<Span>,
    inner: Inner,
}

const NS: &str = "io.modelcontextprotocol/";

impl Message {
    /// Reads one message; `max_depth` bounds its nesting.
    pub fn parse(bytes: Bytes, max_depth: u32) -> Result<Self, Malformed> {
        let checked = check_text(&bytes)?;
        Self::parse_text(bytes, checked, max_depth)
    }

    /// [`Message::parse`] of bytes already checked.
    fn parse_text(bytes: Bytes, checked: Checked, max_depth: u32) -> Result<Self, Malformed> {
        let mut draft = Draft::default();
        let mut scanner = Scanner::new(&bytes, max_depth).with(checked);
        if scanner.peek() != Some(b'{') {
            // Still a fault of the text, if it is one: read on to tell.
            scanner.value()?;
            scanner.end()?;
            return Err(Malformed::Shape("a message is a JSON object"));
        }
        scanner.object(|s, key| draft.member(s, key))?;
        scanner.end()?;
        draft.finish(bytes)
    }

    /// Splits a batch (2025-03-26) into its entries; an entry that is no message is an error of its own.
    pub fn parse_batch(
        bytes: &Bytes,
        max_depth: u32,
        max_entries: usize,
    ) -> Result<Vec<Result<Self, Malformed>>, Malformed> {
        let checked = check_text(bytes)?;
        let mut spans = Vec::new();
        let mut scanner = Scanner::new(bytes, max_depth);
        scanner.array(|s| {
            spans.push(s.value()?);
            Ok(())
        })?;
        scanner.end()?;
        if spans.is_empty() {
            return Err(Malformed::Shape("a batch holds at least one message"));
        }
        if spans.len() > max_entries {
            return Err(Malformed::Shape("a batch holds too many messages"));
        }
        let entry = |s: Span| Self::parse_text(bytes.slice(s.range()), checked, max_depth);
        Ok(spans.into_iter().map(entry).collect())
    }

    /// Whether the text is a JSON array, white space aside.
    pub fn is_batch(bytes: &[u8]) -> bool {
        bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[')
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The raw token of the id, quotes included.
    pub fn id(&self) -> Option<&[u8]> {
        self.id.map(|s| s.of(&self.bytes))
    }

    /// The id if it is one of ours: a plain non-negative integer.
    pub fn own_id(&self) -> Option<u64> {
        own_number(self.id()?)
    }

    pub fn id_span(&self) -> Option<Span> {
        self.id
    }

    pub fn row(&self) -> &'static Row {
        self.row
    }

    pub fn method(&self) -> Method {
        self.row.method
    }

    /// Whether this notification names a method that the protocol has as a request.
    pub fn lacks_id(&self) -> bool {
        self.kind == Kind::Notification && self.row.is_request()
    }

    /// The method's name, decoded; empty for a response.
    pub fn method_name(&self) -> Cow<'_, str> {
        self.method.and_then(|s| self.text(s)).unwrap_or_default()
    }

    pub fn payload(&self) -> Option<&[u8]> {
        self.payload.map(|s| s.of(&self.bytes))
    }

    pub fn payload_span(&self) -> Option<Span> {
        self.payload
    }

    pub fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The raw JSON at `span`.
    pub fn raw(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    /// The raw JSON at `span` without copying.
    pub fn slice(&self, span: Span) -> Bytes {
        self.bytes.slice(span.range())
    }

    /// The string at `span`, decoded; `None` if it is no string.
    pub fn text(&self, span: Span) -> Option<Cow<'_, str>> {
        string(span.of(&self.bytes))
    }

    /// `error.code`, if this is an error whose code is an integer that fits.
    pub fn error_code(&self) -> Option<i64> {
        if self.kind != Kind::Error {
            return None;
        }
        #[derive(serde::Deserialize)]
        struct Code<'a> {
            #[serde(borrow)]
            code: &'a serde_json::value::RawValue,
        }
        let error: Code = serde_json::from_slice(self.payload()?).ok()?;
        error.code.get().parse().ok()
    }
}

/// The string that a raw JSON token holds, decoded only where it must be.
pub fn string(token: &[u8]) -> Option<Cow<'_, str>> {
    let inside = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inside).is_none() {
        return std::str::from_utf8(inside).ok().map(Cow::Borrowed);
    }
    decode(inside).map(Cow::Owned)
}

/// A token as the plain integers that the gateway uses for its own ids.
pub fn own_number(token: &[u8]) -> Option<u64> {
    if token.is_empty() || token.len() > 19 || !token.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// JSON text of a string.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[derive(Default)]
struct Draft {
    version: Option<Span>,
    id: Option<Span>,
    id_valid: bool,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
    params_object: bool,
    error_object: bool,
    version_valid: bool,
    row: Option<&'static Row>,
    inner: Inner,
}

/// Puts a span in its place, or refuses a second one.
fn put(place: &mut Option<Span>, span: Span, key: Key<'_>) -> Result<(), ScanError> {
    if place.replace(span).is_some() {
        return Err(ScanError::Duplicate(key.at));
    }
    Ok(())
}

/// The key's plain name: as it stands, or decoded into `space`.
fn plain<'k>(key: &Key<'k>, space: &'k mut String) -> Result<&'k [u8], ScanError> {
    if !key.escaped {
        return Ok(key.raw);
    }
    *space = decode(key.raw).ok_or(ScanError::Syntax(key.at))?;
    Ok(space.as_bytes())
}

impl Draft {
    fn member(&mut self, s: &mut Scanner<'_>, key: Key<'_>) -> Result<(), ScanError> {
        let mut space = String::new();
        match plain(&key, &mut space)? {
            b"jsonrpc" => {
                let span = s.value()?;
                self.version_valid = span.of(s.text()) == b"\"2.0\"";
                put(&mut self.version, span, key)
            }
            b"id" => {
                let span = s.value()?;
                self.id_valid = is_id(span.of(s.text()));
                put(&mut self.id, span, key)
            }
            b"method" => {
                let span = s.value()?;
                if let Some(name) = string(span.of(s.text())) {
                    self.row = Some(Method::row(&name));
                }
                put(&mut self.method, span, key)
            }
            b"params" => {
                self.params_object = s.peek() == Some(b'{');
                let span = self.inner.read(s)?;
                put(&mut self.params, span, key)
            }
            b"result" => {
                let span = self.inner.read(s)?;
                put(&mut self.result, span, key)
            }
            b"error" => {
                self.error_object = s.peek() == Some(b'{');
                let span = s.value()?;
                put(&mut self.error, span, key)
            }
            _ => s.value().map(drop),
        }
    }

    fn finish(self, bytes: Bytes) -> Result<Message, Malformed> {
        let shape = |text| Err(Malformed::Shape(text));
        if !self.version_valid {
            return shape("`jsonrpc` must be \"2.0\"");
        }
        if self.id.is_some() && !self.id_valid && (self.method.is_some() || self.result.is_some()) {
            return shape("`id` must be a string or an integer");
        }
        if self.method.is_some() && self.row.is_none() {
            return shape("`method` must be a string");
        }
        if self.params.is_some() && !self.params_object {
            return shape("`params` must be an object");
        }
        let kind = match (self.method, self.result, self.error, self.id) {
            (Some(_), None, None, Some(_)) => Kind::Request,
            (Some(_), None, None, None) => Kind::Notification,
            (None, Some(_), None, Some(_)) => Kind::Result,
            (None, None, Some(_), _) => Kind::Error,
            _ => return shape("neither a request, a notification nor a response"),
        };
        if kind == Kind::Error && !self.error_object {
            return shape("`error` must be an object");
        }
        static RESPONSE: &str = "";
        Ok(Message {
            bytes,
            kind,
            row: self.row.unwrap_or_else(|| Method::row(RESPONSE)),
            id: self.id.filter(|_| self.id_valid),
            method: self.method,
            payload: self.params.or(self.result).or(self.error),
            inner: self.inner,
        })
    }
}

/// JSON-RPC ids as MCP has them: a string, or an integer of any size.
fn is_id(token: &[u8]) -> bool {
    match token.first() {
        Some(b'"') => string(token).is_some(),
        Some(b'-') => token.len() > 1 && token[1..].iter().all(u8::is_ascii_digit),
        _ => !token.is_empty() && token.iter().all(u8::is_ascii_digit),
    }
}

impl Inner {
    /// Reads `params` or a `result`, noting what stands in it.
    fn read(&mut self, s: &mut Scanner<'_>) -> Result<Span, ScanError> {
        if s.peek() != Some(b'{') {
            return s.value();
        }
        s.object(|s, key| {
            let mut space = String::new();
            let place = match plain(&key, &mut space)? {
                b"_meta" => {
                    let span = self.read_meta(s)?;
                    return put(&mut self.meta, span, key);
                }
                b"name" => &mut self.name,
                b"uri" => &mut self.uri,
                b"arguments" => &mut self.arguments,
                b"cursor" => &mut self.cursor,
                b"nextCursor" => &mut self.next_cursor,
                b"requestId" => &mut self.request_id,
                b"level" => &mut self.level,
                b"ref" => &mut self.reference,
                b"task" => &mut self.task,
                b"taskId" => &mut self.task_id,
                b"protocolVersion" => &mut self.protocol_version,
                b"capabilities" => &mut self.capabilities,
                b"clientInfo" => &mut self.client_info,
                b"mode" => &mut self.mode,
                b"resultType" => &mut self.result_type,
                b"ttlMs" => &mut self.ttl,
                b"cacheScope" => &mut self.cache_scope,
                b"progressToken" => &mut self.progress_token,
                _ => return s.value().map(drop),
            };
            put(place, s.value()?, key)
        })
    }

    fn read_meta(&mut self, s: &mut Scanner<'_>) -> Result<Span, ScanError> {
        if s.peek() != Some(b'{') {
            return s.value();
        }
        s.object(|s, key| {
            let mut space = String::new();
            let name = plain(&key, &mut space)?;
            let place = match name.strip_prefix(NS.as_bytes()) {
                Some(b"protocolVersion") => &mut self.meta_version,
                Some(b"clientInfo") => &mut self.meta_client_info,
                Some(b"clientCapabilities") => &mut self.meta_capabilities,
                Some(b"logLevel") => &mut self.meta_log_level,
                Some(b"subscriptionId") => &mut self.meta_subscription,
                Some(b"serverInfo") => &mut self.meta_server_info,
                None if name == b"progressToken" => &mut self.progress_token,
                _ => return s.value().map(drop),
            };
            put(place, s.value()?, key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, Malformed> {
        Message::parse(Bytes::copy_from_slice(text.as_bytes()), 128)
    }

    #[test]
    fn finds_what_a_call_is_routed_on() {
        let m = parse(r#"{ "jsonrpc":"2.0", "id" : "a\u0062", "method":"tools\/call", "params":{"n\u0061me":"ech\u006f","arguments":{"name":1},"_meta":{"progressToken":7,"x":{"progressToken":1}}}}"#).unwrap();
        assert_eq!(m.kind(), Kind::Request);
        assert_eq!(m.method(), Method::CallTool);
        assert_eq!(m.id().unwrap(), br#""a\u0062""#);
        assert_eq!(m.text(m.inner().name.unwrap()).unwrap(), "echo");
        assert_eq!(m.raw(m.inner().arguments.unwrap()), br#"{"name":1}"#);
        assert_eq!(m.raw(m.inner().progress_token.unwrap()), b"7");
    }

    #[test]
    fn tells_kinds_apart() {
        let kind = |t| parse(t).map(|m| m.kind());
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","method":"x"}"#),
            Ok(Kind::Notification)
        );
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","id":0,"result":null}"#),
            Ok(Kind::Result)
        );
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#),
            Ok(Kind::Error)
        );
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","error":{"code":1}}"#),
            Ok(Kind::Error)
        );
    }

    #[test]
    fn refuses_what_is_no_message() {
        for bad in [
            r#"[7,"tools/call"]"#,
            "7",
            r#"{"id":1,"method":"x"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1e3,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":7}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x"} {}"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_second_member_of_one_name_is_refused_where_we_look() {
        for bad in [
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            r#"{"jsonrpc":"2.0","id":1,"i\u0064":2,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","n\u0061me":"y"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":1,"progressToken":2}}}"#,
        ] {
            assert!(
                matches!(parse(bad), Err(Malformed::Json(ScanError::Duplicate(_)))),
                "{bad}"
            );
        }
    }

    #[test]
    fn ids_of_any_size_stay_what_they_are() {
        for id in [
            "0",
            "-1",
            "9007199254740993",
            "123456789012345678901234567890",
            "\"\"",
            "\"ü\"",
            "\"1\"",
        ] {
            let m = parse(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#)).unwrap();
            assert_eq!(m.id().unwrap(), id.as_bytes());
        }
    }

    #[test]
    fn a_batch_is_taken_apart() {
        let text = Bytes::from_static(br#" [ {"jsonrpc":"2.0","id":1,"method":"a"}, 7 ]"#);
        assert!(Message::is_batch(&text));
        let entries = Message::parse_batch(&text, 8, 50).unwrap();
        assert!(entries[0].is_ok() && entries[1].is_err());
        assert!(Message::parse_batch(&Bytes::from_static(b"[]"), 8, 50).is_err());
        assert!(Message::parse_batch(&text, 8, 1).is_err());
    }

    #[test]
    fn odd_error_codes_are_no_codes() {
        for (code, want) in [
            ("-32042", Some(-32042)),
            ("1e30", None),
            ("3.5", None),
            ("\"x\"", None),
        ] {
            let m = parse(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"error":{{"message":"","code":{code}}}}}"#
            ));
            assert_eq!(m.unwrap().error_code(), want);
        }
    }
}
