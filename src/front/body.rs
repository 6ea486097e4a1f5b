//! Reading a request's body within its limits of size and time.

use super::{app::Settings, refusal::Refusal};
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;

/// The whole body.
pub async fn read(settings: &Settings, headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let limit = settings.body;
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(Refusal::TooLarge(limit));
    }
    let reading = collect(body, limit, declared.unwrap_or(0));
    match tokio::time::timeout(settings.request_timeout, reading).await {
        Ok(read) => read,
        Err(_) => Err(Refusal::Slow),
    }
}

/// Most bodies come in one frame, which is then taken as it is.
async fn collect(mut body: Body, limit: usize, declared: usize) -> Result<Bytes, Refusal> {
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::Interrupted)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first.len() + whole.len() + data.len() > limit {
            return Err(Refusal::TooLarge(limit));
        }
        if first.is_empty() && whole.is_empty() {
            first = data;
            continue;
        }
        if whole.is_empty() {
            whole.reserve(declared.clamp(first.len() + data.len(), limit));
            whole.extend_from_slice(&first);
            first = Bytes::new();
        }
        whole.extend_from_slice(&data);
    }
    Ok(if whole.is_empty() {
        first
    } else {
        whole.freeze()
    })
}
