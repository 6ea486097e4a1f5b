//! What a server says: read from its output, told apart, and brought to whom it belongs.
//!
//! Nothing here waits for anything but the server's output. Answers "Whose request is
//! it?": on a process that several links share, what carries no owner reaches only
//! the one it must be for, and else nobody; only the notifications without content
//! go to all.

use super::{
    calls::Whose,
    lenient::{self, Torn},
    lines::{Line, Lines},
    process::Process,
};
use crate::{
    backend::{Fault, Receiver},
    mcp::{Kind, Message, Method, RpcError, Span, code, message::own_number, scan::MAX_DEPTH},
};
use bytes::Bytes;
use std::{pin::pin, sync::Arc};
use tokio::{io::AsyncReadExt, net::unix::pipe};
use tokio_util::sync::CancellationToken;

/// Messages in one batch; servers of revision 2025-03-26 may answer in batches.
const BATCH: usize = 1000;

impl Process {
    /// Reads the server's output to its end, or after `ended` what is there.
    pub(super) async fn read(self: Arc<Self>, mut pipe: pipe::Receiver, ended: CancellationToken) {
        let mut lines = Lines::new(self.settings.limits.frame);
        let mut ended = pin!(ended.cancelled());
        loop {
            let read = tokio::select! {
                biased;
                () = &mut ended => break,
                read = pipe.read_buf(lines.space()) => read,
            };
            if !matches!(read, Ok(1..)) {
                return;
            }
            self.take_all(&mut lines);
        }
        while let Ok(1..) = pipe.try_read_buf(lines.space()) {
            self.take_all(&mut lines);
        }
    }

    fn take_all(&self, lines: &mut Lines) {
        self.mark_output();
        while let Some(line) = lines.next() {
            match line {
                Line::Whole(text) => self.take_line(text),
                Line::TooLong(ends) => {
                    let fault = Fault::TooLarge(self.settings.limits.frame);
                    self.take_torn(lenient::of_ends(&ends), fault, ends.length);
                }
            }
        }
    }

    fn take_line(&self, line: Bytes) {
        match Message::parse(line.clone(), MAX_DEPTH) {
            Ok(message) => self.take(message),
            Err(_) if Message::is_batch(&line) => self.take_batch(&line),
            Err(error) => {
                let fault = Fault::NotMcp(error.to_string());
                self.take_torn(lenient::of_line(&line), fault, line.len());
            }
        }
    }

    fn take_batch(&self, line: &Bytes) {
        let Ok(entries) = Message::parse_batch(line, MAX_DEPTH, BATCH) else {
            return self.note_noise(line.len());
        };
        for entry in entries {
            match entry {
                Ok(message) => self.take(message),
                Err(_) => self.note_noise(line.len()),
            }
        }
    }

    fn take_torn(&self, torn: Torn, fault: Fault, length: usize) {
        match torn {
            Torn::Answer(id) => {
                if !self.calls.answer(id, Err(fault)) {
                    self.metrics.dropped.inc();
                }
            }
            Torn::Request(id) => {
                self.refuse(&id, code::INVALID_REQUEST, "the request cannot be read");
            }
            Torn::Nothing => self.note_noise(length),
        }
    }

    /// Counts a line that is no message. Its length is logged, never what it says, and ever more rarely.
    fn note_noise(&self, length: usize) {
        self.metrics.noise.inc();
        let lines = self.metrics.noise.get();
        if lines.is_power_of_two() {
            let (server, pid) = (self.server.as_str(), self.pid());
            tracing::debug!(server, pid, length, lines, "line on stdout is no message");
        }
    }

    fn take(&self, message: Message) {
        match message.kind() {
            Kind::Result | Kind::Error => self.take_answer(message),
            Kind::Request => self.take_request(message),
            Kind::Notification => self.take_notification(message),
        }
    }

    fn take_answer(&self, message: Message) {
        let (id, message) = match our_id(&message) {
            Some(id) => (Some(id), Some(message)),
            // A server that could not read a request cannot name it: it is the one that waits.
            None if message.id().is_none() => match self.calls.only_unanswered() {
                Some(id) => (Some(id), with_own_id(&message, id)),
                None => (None, None),
            },
            None => (None, None),
        };
        let taken = match (id, message) {
            (Some(id), Some(message)) => self.calls.answer(id, Ok(message)),
            _ => false,
        };
        if !taken {
            self.drop_message("answer to no call");
        }
    }

