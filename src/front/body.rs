//! Reading a request's body within its limits of size and time, and answering in pieces.

use super::{app::Settings, refusal::Refusal};
use crate::mcp::Pieces;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

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

/// A body that is there already, of known length.
pub fn whole(pieces: Pieces) -> Body {
    Body::new(Whole(pieces))
}

struct Whole(Pieces);

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}
