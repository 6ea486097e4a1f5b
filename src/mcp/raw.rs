//! Objects whose values stay as they came: numbers of any size, spaces and escapes included.

use indexmap::IndexMap;
use serde_json::value::RawValue;

/// An object with its members in order, each value as its own bytes.
pub type RawObject = IndexMap<String, Box<RawValue>>;

/// Reads an object; `None` for anything else.
pub fn object(json: &[u8]) -> Option<RawObject> {
    serde_json::from_slice(json).ok()
}

/// The object as JSON text.
pub fn write(object: &RawObject) -> String {
    serde_json::to_string(object).expect("members of valid JSON make valid JSON")
}

/// A value as it goes into a [`RawObject`]; `None` for what is no JSON.
pub fn value(json: impl Into<String>) -> Option<Box<RawValue>> {
    RawValue::from_string(json.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_as_they_came() {
        let text = r#"{"b":1e400,"a":[ 9007199254740993.10, "\u00e9"]}"#;
        let mut read = object(text.as_bytes()).unwrap();
        assert_eq!(write(&read), text);
        read.insert("c".into(), value("null").unwrap());
        assert_eq!(write(&read), text.replace("]}", "],\"c\":null}"));
        assert!(object(b"[]").is_none());
        assert!(value("{").is_none());
    }
}