    fn take_request(&self, message: Message) {
        if self.is_modern() {
            // It must not send any, and would not understand an answer.
            return self.drop_message("request from a modern server");
        }
        let id = message.id().unwrap_or_default();
        if message.method() == Method::Ping {
            let answer = code::result_message(id, b"{}");
            return self.answer_server(answer);
        }
        match self.owner() {
            Some(receiver) => receiver.receive(message, None),
            None => self.refuse(id, code::METHOD_NOT_FOUND, "no client can be asked here"),
        }
    }

    fn take_notification(&self, message: Message) {
        let inner = message.inner();
        let by_subscription = || self.whose(&message, inner.meta_subscription);
        match message.method() {
            Method::Progress => self.take_progress(message),
            Method::Cancelled if self.is_modern() => {
                let whose = self.whose(&message, inner.request_id);
                self.deliver(message, whose)
            }
            _ if inner.meta_subscription.is_some() => {
                let whose = by_subscription();
                self.deliver(message, whose)
            }
            Method::ListChanged(_) | Method::ResourceUpdated => {
                for receiver in self.links.all() {
                    receiver.receive(message.clone(), None);
                }
            }
            _ => match self.owner() {
                Some(receiver) => receiver.receive(message, None),
                None => self.drop_message("notification of nobody's"),
            },
        }
    }

    fn take_progress(&self, message: Message) {
        let token = number(&message, message.inner().progress_token);
        let whose = token.and_then(|id| self.calls.progress(id));
        // A task goes on with its call's token after the call was answered.
        if let (None, Some(id), true) = (whose, token, self.links.is_private())
            && let Some(receiver) = self.links.only()
        {
            return receiver.receive(message, Some(id));
        }
        self.deliver(message, whose);
    }

    /// Hands a notification to the link whose call it belongs to.
    fn deliver(&self, message: Message, whose: Option<Whose>) {
        let receiver = whose.and_then(|whose| self.links.get(whose.link));
        match (receiver, whose) {
            (Some(receiver), Some(whose)) => receiver.receive(message, Some(whose.call)),
            _ => self.drop_message("notification of no call"),
        }
    }

    /// Whom something is for that does not say so, if that is certain.
    fn owner(&self) -> Option<Arc<dyn Receiver>> {
        if self.links.is_shared() {
            return None;
        }
        if self.links.is_private() {
            return self.links.only();
        }
        let by_call = || self.links.get(self.calls.only()?.link);
        self.links.only().or_else(by_call)
    }

    fn whose(&self, message: &Message, span: Option<Span>) -> Option<Whose> {
        self.calls.whose(number(message, span)?)
    }

    fn refuse(&self, id: &[u8], code: i64, text: &str) {
        self.answer_server(RpcError::new(code, text).message(Some(id)));
    }

    fn answer_server(&self, answer: Bytes) {
        if self.send(answer).is_err() {
            self.drop_message("answer to a server that does not read");
        }
    }

    fn drop_message(&self, what: &'static str) {
        self.metrics.dropped.inc();
        let (server, pid) = (self.server.as_str(), self.pid());
        tracing::debug!(server, pid, what, "message dropped");
    }
}

/// Which call of ours an answer names; some servers turn a number into a string.
fn our_id(message: &Message) -> Option<u64> {
    let id = message.id()?;
    let inside = id.strip_prefix(b"\"").and_then(|id| id.strip_suffix(b"\""));
    own_number(inside.unwrap_or(id))
}

fn number(message: &Message, span: Option<Span>) -> Option<u64> {
    own_number(message.raw(span?))
}

/// An error without an id as the answer to the call `id`.
fn with_own_id(message: &Message, id: u64) -> Option<Message> {
    // `"id": null` may stand in the message: only the error itself is taken over.
    let error = message.payload()?;
    let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":");
    let mut answer = answer.into_bytes();
    answer.extend_from_slice(error);
    answer.push(b'}');
    Message::parse(answer.into(), MAX_DEPTH).ok()
}
