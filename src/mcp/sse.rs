//! Server-sent events, both ways, as bytes.
//!
//! The reader takes every legal form (HTML standard, "Server-sent events",
//! section 9.2.6): LF, CR and CRLF also when split over chunks, comments, a byte
//! order mark, `data` over several lines, ids with NUL ignored, an unfinished last
//! event dropped. It bounds an event's size; it knows nothing of JSON.

use bytes::{BufMut, Bytes, BytesMut};

/// One event as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `event:`; empty means `message`.
    pub name: String,
    pub data: Bytes,
    /// The last `id:` seen so far, which is what `Last-Event-ID` takes.
    pub id: Option<String>,
    /// `retry:` in milliseconds.
    pub retry: Option<u64>,
}

/// An event grew past the limit, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub struct TooLarge(pub usize);

/// Cuts a byte stream into events.
pub struct Reader {
    line: BytesMut,
    data: BytesMut,
    has_data: bool,
    name: String,
    id: Option<String>,
    /// The `id:` of the event that is being read.
    next_id: Option<String>,
    retry: Option<u64>,
    after_cr: bool,
    at_start: bool,
    limit: usize,
}

impl Reader {
    /// `limit` bounds one event's data and one line, in bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            line: BytesMut::new(),
            data: BytesMut::new(),
            has_data: false,
            name: String::new(),
            id: None,
            next_id: None,
            retry: None,
            after_cr: false,
            at_start: true,
            limit,
        }
    }

    /// Takes in a chunk and hands each event that it completes to `each`.
    pub fn feed<F: FnMut(Event)>(&mut self, mut chunk: &[u8], mut each: F) -> Result<(), TooLarge> {
        while !chunk.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if chunk[0] == b'\n' {
                    chunk = &chunk[1..];
                    continue;
                }
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) else {
                self.line.put_slice(chunk);
                return self.check(self.line.len());
            };
            self.after_cr = chunk[end] == b'\r';
            // Most lines come whole: no copy into the line buffer then.
            if self.line.is_empty() {
                self.check(end)?;
                self.take_line(&chunk[..end], &mut each)?;
            } else {
                self.line.put_slice(&chunk[..end]);
                self.check(self.line.len())?;
                let line = self.line.split();
                self.take_line(&line, &mut each)?;
            }
            chunk = &chunk[end + 1..];
        }
        Ok(())
    }

    fn check(&self, length: usize) -> Result<(), TooLarge> {
        // Field name and colon stand on the line too.
        if length > self.limit.saturating_add(16) {
            return Err(TooLarge(self.limit));
        }
        Ok(())
    }

    fn take_line<F: FnMut(Event)>(&mut self, line: &[u8], each: &mut F) -> Result<(), TooLarge> {
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            self.dispatch(each);
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return Ok(()),
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.put_u8(b'\n');
                }
                self.has_data = true;
                self.data.put_slice(value);
                self.check(self.data.len())?;
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.next_id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
            }
            _ => {}
        }
        Ok(())
    }

    /// An event without data is not an event, but its id and retry count: that is how a stream is primed.
    fn dispatch<F: FnMut(Event)>(&mut self, each: &mut F) {
        let name = std::mem::take(&mut self.name);
        let retry = self.retry.take();
        if let Some(id) = self.next_id.take() {
            self.id = Some(id);
        }
        let has_data = std::mem::take(&mut self.has_data);
        if has_data || retry.is_some() {
            each(Event {
                name,
                data: self.data.split().freeze(),
                id: self.id.clone(),
                retry,
            });
        }
    }

    /// The id of the last complete event that had one: what comes after it has not been read.
    pub fn last_id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

/// A comment that keeps a connection from being taken for dead.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// One message as an event. `data` must hold no line break.
pub fn event(id: Option<&str>, data: &[u8]) -> Bytes {
    debug_assert!(memchr::memchr2(b'\n', b'\r', data).is_none());
    let mut out = BytesMut::with_capacity(data.len() + id.map_or(0, str::len) + 32);
    if let Some(id) = id {
        out.put_slice(b"id: ");
        out.put_slice(id.as_bytes());
        out.put_u8(b'\n');
    }
    out.put_slice(b"event: message\ndata: ");
    out.put_slice(data);
    out.put_slice(b"\n\n");
    out.freeze()
}

/// The empty event that tells a client where to resume (2025-11-25, transports).
pub fn prime(id: &str, retry: u64) -> Bytes {
    format!("id: {id}\nretry: {retry}\ndata: \n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> Vec<Event> {
        let mut reader = Reader::new(1 << 20);
        let mut out = Vec::new();
        for chunk in chunks {
            reader.feed(chunk, |e| out.push(e)).unwrap();
        }
        out
    }

    fn datas(events: &[Event]) -> Vec<&[u8]> {
        events.iter().map(|e| &e.data[..]).collect()
    }

    #[test]
    fn every_legal_form_is_read() {
        let text = "\u{feff}: hi\r\nid: 1\r\nevent:x\r\ndata:a\r\ndata: b\r\n\r\ndata\n\ndata:c\r\rretry: 5\n\nid: 2\n\ndata: lost";
        let events = read(&[text.as_bytes()]);
        assert_eq!(datas(&events), [&b"a\nb"[..], b"", b"c", b""]);
        assert_eq!(events[0].name, "x");
        assert_eq!(events[0].id.as_deref(), Some("1"));
        assert_eq!(events[3].retry, Some(5));
    }

    #[test]
    fn the_id_of_an_unfinished_event_does_not_count() {
        let mut reader = Reader::new(100);
        reader.feed(b"id: 1\n\nid: 2\ndata: x\n", |_| ()).unwrap();
        assert_eq!(reader.last_id(), Some("1"));
        reader.feed(b"\n", |_| ()).unwrap();
        assert_eq!(reader.last_id(), Some("2"));
    }

    #[test]
    fn size_is_bounded_whether_in_one_line_or_many() {
        let mut reader = Reader::new(100);
        assert!(reader.feed(&[b'x'; 200], |_| ()).is_err());
        let mut reader = Reader::new(100);
        let many = b"data: 0123456789\n".repeat(20);
        assert!(reader.feed(&many, |_| ()).is_err());
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(text in "(data: ?[a-zé]{0,5}|id: [0-9]|: x|event: y|\n|\r|\r\n){0,20}", cut in 1usize..4) {
            let whole = read(&[text.as_bytes()]);
            let parts: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            prop_assert_eq!(whole, read(&parts));
        }

        #[test]
        fn what_is_written_is_read(data in "[^\\x00-\\x1f]{1,40}", id in "[a-z0-9-]{1,8}") {
            let events = read(&[&event(Some(&id), data.as_bytes())]);
            prop_assert_eq!(&events[0].data, data.as_bytes());
            prop_assert_eq!(events[0].id.as_deref(), Some(&id[..]));
        }
    }
}
