//! Which server a request is for, and under which name that server knows the target.

use super::{client::Client, core::Router, slot::Slot};
use crate::mcp::{
    ListKind, Message, Method, RpcError, Span, Target, code,
    list::member,
    message::{quote, string},
    param::Param,
    scan::MAX_DEPTH,
};
use bytes::Bytes;
use std::sync::Arc;

/// Where a request goes and what changes on the way.
#[derive(Debug, Default)]
pub struct Route {
    pub place: usize,
    pub changes: Vec<(Span, Bytes)>,
    /// The target as the server knows it, decoded: `Mcp-Name`.
    pub name: Option<String>,
    pub params: Vec<Param>,
    /// Fixed parameters to put into the arguments.
    pub fixed: Option<serde_json::Map<String, serde_json::Value>>,
}

/// One text for what is unknown, hidden or forbidden: an answer must not tell which.
fn unknown(what: &str, name: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("Unknown {what}: {name}"))
}

fn missing(member: &str) -> RpcError {
    RpcError::new(
        code::INVALID_PARAMS,
        format!("`{member}` is missing or not a string"),
    )
}

impl Router {
    /// Finds the server of a request on an endpoint that merges or filters.
    pub(super) async fn route(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
    ) -> Result<Route, RpcError> {
        match message.row().target {
            Target::Tool => self.route_name(client, message, ListKind::Tools).await,
            Target::Prompt => self.route_name(client, message, ListKind::Prompts).await,
            Target::Uri => {
                let span = message.inner().uri.ok_or_else(|| missing("uri"))?;
                let uri = message
                    .text(span)
                    .ok_or_else(|| missing("uri"))?
                    .into_owned();
                let (place, original) = self.route_uri(client, &uri, message.method()).await?;
                Ok(renamed(place, span, &uri, original))
            }
            Target::Reference => self.route_reference(client, message).await,
            _ => self.route_only(client, message),
        }
    }

    fn route_only(&self, client: &Client, message: &Message) -> Result<Route, RpcError> {
        let endpoint = &self.endpoints[client.endpoint()];
        if message.method() == Method::Listen && endpoint.places.len() != 1 {
            return Err(RpcError::new(
                code::NOT_CARRIED,
                "subscriptions are not carried on an endpoint with several servers yet",
            ));
        }
        match endpoint.only() {
            Some(_) => Ok(Route::default()),
            None => Err(RpcError::new(
                code::METHOD_NOT_FOUND,
                format!("Method not found: {}", message.method_name()),
            )),
        }
    }

    async fn route_name(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
        kind: ListKind,
    ) -> Result<Route, RpcError> {
        let span = message.inner().name.ok_or_else(|| missing("name"))?;
        let name = message.text(span).ok_or_else(|| missing("name"))?;
        let what = if kind == ListKind::Tools {
            "tool"
        } else {
            "prompt"
        };
        let found = self.find_name(client, &name, kind).await?;
        let found = found.ok_or_else(|| unknown(what, &name))?;
        let (place, entry) = (found.place, found.entry());
        let mut route = renamed(place, span, &name, entry.original.clone());
        route.params = entry.params.clone();
        if kind == ListKind::Tools {
            let shape = &self.endpoints[client.endpoint()].places[place].shape;
            route.fixed = shape.fixed(&entry.original);
        }
        Ok(route)
    }

    /// `completion/complete`: by the prompt or template that it refers to.
    async fn route_reference(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
    ) -> Result<Route, RpcError> {
        let outer = message.inner().reference.ok_or_else(|| missing("ref"))?;
        let raw = message.raw(outer);
        let field = |name: &str| {
            let span = member(raw, name, MAX_DEPTH)?;
            let text = string(span.of(raw))?.into_owned();
            Some((outer.within(span), text))
        };
        let kind = field("type").ok_or_else(|| missing("ref.type"))?.1;
        match kind.as_str() {
            "ref/prompt" => {
                let (span, name) = field("name").ok_or_else(|| missing("ref.name"))?;
                let found = self.find_name(client, &name, ListKind::Prompts).await?;
                let found = found.ok_or_else(|| unknown("prompt", &name))?;
                let original = found.entry().original.clone();
                Ok(renamed(found.place, span, &name, original))
            }
            "ref/resource" => {
                let (span, uri) = field("uri").ok_or_else(|| missing("ref.uri"))?;
                let (place, original) = self.route_uri(client, &uri, message.method()).await?;
                Ok(renamed(place, span, &uri, original))
            }
            _ => Err(RpcError::new(
                code::INVALID_PARAMS,
                "`ref.type` is neither ref/prompt nor ref/resource",
            )),
        }
    }

    pub(super) fn slot_if_used(&self, client: &Client, place: usize) -> Option<Arc<Slot>> {
        match client {
            Client::Legacy(session) => session.state.slot_if_used(place).cloned(),
            Client::Modern(caller) => self.pooled_if_used(caller, place),
        }
    }
}

fn renamed(place: usize, span: Span, seen: &str, original: String) -> Route {
    let mut changes = Vec::new();
    if seen != original {
        changes.push((span, Bytes::from(quote(&original))));
    }
    Route {
        place,
        changes,
        name: Some(original),
        ..Route::default()
    }
}
