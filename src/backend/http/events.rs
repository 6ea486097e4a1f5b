//! The events of one response, one by one.

use super::site::Site;
use crate::mcp::sse;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderValue, Response, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::{collections::VecDeque, time::Duration};

/// How much of a stream is read on after its answer, so that the connection can be used again.
const TAIL_BYTES: usize = 64 << 10;
const TAIL_TIME: Duration = Duration::from_secs(1);

/// An event stream as it arrives.
pub(super) struct Events {
    body: Incoming,
    reader: sse::Reader,
    ready: VecDeque<sse::Event>,
    /// Why nothing comes after what is ready.
    over: Option<End>,
    retry: Option<u64>,
    reusable: bool,
}

/// How a stream ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// The server closed it in order.
    Closed,
    /// The connection broke.
    Broken(String),
    TooLarge(usize),
}

impl Events {
    /// Reads `response`; `limit` bounds one event in bytes.
    pub fn new(response: Response<Incoming>, limit: usize) -> Self {
        // On HTTP/2 a dropped stream costs nothing; on HTTP/1.1 it costs the connection.
        let reusable = response.version() < Version::HTTP_2;
        Self {
            body: response.into_body(),
            reader: sse::Reader::new(limit),
            ready: VecDeque::new(),
            over: None,
            retry: None,
            reusable,
        }
    }

    /// The next event with data. May be dropped and called again.
    pub async fn next(&mut self) -> Result<sse::Event, End> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if event.retry.is_some() {
                    self.retry = event.retry;
                }
                if !event.data.is_empty() {
                    return Ok(event);
                }
            }
            if let Some(end) = &self.over {
                return Err(end.clone());
            }
            self.fill().await;
        }
    }

    /// Waits for bytes of any kind, comments included, and reads them.
    async fn fill(&mut self) {
        match self.body.frame().await {
            Some(Ok(frame)) => {
                let Ok(data) = frame.into_data() else { return };
                self.take(&data);
            }
            Some(Err(error)) => self.over = Some(End::Broken(error.to_string())),
            None => self.over = Some(End::Closed),
        }
    }

    fn take(&mut self, data: &Bytes) {
        let ready = &mut self.ready;
        if let Err(sse::TooLarge(limit)) = self.reader.feed(data, |event| ready.push_back(event)) {
            self.over = Some(End::TooLarge(limit));
        }
    }

    /// [`Events::next`], given up when no byte came for `idle`.
    pub async fn next_within(&mut self, idle: Option<Duration>) -> Result<sse::Event, End> {
        let Some(idle) = idle else {
            return self.next().await;
        };
        loop {
            if let Some(event) = self.next_ready() {
                return event;
            }
            if tokio::time::timeout(idle, self.fill()).await.is_err() {
                return Err(End::Broken(format!("nothing came for {idle:?}")));
            }
        }
    }

    fn next_ready(&mut self) -> Option<Result<sse::Event, End>> {
        self.next().now_or_never()
    }

    /// The id to resume after, if the server gives any; an empty one is none.
    pub fn last_id(&self) -> Option<HeaderValue> {
        let id = self.reader.last_id().filter(|id| !id.is_empty())?;
        HeaderValue::from_bytes(id.as_bytes()).ok()
    }

    /// How long to wait before a new connection, as the server wishes.
    pub fn retry(&self) -> Option<Duration> {
        self.retry.map(Duration::from_millis)
    }

    /// The answer has come: what follows is thrown away, and the connection kept if the stream ends soon.
    pub fn finish(mut self, site: &Site) {
        if !self.reusable || self.over.is_some() {
            return;
        }
        if self.drain().now_or_never().is_none() {
            site.tracker.spawn(async move {
                let _ = tokio::time::timeout(TAIL_TIME, self.drain()).await;
            });
        }
    }

    async fn drain(&mut self) {
        let mut left = TAIL_BYTES;
        while let Some(Ok(frame)) = self.body.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(size) else {
                return;
            };
            left = rest;
        }
    }
}
