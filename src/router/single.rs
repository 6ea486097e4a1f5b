//! Endpoints that are one server as it is: messages pass without looking for names.

use super::{
    client::Client,
    core::Router,
    endpoint::Place,
    exchange::{Answer, Errand},
    lists::page,
    target::Route,
};
use crate::{
    mcp::{Era, ListKind, Message, Method, code},
    session::Outbox,
};
use bytes::Bytes;
use std::sync::Arc;

impl Router {
    /// Whether lists pass as they are: from one server that speaks the client's own era.
    pub(super) fn passes_lists(&self, client: &Client) -> bool {
        let endpoint = &self.endpoints[client.endpoint()];
        let own = |p: &Place| p.server.profile(client.era()).is_some();
        endpoint.through && endpoint.only().is_some_and(own)
    }

    /// A list, or a page of it, as the server has it. One that cannot be reached or takes too long is answered for from what was last known.
    pub(super) async fn list_through(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
        kind: ListKind,
        outbox: &Arc<Outbox>,
    ) -> Answer {
        let errand = Errand {
            client,
            message,
            route: &Route::default(),
            outbox,
        };
        let place = &self.endpoints[client.endpoint()].places[0];
        let exchange = self.exchange(errand);
        if message.inner().cursor.is_some() {
            return exchange.await;
        }
        let answer = tokio::time::timeout(self.list_limit(&place.server), exchange).await;
        let lost =
            |answer: &Answer| matches!(answer.code, Some(code::UNREACHABLE | code::TIMED_OUT));
        let known = place.base(client.era()).known(kind);
        let body = match (answer, known) {
            (Ok(answer), _) if !lost(&answer) => return answer,
            (_, Some(known)) => known.body.clone(),
            (Ok(answer), None) => return answer,
            (Err(_), None) => Bytes::new(),
        };
        let missing = [place.server.id.as_str()];
        let id = message.id().unwrap_or(b"null");
        page(client.era(), id, kind, &body, None, &missing, 0).into()
    }

    /// On an endpoint that is one server as it is. Only a tool's header annotations are looked up, where someone has to make or check the headers.
    pub(super) fn route_through(&self, client: &Client, message: &Message) -> Route {
        let mut route = Route::default();
        if message.method() != Method::CallTool {
            return route;
        }
        let place = &self.endpoints[client.endpoint()].places[0];
        let own = self.slot_if_used(client, 0);
        let own = own.and_then(|slot| slot.layer().known(ListKind::Tools));
        let known = own.or_else(|| place.base(Era::Modern).known(ListKind::Tools));
        let Some(listing) = known.filter(|listing| listing.has_params) else {
            return route;
        };
        let name = message.inner().name.and_then(|s| message.text(s));
        if let Some(at) = name.and_then(|name| listing.place_of(&name)) {
            route.params = listing.entries[at].params.clone();
        }
        route
    }
}
