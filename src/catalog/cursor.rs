//! Where a walk through a merged list goes on.
//!
//! A cursor is the key of the last item sent, so it means the same on every
//! replica and survives changes of the list in between.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The server of the last item.
    pub server: String,
    /// Its original name or URI.
    pub original: String,
    /// Its place in the server's list then, for when it is gone.
    pub place: usize,
}

impl Cursor {
    pub fn write(&self) -> String {
        let text = serde_json::json!([self.server, self.original, self.place]).to_string();
        URL_SAFE_NO_PAD.encode(text)
    }

    /// `None` for what no gateway wrote.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (server, original, place) = serde_json::from_slice(&bytes).ok()?;
        Some(Self {
            server,
            original,
            place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_nonsense_does_not() {
        let cursor = Cursor {
            server: "db".into(),
            original: "é \"x\"".into(),
            place: 7,
        };
        assert_eq!(Cursor::read(&cursor.write()), Some(cursor));
        assert_eq!(Cursor::read("nonsense"), None);
        assert_eq!(Cursor::read(""), None);
    }
}
