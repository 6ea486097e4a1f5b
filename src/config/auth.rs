//! Who may connect.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};

use super::value::{Expiry, KeyName, Scope, Sha256};

/// Who may connect.
#[derive(Clone, Debug)]
pub enum Auth {
    /// Everyone who can reach the address: `auth: none`.
    Open,
    /// Who has one of these keys.
    Keys(Keys),
}

/// Keys that callers show as `Authorization: Bearer KEY`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// The keys. `drawbridge key new NAME` makes one and prints the entry.
    pub api_keys: Vec<ApiKey>,
}

/// A key, known by its hash.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// Who has it: the name in logs and limits. Each name once.
    pub name: KeyName,
    /// The SHA-256 hash of the key, in hexadecimal digits.
    pub sha256: Sha256,
    /// What it may be used for.
    #[serde(default)]
    pub scopes: Vec<Scope>,
    /// When it stops to be valid: a date (its first second, UTC) or a date and time.
    #[serde(default)]
    pub expires: Option<Expiry>,
}

impl<'de> Deserialize<'de> for Auth {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Shape {
            Word(String),
            Keys(Keys),
        }
        match Shape::deserialize(from)? {
            Shape::Word(word) if word == "none" => Ok(Auth::Open),
            Shape::Word(_) => Err(D::Error::custom("expected `none` or `api_keys`")),
            Shape::Keys(keys) => Ok(Auth::Keys(keys)),
        }
    }
}

impl JsonSchema for Auth {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Auth".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = generator.subschema_for::<Keys>();
        json_schema!({ "anyOf": [{ "type": "string", "const": "none", "description": "Everyone may connect." }, keys] })
    }
}
