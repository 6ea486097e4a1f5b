//! 2026-07-28 over HTTP: every POST stands for itself. A client that closes the response's connection cancels
//! the request.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::fault::{Fault, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY};
use super::http::refuse;
use super::legacy::{self, Kind};
use super::sse::{self, Wanted};
use super::world::World;
use super::{headers, modern};

/// A POST to the endpoint.
pub async fn post(world: Arc<World>, headers: &HeaderMap, message: Value) -> Response {
    let id = message["id"].clone();
    let request = match legacy::kind(&message) {
        Ok(Kind::Request) => check(&world, headers, message),
        Ok(Kind::Notification) => return StatusCode::ACCEPTED.into_response(),
        Ok(Kind::Response) => Err(Fault::rpc(INVALID_REQUEST, "There is nothing to answer")),
        Err(fault) => Err(fault),
    };
    let request = match request {
        Ok(request) => request,
        Err(fault) => return refuse(StatusCode::BAD_REQUEST, &id, &fault),
    };
    let (out, received) = mpsc::unbounded_channel();
    let token = CancellationToken::new();
    // Held by this future, later by the response's body: whichever the client makes go away, the call goes too.
    let held = token.clone().drop_guard();
    tokio::spawn(modern::work(&world, request, &out, token));
    drop(out);
    let wanted = Wanted {
        answers: 1,
        batch: false,
    };
    sse::respond(wanted, received, held, status).await
}

fn check(world: &World, headers: &HeaderMap, message: Value) -> Result<modern::Request, Fault> {
    headers::check_version(headers, &message)?;
    let request = modern::check(world, message)?;
    headers::check(world, headers, &request.method, &request.params)?;
    Ok(request)
}

fn status(code: Option<i64>) -> StatusCode {
    match code {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(MISSING_CAPABILITY) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
