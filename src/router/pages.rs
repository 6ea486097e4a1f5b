//! One list of one server, followed through its pages to the end.

use super::slot::Open;
use crate::{
    backend::Fault,
    bridge,
    catalog::Fetched,
    mcp::{
        Era, Kind, ListKind, Message, code,
        list::{self, Item},
        message::quote,
        scan::MAX_DEPTH,
    },
};
use bytes::Bytes;
use std::{collections::HashSet, sync::Arc, time::Duration};

/// Pages followed at most, against a server that never ends.
pub(super) const MAX_PAGES: usize = 1_000;
/// Items of one list at most.
const MAX_ITEMS: usize = 100_000;

/// All pages of one list.
pub(super) async fn fetch(open: &Arc<Open>, kind: ListKind) -> Result<Fetched, Fault> {
    let profile = open.link.profile();
    let mut fetched = Fetched {
        items: Vec::new(),
        ttl: None,
        public: false,
        strict_params: profile.era() == Era::Modern,
    };
    if !profile.has(kind.capability()) {
        return Ok(fetched);
    }
    let mut cursors = HashSet::new();
    let mut params = "{}".to_owned();
    for _ in 0..MAX_PAGES {
        let answer = open.ask(kind.method(), &params).await?;
        if answer.kind() == Kind::Error {
            if answer.error_code() == Some(code::METHOD_NOT_FOUND) {
                return Ok(fetched);
            }
            return Err(Fault::Declined(crate::backend::error_text(&answer)));
        }
        take_page(&mut fetched, &answer, kind);
        let next = answer.inner().next_cursor.and_then(|s| answer.text(s));
        let Some(next) = next.filter(|n| !n.is_empty()) else {
            break;
        };
        if !cursors.insert(next.to_string()) || fetched.items.len() > MAX_ITEMS {
            tracing::warn!(
                method = kind.method(),
                "a server's list does not end; what came so far is used"
            );
            break;
        }
        params = format!("{{\"cursor\":{}}}", quote(&next));
    }
    let mut seen = HashSet::new();
    fetched.items.retain(|item| seen.insert(item.key.clone()));
    match (open.inlet.face.era, profile.era()) {
        (Era::Legacy, Era::Modern) => Ok(crossed(fetched, Era::Legacy, kind)),
        _ => Ok(fetched),
    }
}

/// A list as clients of the other era, `to`, can read it.
pub(super) fn crossed(mut fetched: Fetched, to: Era, kind: ListKind) -> Fetched {
    if to == Era::Legacy && kind == ListKind::Tools {
        fetched.items.iter_mut().for_each(for_legacy);
    }
    fetched
}

fn take_page(fetched: &mut Fetched, answer: &Message, kind: ListKind) {
    let inner = answer.inner();
    let ttl = inner
        .ttl
        .and_then(|s| std::str::from_utf8(answer.raw(s)).ok()?.parse().ok());
    if let Some(ttl) = ttl.map(Duration::from_millis) {
        fetched.ttl = Some(fetched.ttl.map_or(ttl, |t| t.min(ttl)));
    }
    fetched.public = inner.cache_scope.and_then(|s| answer.text(s)).as_deref() == Some("public");
    let Some(result) = answer.payload_span() else {
        return;
    };
    match list::items(&answer.slice(result), kind, MAX_DEPTH) {
        Ok((items, unusable)) => {
            if unusable > 0 {
                tracing::warn!(
                    method = kind.method(),
                    unusable,
                    "a server lists things without a name; they are left out"
                );
            }
            fetched.items.extend(items);
        }
        Err(error) => tracing::warn!(%error, "a server's list cannot be read"),
    }
}

fn for_legacy(item: &mut Item) {
    let Some(text) = bridge::legacy_tool(&item.json) else {
        return;
    };
    let json = Bytes::from(text);
    if let Some(span) = list::member(&json, "name", MAX_DEPTH) {
        item.json = json;
        item.key_span = span;
    }
}
