//! `requestState` of 2026-07-28: what a server has learned from a client's earlier tries, kept by the client.
//! It is signed, bound to its request and short-lived, and any process may take it up again, since the key is
//! fixed. All that it guards is made up; a real server keeps its key to itself.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::fault::Fault;

const KEY: &[u8] = b"a trip that nobody will ever take";

/// How long an answer may take, in seconds.
const LIFETIME_S: u64 = 600;

/// Seals the answers that are known so far for the request with these parameters.
pub fn seal(params: &Value, answers: &Map<String, Value>) -> String {
    seal_until(params, answers, now() + LIFETIME_S)
}

fn seal_until(params: &Value, answers: &Map<String, Value>, expires: u64) -> String {
    let state = json!({ "request": subject(params), "answers": answers, "expires": expires });
    let body = URL_SAFE_NO_PAD.encode(state.to_string());
    let tag = hmac::sign(&key(), body.as_bytes());
    format!("{body}.{}", URL_SAFE_NO_PAD.encode(tag))
}

/// The answers that `state` carries, if it was sealed here for a request with these parameters.
pub fn open(state: &str, params: &Value) -> Result<Map<String, Value>, Fault> {
    let refused = || Fault::params("`requestState` is not valid for this request");
    let (body, tag) = state.split_once('.').ok_or_else(refused)?;
    let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| refused())?;
    hmac::verify(&key(), body.as_bytes(), &tag).map_err(|_| refused())?;
    let body = URL_SAFE_NO_PAD.decode(body).map_err(|_| refused())?;
    let mut state: Value = serde_json::from_slice(&body).map_err(|_| refused())?;
    let expired = state["expires"].as_u64().is_none_or(|end| end < now());
    if expired || state["request"] != subject(params) {
        return Err(refused());
    }
    match state["answers"].take() {
        Value::Object(answers) => Ok(answers),
        _ => Err(refused()),
    }
}

/// The part of a request that its retry must repeat.
fn subject(params: &Value) -> Value {
    json!([params["name"], params["uri"], params["arguments"]])
}

fn key() -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, KEY)
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Value {
        json!({ "name": "bookHotel", "arguments": { "city": "Barcelona" } })
    }

    fn answers() -> Map<String, Value> {
        Map::from_iter([("booking".to_owned(), json!({ "action": "accept" }))])
    }

    #[test]
    fn the_same_request_opens_what_was_sealed() {
        let state = seal(&request(), &answers());
        assert_eq!(open(&state, &request()), Ok(answers()));
    }

    #[test]
    fn another_request_does_not() {
        let state = seal(&request(), &answers());
        let other = json!({ "name": "bookHotel", "arguments": { "city": "Paris" } });
        assert!(open(&state, &other).is_err());
    }

    #[test]
    fn a_changed_or_expired_state_is_refused() {
        let state = seal(&request(), &answers());
        assert!(open(&format!("A{state}"), &request()).is_err());
        assert!(open("", &request()).is_err());
        let old = seal_until(&request(), &answers(), now() - 1);
        assert!(open(&old, &request()).is_err());
    }
}
