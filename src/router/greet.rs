//! `initialize` and `server/discover`: what a client is told first.

use super::{
    client::ModernCaller,
    core::Router,
    endpoint::Endpoint,
    standing::{ClientSession, Standing},
};
use crate::{
    auth::Principal,
    backend::{Health, Profile},
    mcp::{
        Era, Message, Revision, RpcError,
        code::{self, result_message},
        list::member,
        message::quote,
        scan::MAX_DEPTH,
        union,
    },
    session::{Caller, Streams},
};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};

/// How long a modern client may keep what `server/discover` said.
const DISCOVER_TTL_MS: u64 = 60_000;

/// How long the servers that are not there yet are waited for where another one is.
const MOMENT: Duration = Duration::from_secs(1);

/// A session that was opened, and the answer to its `initialize`.
pub struct Greeted {
    pub session: Arc<ClientSession>,
    pub answer: Bytes,
}

impl Router {
    /// Opens a session. Servers that were never reached are waited for within a bound, then the answer goes without them.
    pub async fn initialize(
        self: &Arc<Self>,
        principal: &Principal,
        endpoint: usize,
        message: &Message,
    ) -> Result<Greeted, RpcError> {
        let inner = message.inner();
        let asked = inner
            .protocol_version
            .and_then(|s| message.text(s))
            .ok_or_else(|| {
                RpcError::new(
                    code::INVALID_PARAMS,
                    "`protocolVersion` is missing or not a string",
                )
            })?;
        let revision = Revision::settle(&asked);
        let object = |span: Option<crate::mcp::Span>| match span.map(|s| message.slice(s)) {
            Some(raw) if raw.first() == Some(&b'{') => raw,
            _ => Bytes::from_static(b"{}"),
        };
        let capabilities_json = Bytes::copy_from_slice(&object(inner.capabilities));
        let capabilities = serde_json::from_slice(&capabilities_json).unwrap_or_default();
        self.first_contacts(endpoint).await;
        let caller = Caller {
            principal: principal.name.clone(),
            endpoint,
            revision,
            client_info: Bytes::copy_from_slice(&object(inner.client_info)),
            capabilities_json,
            capabilities,
        };
        let streams = Streams::new(self.settings.bounds, self.settings.keep);
        let standing = Standing::new(self.endpoints[endpoint].places.len());
        let opened = self.sessions.open(caller, streams, standing);
        let opened = opened.map_err(|_| {
            RpcError::new(code::OVER_LIMIT, "no more sessions can be opened now")
                .with(json!({"retryAfterMs": 1000}))
        })?;
        let session = opened.session;
        if let Some(evicted) = opened.evicted {
            self.clean_up(evicted);
        }
        self.metrics.sessions.set(self.sessions.len() as i64);
        let result = self.initialize_result(endpoint, revision);
        let answer = result_message(message.id().unwrap_or(b"null"), &result);
        Ok(Greeted { session, answer })
    }

    /// `server/discover`.
    pub(super) async fn discover(self: &Arc<Self>, caller: &ModernCaller, id: &[u8]) -> Bytes {
        self.first_contacts(caller.endpoint).await;
        let endpoint = &self.endpoints[caller.endpoint];
        let supported: Vec<&str> = Revision::ALL.iter().map(|r| r.as_str()).collect();
        let only = endpoint.only().filter(|_| endpoint.through);
        let profile = only.and_then(|p| p.server.profile_for(Era::Modern));
        if let Some(profile) = profile.as_ref().filter(|p| p.era() == Era::Modern)
            && let Some(span) = member(&profile.result, "supportedVersions", MAX_DEPTH)
        {
            let mut edit = crate::mcp::Edit::new();
            edit.replace(span, json!(supported).to_string());
            return result_message(id, &edit.apply(&profile.result));
        }
        let (info, instructions) = introduction(endpoint, Era::Modern);
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": supported,
            "capabilities": offered(endpoint, Era::Modern),
            "ttlMs": DISCOVER_TTL_MS,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": info},
        });
        if let Some(text) = instructions {
            result["instructions"] = text.into();
        }
        result_message(id, result.to_string().as_bytes())
    }

    /// Waits for servers that were never reached, all at once, within the bound. Where one is there to work with, the rest is waited for only a moment.
    async fn first_contacts(&self, endpoint: usize) {
        let places = &self.endpoints[endpoint].places;
        let all = |limit: Duration| {
            let wait = places.iter().map(move |p| p.server.first_contact(limit));
            futures_util::future::join_all(wait)
        };
        let limit = self.settings.wait;
        if places.iter().all(|p| p.server.is_met()) {
            return;
        }
        all(limit.min(MOMENT)).await;
        if !places.iter().any(|p| p.server.health() == Health::Up) {
            all(limit.saturating_sub(MOMENT)).await;
        }
    }

    fn initialize_result(&self, endpoint: usize, revision: Revision) -> Bytes {
        let endpoint = &self.endpoints[endpoint];
        let only = endpoint.only().filter(|_| endpoint.through);
        let profile = only.and_then(|p| p.server.profile(Era::Legacy));
        if let Some(profile) = profile
            && let Some(span) = member(&profile.result, "protocolVersion", MAX_DEPTH)
        {
            let mut edit = crate::mcp::Edit::new();
            edit.replace(span, quote(revision.as_str()));
            return edit.apply(&profile.result);
        }
        let (info, instructions) = introduction(endpoint, Era::Legacy);
        let mut result = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": offered(endpoint, Era::Legacy),
            "serverInfo": info,
        });
        if let Some(text) = instructions {
            result["instructions"] = text.into();
        }
        result.to_string().into()
    }
}

