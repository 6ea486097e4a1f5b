//! The era without sessions (2026-07-28): what every request must carry, `server/discover`,
//! `subscriptions/listen`, and questions to the client as `input_required` results.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::call::{Call, Way, rank};
use super::fault::{Fault, error_message, result_message};
use super::legacy::{Work, unsupported};
use super::methods;
use super::revision::Revision;
use super::seal;
use super::server::capabilities;
use super::shape;
use super::world::{Listener, Outlet, World};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A request that carries what it must.
pub struct Request {
    id: Value,
    /// Its method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
    revision: Revision,
    level: Option<usize>,
}

/// The revision that the message's `_meta` names, as it is written there.
pub fn version(message: &Value) -> Option<&str> {
    message["params"]["_meta"][VERSION].as_str()
}

/// Whether the message claims to be of this era.
pub fn is_modern(message: &Value) -> bool {
    version(message).is_some_and(|name| Revision::named(name).is_none_or(Revision::is_modern))
}

/// Checks that a request carries what it must; `message` is a JSON-RPC request.
pub fn check(world: &World, mut message: Value) -> Result<Request, Fault> {
    let meta = &message["params"]["_meta"];
    let Some(name) = meta[VERSION].as_str() else {
        return Err(Fault::params(format!("`_meta` must carry `{VERSION}`")));
    };
    let revision = Revision::named(name)
        .filter(|revision| revision.is_modern() && world.spoken.includes(*revision))
        .ok_or_else(|| unsupported(world, name))?;
    if !meta[CAPABILITIES].is_object() {
        return Err(Fault::params(format!(
            "`_meta` must carry `{CAPABILITIES}`"
        )));
    }
    let level = match &meta[LOG_LEVEL] {
        Value::Null => None,
        level => {
            let known = level.as_str().and_then(rank);
            Some(known.ok_or_else(|| Fault::params(format!("Unknown log level: {level}")))?)
        }
    };
    Ok(Request {
        id: message["id"].take(),
        method: message["method"].as_str().unwrap_or_default().to_owned(),
        params: message["params"].take(),
        revision,
        level,
    })
}

/// The work to do for a request; it ends without an answer when `token` is cancelled.
pub fn work(world: &Arc<World>, request: Request, out: &Outlet, token: CancellationToken) -> Work {
    let (world, out) = (Arc::clone(world), out.clone());
    Box::pin(async move {
        let id = request.id.clone();
        let outcome = tokio::select! {
            biased;
            () = token.cancelled() => Err(Fault::Cancelled),
            outcome = answer(&world, request, &out) => outcome,
        };
        let message = match outcome {
            Ok(result) => result_message(&id, result),
            // Nobody waits for the answer to a cancelled request.
            Err(Fault::Cancelled) => return,
            Err(fault) => error_message(&id, &fault),
        };
        let _ = out.send(message);
    })
}

async fn answer(world: &Arc<World>, request: Request, out: &Outlet) -> Result<Value, Fault> {
    let method = request.method.clone();
    let revision = request.revision;
    let server = &*world.server;
    let (result, fresh) = match method.as_str() {
        "server/discover" => (discover(world, revision), true),
        "subscriptions/listen" => (listen(world, &request, out).await?, true),
        _ => {
            let (answers, fresh) = answers(&request.params)?;
            (call(world, request, answers, out).await?, fresh)
        }
    };
    Ok(shape::modern_result(
        result, &method, server, revision, fresh,
    ))
}

fn discover(world: &World, revision: Revision) -> Value {
    let server = &*world.server;
    json!({
        "supportedVersions": world.spoken.names(),
        "capabilities": capabilities(server, revision),
        "instructions": server.instructions(),
    })
}

async fn call(
    world: &Arc<World>,
    request: Request,
    answers: Map<String, Value>,
    out: &Outlet,
) -> Result<Value, Fault> {
    let call = Call {
        world: Arc::clone(world),
        revision: request.revision,
        capabilities: request.params["_meta"][CAPABILITIES].clone(),
        params: request.params,
        diary: Arc::clone(&world.diary),
        way: Way::Modern {
            answers: answers.clone(),
            level: request.level,
        },
        out: out.clone(),
    };
    match methods::answer(&call, &request.method).await {
        Err(Fault::Input { key, request }) => Ok(json!({
            "resultType": "input_required",
            "inputRequests": { key: request },
            "requestState": seal::seal(&call.params, &answers),
        })),
        outcome => outcome,
    }
}

/// The client's answers, those of earlier tries included, and whether there was no earlier try. Answers without
/// the state that their questions came with are answers to nothing, and are not looked at.
fn answers(params: &Value) -> Result<(Map<String, Value>, bool), Fault> {
    let mut answers = match &params["requestState"] {
        Value::Null => return Ok((Map::new(), true)),
        Value::String(state) => seal::open(state, params)?,
        _ => return Err(Fault::params("`requestState` must be a string")),
    };
    match &params["inputResponses"] {
        Value::Null => {}
        Value::Object(new) => answers.extend(new.clone()),
        _ => return Err(Fault::params("`inputResponses` must be an object")),
    }
    Ok((answers, false))
}

/// Runs until the client cancels it or the process ends.
async fn listen(world: &Arc<World>, request: &Request, out: &Outlet) -> Result<Value, Fault> {
    let wanted = &request.params["notifications"];
    if !wanted.is_object() {
        return Err(Fault::params("`notifications` must be given, as an object"));
    }
    let server = &*world.server;
    let offers = server.offers();
    let uris = wanted["resourceSubscriptions"]
        .as_array()
        .into_iter()
        .flatten();
    let seat = world.listen(Listener {
        id: request.id.clone(),
        tools: offers.tools_change && wanted["toolsListChanged"] == true,
        uris: uris
            .filter_map(Value::as_str)
            .filter(|uri| offers.subscriptions && server.watchable(uri))
            .map(str::to_owned)
            .collect(),
        out: out.clone(),
    });
    world.closing.cancelled().await;
    drop(seat);
    Ok(json!({
        "_meta": { "io.modelcontextprotocol/subscriptionId": request.id },
    }))
}
