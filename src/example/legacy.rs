//! The eras with sessions (2025-11-25 and earlier): `initialize`, and the methods that need a session. Takes
//! one message at a time, whatever the transport; where its answer goes is the transport's to say.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::call::{Call, Way, rank};
use super::fault::{Fault, INVALID_REQUEST, UNSUPPORTED_VERSION, error_message, result_message};
use super::methods;
use super::revision::Revision;
use super::server::{capabilities, implementation};
use super::session::{Client, Session};
use super::world::{Outlet, World};

/// Until a client sets a level it hears what went wrong, and nothing else.
pub const DEFAULT_LEVEL: &str = "warning";

/// A request being worked on; its messages, the answer last, go to the outlet it was given.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What kind of message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Wants an answer.
    Request,
    /// Wants none.
    Notification,
    /// Is the answer to one of ours.
    Response,
}

/// The kind of a JSON-RPC message, or the fault that it is none.
pub fn kind(message: &Value) -> Result<Kind, Fault> {
    let id = &message["id"];
    let id_valid = id.is_string() || id.is_i64() || id.is_u64();
    let params_valid = matches!(message["params"], Value::Null | Value::Object(_));
    let answer = message["result"].is_object() || message["error"].is_object();
    match (&message["method"], id) {
        _ if message["jsonrpc"] != "2.0" || !params_valid => Err(()),
        (Value::String(_), Value::Null) if message.get("id").is_none() => Ok(Kind::Notification),
        (Value::String(_), _) if id_valid => Ok(Kind::Request),
        (Value::Null, _) if id_valid && answer => Ok(Kind::Response),
        _ => Err(()),
    }
    .map_err(|()| Fault::rpc(INVALID_REQUEST, "Not a JSON-RPC message"))
}

/// Takes a message of a session. A request comes back as the work to do for it; anything else is done at once.
pub fn receive(
    world: &Arc<World>,
    session: &Arc<Session>,
    message: Value,
    out: &Outlet,
) -> Option<Work> {
    match kind(&message) {
        Ok(Kind::Request) => Some(request(world, session, message, out)),
        Ok(Kind::Notification) => {
            if message["method"] == "notifications/cancelled" {
                session.running.cancel(&message["params"]["requestId"]);
            }
            None
        }
        Ok(Kind::Response) => {
            let answer = match &message["error"] {
                Value::Null => Ok(message["result"].clone()),
                error => Err(error.clone()),
            };
            session.answered(&message["id"], answer);
            None
        }
        Err(fault) => {
            let _ = out.send(error_message(&message["id"], &fault));
            None
        }
    }
}

fn request(world: &Arc<World>, session: &Arc<Session>, mut message: Value, out: &Outlet) -> Work {
    let id = message["id"].take();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let params = message["params"].take();
    let (world, session, out) = (Arc::clone(world), Arc::clone(session), out.clone());
    let token = CancellationToken::new();
    session.running.begin(&id, token.clone());
    Box::pin(async move {
        let outcome = tokio::select! {
            biased;
            () = token.cancelled() => Err(Fault::Cancelled),
            outcome = answer(&world, &session, &method, params, &out) => outcome,
        };
        session.running.end(&id);
        let message = match outcome {
            Ok(result) => result_message(&id, result),
            // Nobody waits for the answer to a cancelled request.
            Err(Fault::Cancelled) => return,
            Err(fault) => error_message(&id, &fault),
        };
        let _ = out.send(message);
    })
}

async fn answer(
    world: &Arc<World>,
    session: &Arc<Session>,
    method: &str,
    params: Value,
    out: &Outlet,
) -> Result<Value, Fault> {
    match method {
        "initialize" => return initialize(world, session, &params),
        "ping" => return Ok(json!({})),
        _ => {}
    }
    let Some(client) = session.client() else {
        if method == "server/discover" {
            return Err(Fault::method(method));
        }
        return Err(Fault::rpc(
            INVALID_REQUEST,
            "The first request must be `initialize`",
        ));
    };
    let offers = world.server.offers();
    match method {
        "logging/setLevel" if offers.logging => set_level(session, &params),
        "resources/subscribe" if offers.subscriptions => {
            let uri = methods::string(&params, "uri")?;
            if !world.server.watchable(uri) {
                return Err(Fault::resource(client.revision, uri));
            }
            session.subscribe(uri);
            Ok(json!({}))
        }
        "resources/unsubscribe" if offers.subscriptions => {
            session.unsubscribe(methods::string(&params, "uri")?);
            Ok(json!({}))
        }
        _ => {
            let call = Call {
                world: Arc::clone(world),
                revision: client.revision,
                params,
                diary: Arc::clone(&session.diary),
                capabilities: client.capabilities.clone(),
                way: Way::Legacy(Arc::clone(session)),
                out: out.clone(),
            };
            methods::answer(&call, method).await
        }
    }
}

fn set_level(session: &Session, params: &Value) -> Result<Value, Fault> {
    let level = methods::string(params, "level")?;
    let rank = rank(level).ok_or_else(|| Fault::params(format!("Unknown log level: {level}")))?;
    session.set_level(rank);
    Ok(json!({}))
}

fn initialize(world: &World, session: &Session, params: &Value) -> Result<Value, Fault> {
    let wanted = methods::string(params, "protocolVersion")?;
    let revision = settle_on(world, wanted)?;
    if !params["capabilities"].is_object() || !params["clientInfo"].is_object() {
        return Err(Fault::params(
            "`capabilities` and `clientInfo` must be given, as objects",
        ));
    }
    let settled = session.settle(Client {
        revision,
        capabilities: params["capabilities"].clone(),
    });
    if !settled {
        return Err(Fault::rpc(
            INVALID_REQUEST,
            "This session is initialized already",
        ));
    }
    let server = &*world.server;
    Ok(json!({
        "protocolVersion": revision.as_str(),
        "capabilities": capabilities(server, revision),
        "serverInfo": implementation(server, revision),
        "instructions": server.instructions(),
    }))
}

/// The client's revision if it is spoken, else our newest that has `initialize`.
fn settle_on(world: &World, wanted: &str) -> Result<Revision, Fault> {
    Revision::named(wanted)
        .filter(|revision| !revision.is_modern() && world.spoken.includes(*revision))
        .or_else(|| world.spoken.newest_legacy())
        .ok_or_else(|| unsupported(world, wanted))
}

/// The fault that names what the server speaks.
pub fn unsupported(world: &World, requested: &str) -> Fault {
    Fault::with_data(
        UNSUPPORTED_VERSION,
        "Unsupported protocol version",
        json!({ "supported": world.spoken.names(), "requested": requested }),
    )
}