/// Name and instructions: the server's own where there is one, else ours and a heading for each.
fn introduction(endpoint: &Endpoint, era: Era) -> (Value, Option<String>) {
    let ours = json!({"name": "drawbridge", "version": env!("CARGO_PKG_VERSION")});
    let profile = |p: &super::endpoint::Place| p.server.profile_for(era);
    if endpoint.stands_alone() {
        let profile = endpoint.only().and_then(profile);
        let info = profile.as_ref().and_then(|p| p.server_info.as_deref());
        let info = info
            .and_then(|i| serde_json::from_slice(i).ok())
            .unwrap_or(ours);
        return (info, profile.and_then(|p| p.instructions.clone()));
    }
    let mut text = String::new();
    for place in &endpoint.places {
        let instructions = profile(place).and_then(|p| p.instructions.clone());
        if let Some(instructions) = instructions.filter(|i| !i.trim().is_empty()) {
            text.push_str(&format!(
                "## {}\n\n{}\n\n",
                place.server.id,
                instructions.trim()
            ));
        }
    }
    let text = text.trim_end().to_owned();
    (ours, (!text.is_empty()).then_some(text))
}

/// The union of what the servers offer. A server never reached might offer any list, so lists are offered for it.
fn offered(endpoint: &Endpoint, era: Era) -> Value {
    let mut all = Value::Object(Map::new());
    let mut unknown = false;
    for place in &endpoint.places {
        match place.server.profile_for(era) {
            Some(profile) => union::join(&mut all, &crossed(&profile, era)),
            None => unknown = true,
        }
    }
    if unknown || endpoint.places.is_empty() {
        union::join(&mut all, &json!({"tools": {}}));
    }
    if unknown {
        let lists = json!({"prompts": {}, "resources": {}, "logging": {}, "completions": {}});
        union::join(&mut all, &lists);
    }
    let announces = !endpoint.through || unknown;
    for list in ["tools", "prompts", "resources"] {
        if let Some(Value::Object(one)) = all.get_mut(list)
            && announces
            && era == Era::Legacy
        {
            one.insert("listChanged".into(), true.into());
        }
    }
    all
}

/// What of a server's capabilities reaches a client of `era`.
fn crossed(profile: &Profile, era: Era) -> Value {
    let mut capabilities = Value::Object(profile.capabilities.clone());
    if profile.era() == era {
        return capabilities;
    }
    // Across eras, subscriptions and tasks are not carried yet; the flags must not promise them.
    if let Some(all) = capabilities.as_object_mut() {
        all.shift_remove("tasks");
        for list in ["tools", "prompts", "resources"] {
            if let Some(Value::Object(one)) = all.get_mut(list) {
                one.shift_remove("subscribe");
                if era == Era::Modern {
                    one.shift_remove("listChanged");
                }
            }
        }
        if era == Era::Modern {
            all.shift_remove("logging");
            if profile.has("logging") {
                all.insert("logging".into(), json!({}));
            }
        }
    }
    capabilities
}
