//! Tasks of revision 2025-11-25: ids that find their server again, and are worth nothing to anyone else.
//!
//! A task id that leaves the gateway is sealed with the principal and the server,
//! so that `tasks/*` needs no table, and an id of another caller is as unknown as
//! one that never was.

use super::{client::Client, core::Router, exchange::Errand, slot::Slot, target::Route};
use crate::mcp::{
    Edit, Era, Message, Method, RpcError, code,
    message::{Kind, quote, string},
    scan::Scanner,
};
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use std::sync::Arc;

/// What a sealed id starts with.
const MARK: &str = "dbt_";

/// Seals and opens task ids.
pub struct Seal {
    key: LessSafeKey,
}

impl Seal {
    /// A seal with a fresh random key: ids do not outlive the process, as the sessions of this era do not.
    pub fn new() -> Self {
        let mut key = [0u8; 32];
        aws_lc_rs::rand::fill(&mut key).expect("the system has random numbers");
        let key = UnboundKey::new(&AES_256_GCM_SIV, &key).expect("the key has the right length");
        Self {
            key: LessSafeKey::new(key),
        }
    }

    /// The id that clients of `principal` see for the task `id` of `server`. Equal tasks have equal ids.
    pub fn close(&self, principal: &str, server: &str, id: &str) -> String {
        let mut text = format!("{server}\n{id}").into_bytes();
        // One nonce for all: GCM-SIV then only tells equal texts, which is wanted here.
        let sealed = self.key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key([0; NONCE_LEN]),
            Aad::from(principal.as_bytes()),
            &mut text,
        );
        sealed.expect("a task id is short enough to seal");
        format!("{MARK}{}", URL_SAFE_NO_PAD.encode(text))
    }

    /// Server and original id, if `principal` was given this id.
    pub fn open(&self, principal: &str, sealed: &str) -> Option<(String, String)> {
        let mut text = URL_SAFE_NO_PAD.decode(sealed.strip_prefix(MARK)?).ok()?;
        let opened = self.key.open_in_place(
            Nonce::assume_unique_for_key([0; NONCE_LEN]),
            Aad::from(principal.as_bytes()),
            &mut text,
        );
        let text = std::str::from_utf8(opened.ok()?).ok()?;
        let (server, id) = text.split_once('\n')?;
        Some((server.to_owned(), id.to_owned()))
    }
}

impl Default for Seal {
    fn default() -> Self {
        Self::new()
    }
}

impl Router {
    /// The server of a `tasks/*` request. Modern task ids pass as they are, on endpoints with one server.
    pub(super) fn route_task(&self, client: &Client, message: &Message) -> Result<Route, RpcError> {
        let unknown = || RpcError::new(code::INVALID_PARAMS, "Unknown task");
        let Client::Legacy(session) = client else {
            let only = self.endpoints[client.endpoint()].only();
            return only.map(|_| Route::default()).ok_or_else(unknown);
        };
        let span = message.inner().task_id.ok_or_else(unknown)?;
        let sealed = message.text(span).ok_or_else(unknown)?;
        let opened = self.seal.open(&session.caller.principal, &sealed);
        let (server, original) = opened.ok_or_else(unknown)?;
        let endpoint = &self.endpoints[session.caller.endpoint];
        let at = |p: &super::endpoint::Place| p.server.id.as_str() == server;
        let place = endpoint.places.iter().position(at).ok_or_else(unknown)?;
        Ok(Route {
            place,
            changes: vec![(span, Bytes::from(quote(&original)))],
            name: Some(original),
            ..Route::default()
        })
    }

    /// Seals the task ids in a result.
    pub(super) fn expose_tasks(&self, slot: &Slot, errand: &Errand<'_>, answer: Bytes) -> Bytes {
        let Client::Legacy(session) = errand.client else {
            return answer;
        };
        let tasks = matches!(
            errand.message.method(),
            Method::GetTask | Method::TaskResult | Method::CancelTask | Method::ListTasks
        );
        if !tasks && errand.message.inner().task.is_none() {
            return answer;
        }
        self.seal_ids(&session.caller.principal, slot, answer)
    }

    /// `notifications/tasks/status` as the client gets it.
    pub(super) fn expose_task_status(&self, slot: &Slot, message: &Message) -> Option<Bytes> {
        let principal = match slot.face.era {
            Era::Legacy => &slot.face.holder.principal,
            Era::Modern => return Some(message.bytes().clone()),
        };
        message.inner().task_id?;
        Some(self.seal_ids(principal, slot, message.bytes().clone()))
    }

    /// A server's request that belongs to a task.
    pub(super) fn expose_related_task(&self, slot: &Slot, message: Bytes) -> Bytes {
        if memchr::memmem::find(&message, b"related-task").is_none() {
            return message;
        }
        self.seal_ids(&slot.face.holder.principal, slot, message)
    }

