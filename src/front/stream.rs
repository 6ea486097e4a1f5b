//! An event stream as the body of a response.

use super::app::Front;
use crate::{
    mcp::{edit::on_one_line, sse},
    router::{Answer, ClientSession},
    session::{EventId, Outbox, Sort},
};
use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderValue, header};
use http_body::Frame;
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Reads one outbox. Dropping it detaches it; where it drives a call of the modern era, that cancels the call.
pub struct EventBody {
    outbox: Arc<Outbox>,
    reader: u64,
    /// Whether events carry ids, which only clients that may resume get.
    resumable: bool,
    first: Option<Bytes>,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
    /// Ends what nothing else ends. Streams of calls end with their answers.
    closing: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// A call that lives and dies with this response.
    work: Option<Work>,
    front: Arc<Front>,
}

/// How a stream begins.
pub enum Opening {
    /// The empty event that carries an id to resume from (2025-11-25).
    Prime,
    /// A comment, so that a first byte goes out at once.
    Comment,
}

impl EventBody {
    fn new(front: &Arc<Front>, outbox: Arc<Outbox>, reader: u64, resumable: bool) -> Self {
        front.metrics.streams.inc();
        let keep_alive = front.settings.keep_alive;
        Self {
            outbox,
            reader,
            resumable,
            first: None,
            keep_alive,
            silence: Box::pin(tokio::time::sleep(keep_alive)),
            closing: None,
            work: None,
            front: front.clone(),
        }
    }

    /// A stream of a legacy session.
    pub fn of_session(
        front: &Arc<Front>,
        session: &ClientSession,
        outbox: Arc<Outbox>,
        reader: u64,
        opening: Opening,
    ) -> Self {
        let mut body = Self::new(front, outbox, reader, true);
        if Arc::ptr_eq(&body.outbox, &session.streams.standing) {
            body.closing = Some(Box::pin(front.closing.clone().cancelled_owned()));
        }
        body.first = match opening {
            Opening::Prime if session.caller.revision.primes_streams() => {
                let retry = front.settings.retry.as_millis() as u64;
                Some(sse::prime(&EventId::start(body.outbox.number), retry))
            }
            Opening::Prime | Opening::Comment => Some(sse::KEEP_ALIVE),
        };
        body
    }

    /// The stream of one modern request, which ends with it.
    pub fn of_call(front: &Arc<Front>, outbox: Arc<Outbox>, work: Work) -> Self {
        let reader = outbox.attach();
        let mut body = Self::new(front, outbox, reader, false);
        body.work = Some(work);
        body
    }

    pub fn response(self) -> Response {
        response(Body::new(self))
    }

    fn work(&mut self, cx: &mut Context<'_>) {
        if let Some(work) = &mut self.work
            && let Poll::Ready(answer) = work.as_mut().poll(cx)
        {
            self.work = None;
            self.outbox
                .push(Sort::Answer, on_one_line(answer.bytes.into_bytes()));
        }
    }
}

impl http_body::Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        this.work(cx);
        match this.outbox.poll_next(this.reader, cx) {
            Poll::Ready(Some(sent)) => {
                let deadline = Instant::now() + this.keep_alive;
                this.silence.as_mut().reset(deadline);
                let id = this.resumable.then(|| EventId {
                    stream: this.outbox.number,
                    sequence: sent.sequence,
                });
                let id = id.map(|id| id.to_string());
                let event = sse::event(id.as_deref(), &sent.message);
                return Poll::Ready(Some(Ok(Frame::data(event))));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        if let Some(closing) = &mut this.closing
            && closing.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        if this.silence.as_mut().poll(cx).is_ready() {
            let deadline = Instant::now() + this.keep_alive;
            this.silence.as_mut().reset(deadline);
            // Registers the new deadline; it cannot be over yet.
            let _ = this.silence.as_mut().poll(cx);
            return Poll::Ready(Some(Ok(Frame::data(sse::KEEP_ALIVE))));
        }
        Poll::Pending
    }
}

impl Drop for EventBody {
    fn drop(&mut self) {
        self.outbox.detach(self.reader);
        self.front.metrics.streams.dec();
    }
}

/// One message as a whole event stream, for clients that accept nothing else.
pub fn single(message: Bytes) -> Response {
    let event = sse::event(None, &on_one_line(message));
    response(Body::from(event))
}

/// Events, marked so that nothing on the way holds them back or rewrites them.
fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_TYPE, "text/event-stream");
    set(header::CACHE_CONTROL, "no-cache, no-transform");
    set(http::HeaderName::from_static("x-accel-buffering"), "no");
    response
}
