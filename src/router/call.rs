//! A client's request: answered here, or sent to where its target is.

use super::{
    client::Client,
    core::Router,
    exchange::{Answer, Errand},
    params,
    standing::{ClientSession, level_rank},
    target::Route,
};
use crate::{
    backend::Fault,
    mcp::{Era, ListKind, Message, Method, RpcError, Target, code, edit::with_id},
    session::Outbox,
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts a call of a session while it runs.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Router {
    /// Answers one request; the answer carries the client's id. Whatever belongs to the call before that goes to `outbox`.
    pub async fn request(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
        outbox: &Arc<Outbox>,
    ) -> Answer {
        let id = message.id().unwrap_or(b"null");
        self.running.fetch_add(1, Ordering::Relaxed);
        let _running = Counted(&self.running);
        let _counted = match client {
            Client::Legacy(session) => {
                let calls = &session.state.calls;
                let counted = Counted(calls);
                if calls.fetch_add(1, Ordering::Relaxed) >= self.settings.calls_per_session {
                    let text = "this session has too many calls running at a time";
                    return Answer::error(&RpcError::new(code::OVER_LIMIT, text), id);
                }
                Some(counted)
            }
            Client::Modern(_) => None,
        };
        match self.dispatch(client, message, outbox).await {
            Ok(answer) => answer,
            Err(error) => Answer::error(&error, id),
        }
    }

    async fn dispatch(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
        outbox: &Arc<Outbox>,
    ) -> Result<Answer, RpcError> {
        let row = message.row();
        let id = message.id().unwrap_or(b"null");
        let endpoint = &self.endpoints[client.endpoint()];
        if row.era.is_some_and(|era| era != client.era())
            || row.sender == crate::mcp::Sender::Server
        {
            return Err(not_found(message));
        }
        let needed = row.method.capability();
        let passes = endpoint.through && row.method != Method::ListTasks;
        if !passes && needed.is_some_and(|c| endpoint.lacks(client.era(), c)) {
            return Err(not_found(message));
        }
        let route = match (row.target, client) {
            (Target::Gateway, Client::Legacy(session)) => {
                return self.answer_legacy(session, message).await;
            }
            (Target::Gateway, Client::Modern(caller)) => {
                return Ok(self.discover(caller, id).await.into());
            }
            (Target::Task, _) => self.route_task(client, message)?,
            (Target::All, _) => match row.method {
                Method::List(kind) if self.passes_lists(client) => {
                    return Ok(self.list_through(client, message, kind, outbox).await);
                }
                Method::List(kind) => return Ok(self.list(client, message, kind).await?.into()),
                _ => return Ok(self.list_tasks(client, id).await.into()),
            },
            _ if endpoint.through => self.route_through(client, message),
            _ => self.route(client, message).await?,
        };
        if let Client::Modern(caller) = client {
            params::check(&caller.params, message, &route.params)?;
        }
        if row.method == Method::Listen {
            self.check_listen(client, route.place).await?;
        }
        if let (Method::Subscribe | Method::Unsubscribe, Client::Legacy(session)) =
            (row.method, client)
        {
            return Ok(self
                .subscribe(session, client, message, &route, outbox)
                .await);
        }
        let errand = Errand {
            client,
            message,
            route: &route,
            outbox,
        };
        let answer = self.exchange(errand).await;
        let mismatch = matches!(answer.code, Some(code::HEADER_MISMATCH));
        match (mismatch, client) {
            (true, Client::Legacy(_)) => self.call_again(client, message, &route, outbox).await,
            _ => Ok(answer),
        }
    }

    /// A server refused the headers that were made for a legacy client's call, which never ran: they were made from an old schema, so it is read anew and the call sent once more.
    async fn call_again(
        self: &Arc<Self>,
        client: &Client,
        message: &Message,
        route: &Route,
        outbox: &Arc<Outbox>,
    ) -> Result<Answer, RpcError> {
        let slot = self.slot(client, route.place);
        self.reload(&slot, ListKind::Tools).await;
        let route = match self.endpoints[client.endpoint()].through {
            true => self.route_through(client, message),
            false => self.route(client, message).await?,
        };
        let errand = Errand {
            client,
            message,
            route: &route,
            outbox,
        };
        let answer = self.exchange(errand).await;
        match answer.code {
            Some(code::HEADER_MISMATCH) => {
                let fault = Fault::Declined("the headers of the call".into());
                Err(fault.answer(slot.server.id.as_str()))
            }
            _ => Ok(answer),
        }
    }

    /// Subscriptions of the modern era need a modern server as yet.
    async fn check_listen(self: &Arc<Self>, client: &Client, place: usize) -> Result<(), RpcError> {
        let slot = self.slot(client, place);
        let server = slot.server.id.as_str();
        let open = slot.take().await.map_err(|fault| fault.answer(server))?;
        let era = open.link.profile().era();
        slot.done(&open).await;
        match era {
            Era::Modern => Ok(()),
            Era::Legacy => {
                let text = format!(
                    "Method not found: the server `{server}` has no subscriptions/listen, and its own notifications are not carried to clients of this revision yet"
                );
                Err(RpcError::new(code::METHOD_NOT_FOUND, text))
            }
        }
    }

    /// What the front answers for a session by itself.
    async fn answer_legacy(
        self: &Arc<Self>,
        session: &Arc<ClientSession>,
        message: &Message,
    ) -> Result<Answer, RpcError> {
        let id = message.id().unwrap_or(b"null");
        match message.method() {
            Method::Ping => Ok(Answer::result(id, b"{}")),
            Method::Shutdown => {
                self.end(&session.id);
                Ok(Answer::result(id, b"{}"))
            }
            Method::SetLevel => self.set_level(session, message).await,
            Method::Initialize => Err(RpcError::new(
                code::INVALID_REQUEST,
                "this session is initialized already; open a new one without Mcp-Session-Id",
            )),
            _ => Err(not_found(message)),
        }
    }

    /// Remembered for the session, told to every backend that has levels, now or when it opens.
    async fn set_level(
        self: &Arc<Self>,
        session: &Arc<ClientSession>,
        message: &Message,
    ) -> Result<Answer, RpcError> {
        let name = message.inner().level.and_then(|s| message.text(s));
        let rank = name.as_deref().and_then(level_rank).ok_or_else(|| {
            RpcError::new(
                code::INVALID_PARAMS,
                "`level` is not one of the levels of RFC 5424",
            )
        })?;
        let endpoint = &self.endpoints[session.caller.endpoint];
        let profiles = endpoint
            .places
            .iter()
            .map(|p| p.server.profile_for(Era::Legacy));
        let none = profiles
            .clone()
            .all(|p| p.is_some_and(|p| !p.has("logging") && p.era() == Era::Legacy));
        if none && !endpoint.places.is_empty() {
            return Err(not_found(message));
        }
        session.state.set_level(rank);
        let open = session
            .state
            .slots()
            .filter_map(|s| Some((s.clone(), s.ready()?)));
        let tell = open.map(|(slot, open)| async move {
            slot.set_level(&open, super::standing::LEVELS[rank]).await;
        });
        // One that does not answer holds up nobody.
        let told = self.spawn(futures_util::future::join_all(tell.collect::<Vec<_>>()));
        let _ = tokio::time::timeout(self.settings.list_wait, told).await;
        Ok(Answer::result(message.id().unwrap_or(b"null"), b"{}"))
    }

    /// Subscriptions are counted where sessions share a backend: only the last one that leaves unsubscribes.
    async fn subscribe(
        self: &Arc<Self>,
        session: &Arc<ClientSession>,
        client: &Client,
        message: &Message,
        route: &Route,
        outbox: &Arc<Outbox>,
    ) -> Answer {
        let id = message.id().unwrap_or(b"null");
        let seen = message.inner().uri.and_then(|s| message.text(s));
        let uri = route
            .name
            .clone()
            .or(seen.map(|t| t.into_owned()))
            .unwrap_or_default();
        let slot = self.slot(client, route.place);
        if slot.server.profile(Era::Legacy).is_none() && slot.server.profile(Era::Modern).is_some()
        {
            let text = "resource subscriptions of this server are not carried to this client yet";
            return Answer::error(&RpcError::new(code::NOT_CARRIED, text), id);
        }
        if message.method() == Method::Unsubscribe {
            let was = session.state.unsubscribe(route.place, &uri);
            let others = was.then(|| self.subscribers.leave(&slot, &uri)).flatten();
            if others.is_some_and(|others| others > 0) {
                return Answer::result(id, b"{}");
            }
        }
        let errand = Errand {
            client,
            message,
            route,
            outbox,
        };
        let answer = self.exchange(errand).await;
        let good = answer.code.is_none();
        if good
            && message.method() == Method::Subscribe
            && session.state.subscribe(route.place, &uri)
        {
            self.subscribers.join(&slot, &uri);
        }
        answer
    }

    /// A client's notification.
    pub async fn notification(self: &Arc<Self>, session: &Arc<ClientSession>, message: &Message) {
        match message.method() {
            Method::Initialized => session.state.initialized.store(true, Ordering::Relaxed),
            Method::Exit => {
                self.end(&session.id);
            }
            Method::Cancelled => self.cancel(session, message),
            Method::Progress => self.progress_of_answer(session, message),
            _ if message.row().sender == crate::mcp::Sender::Server => {}
            // What no server could be told apart by goes to the only one there is.
            method if method != Method::RootsChanged && !self.is_single(session) => {}
            _ => {
                for slot in session.state.slots() {
                    let Some(open) = slot.ready() else { continue };
                    if open.link.profile().era() == Era::Modern {
                        continue;
                    }
                    let text = crate::mcp::edit::on_one_line(message.bytes().clone());
                    if let Err(fault) = open.link.notify(text).await {
                        tracing::debug!(server = %slot.server.id, %fault, "a notification could not be sent");
                    }
                }
            }
        }
    }

    fn is_single(&self, session: &ClientSession) -> bool {
        self.endpoints[session.caller.endpoint].only().is_some()
    }

    /// To the one server that runs the call, under that server's id; an unknown id is ignored.
    fn cancel(&self, session: &Arc<ClientSession>, message: &Message) {
        let Some(span) = message.inner().request_id else {
            return;
        };
        let id = super::exchange::canonical_id(message.raw(span));
        if session.state.cancel_waiting(&id) {
            return;
        }
        let payload = message.payload().unwrap_or_default();
        let reason = crate::mcp::list::member(payload, "reason", crate::mcp::scan::MAX_DEPTH);
        let reason = reason.map(|s| s.of(payload));
        for slot in session.state.slots() {
            for open in slot.links() {
                if let Some(own) = open.inlet.running(&id).pop() {
                    open.link.cancel(own, reason);
                    return;
                }
            }
        }
    }

    /// Progress of a client on a server's request.
    fn progress_of_answer(&self, session: &Arc<ClientSession>, message: &Message) {
        let Some(span) = message.inner().progress_token else {
            return;
        };
        let own = crate::mcp::message::own_number(message.raw(span));
        let Some((inlet, token)) = own.and_then(|id| session.state.asks.token(id)) else {
            return;
        };
        let mut edit = crate::mcp::Edit::new();
        edit.replace(span, token);
        inlet.notify(edit.apply(message.bytes()));
    }

    /// A client's answer to a server's request; each question takes one.
    pub fn response(self: &Arc<Self>, session: &Arc<ClientSession>, message: &Message) {
        let ask = message.own_id().and_then(|id| session.state.asks.take(id));
        match ask {
            Some(ask) => ask.inlet.respond(with_id(message, &ask.original)),
            None => tracing::debug!("a client answered a request that nobody waits for"),
        }
    }
}

fn not_found(message: &Message) -> RpcError {
    let name = message.method_name();
    RpcError::new(code::METHOD_NOT_FOUND, format!("Method not found: {name}"))
}