    /// Replaces the value of every `taskId` where the protocol puts one; ids inside content are data.
    fn seal_ids(&self, principal: &str, slot: &Slot, text: Bytes) -> Bytes {
        let mut edit = Edit::new();
        let mut scanner = Scanner::new(&text, crate::mcp::scan::MAX_DEPTH);
        let walk = walk(&mut scanner, &mut |span| {
            if let Some(id) = string(span.of(&text)) {
                let sealed = self.seal.close(principal, slot.server.id.as_str(), &id);
                edit.replace(span, quote(&sealed));
            }
        });
        match walk {
            Ok(()) => edit.apply(&text),
            Err(_) => text.clone(),
        }
    }

    /// `tasks/list` of every server that keeps tasks, in one page.
    pub(super) async fn list_tasks(self: &Arc<Self>, client: &Client, id: &[u8]) -> Bytes {
        let places = 0..self.endpoints[client.endpoint()].places.len();
        let ask = places.map(|place| {
            let slot = self.slot(client, place);
            async move {
                let mut tasks = Vec::new();
                let limit = self.settings.list_wait;
                // What came in time goes out; a server that hangs costs its own tasks only.
                let _ = tokio::time::timeout(limit, self.tasks_of(&slot, &mut tasks)).await;
                tasks
            }
        });
        let tasks: Vec<Bytes> = futures_util::future::join_all(ask).await.concat();
        let mut result = b"{\"tasks\":[".to_vec();
        result.extend_from_slice(&crate::catalog::join(tasks.iter()));
        result.extend_from_slice(b"]}");
        code::result_message(id, &result)
    }

    async fn tasks_of(&self, slot: &Arc<Slot>, tasks: &mut Vec<Bytes>) {
        let profile = slot.server.profile(Era::Legacy);
        let has = profile.is_some_and(|p| p.has("tasks.list"));
        let Some(open) = has.then(|| slot.ready()).flatten() else {
            return;
        };
        let mut params = "{}".to_owned();
        for _ in 0..super::pages::MAX_PAGES {
            let Ok(answer) = open.ask("tasks/list", &params).await else {
                return;
            };
            let principal = &slot.face.holder.principal;
            let sealed = self.seal_ids(principal, slot, answer.bytes().clone());
            let Ok(answer) = Message::parse(sealed, crate::mcp::scan::MAX_DEPTH) else {
                return;
            };
            let list = answer.payload_span().map(|span| answer.slice(span));
            if answer.kind() != Kind::Result {
                return;
            }
            tasks.extend(list.map(|list| elements(&list)).unwrap_or_default());
            let next = answer.inner().next_cursor.and_then(|s| answer.text(s));
            match next {
                Some(cursor) => params = format!("{{\"cursor\":{}}}", quote(&cursor)),
                None => return,
            }
        }
    }
}

/// The tasks in a result of `tasks/list`, each as it came.
fn elements(result: &Bytes) -> Vec<Bytes> {
    let mut found = Vec::new();
    let mut scanner = Scanner::new(result, crate::mcp::scan::MAX_DEPTH);
    if scanner.peek() != Some(b'{') {
        return found;
    }
    let walk = scanner.object(|s, key| {
        if !key.is("tasks") || s.peek() != Some(b'[') {
            return s.value().map(drop);
        }
        s.array(|s| {
            found.push(result.slice(s.value()?.range()));
            Ok(())
        })
        .map(drop)
    });
    match walk {
        Ok(_) => found,
        Err(_) => Vec::new(),
    }
}

/// Visits `taskId` along the members that lead to one: `result`, `params`, `task`, `tasks[]`, `_meta` and its related-task.
fn walk(
    scanner: &mut Scanner<'_>,
    found: &mut impl FnMut(crate::mcp::Span),
) -> Result<(), crate::mcp::scan::ScanError> {
    if scanner.peek() != Some(b'{') {
        return scanner.value().map(drop);
    }
    scanner
        .object(|s, key| {
            if key.is("taskId") {
                let span = s.value()?;
                found(span);
                return Ok(());
            }
            let leads = [
                "result",
                "params",
                "task",
                "_meta",
                "io.modelcontextprotocol/related-task",
            ];
            if key.is("tasks") && s.peek() == Some(b'[') {
                return s.array(|s| walk(s, found)).map(drop);
            }
            if leads.iter().any(|name| key.is(name)) {
                return walk(s, found);
            }
            s.value().map(drop)
        })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_opens_for_its_own_principal_only() {
        let seal = Seal::new();
        let sealed = seal.close("a", "files", "t\n1");
        assert_eq!(sealed, seal.close("a", "files", "t\n1"));
        assert_eq!(
            seal.open("a", &sealed),
            Some(("files".into(), "t\n1".into()))
        );
        assert_eq!(seal.open("b", &sealed), None);
        assert_eq!(seal.open("a", "t1"), None);
        assert_eq!(seal.open("a", &sealed[..sealed.len() - 2]), None);
    }

    #[test]
    fn only_the_protocols_own_ids_are_found() {
        let text = br#"{"result":{"task":{"taskId":"1"},"tasks":[{"taskId":"2"}],"content":[{"taskId":"data"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"3"}}}}"#;
        let mut found = Vec::new();
        walk(&mut Scanner::new(text, 64), &mut |s| {
            found.push(s.of(text).to_vec())
        })
        .unwrap();
        assert_eq!(found, [b"\"1\"", b"\"2\"", b"\"3\""]);
    }
}
