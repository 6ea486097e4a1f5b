//! Values that an operator writes as one string: durations, sizes, addresses, names, hashes, globs.
//!
//! Each is a newtype whose only constructor is `FromStr`, so that a value in hand is a valid one. The error says
//! what the text is not and what to write; it never repeats the text, since that may come from the environment.

mod address;
mod backoff;
mod header;
mod id;
mod key;
mod patterns;
mod period;
mod secret;
mod size;
mod web;

pub use address::{Address, Listen};
pub(crate) use address::{address_or_off, address_or_off_schema};
pub use backoff::Backoff;
pub use header::HeaderName;
pub use id::{EndpointPath, ServerId};
pub use key::{Expiry, KeyName, Scope, Sha256};
pub use patterns::Patterns;
pub use period::Period;
pub use secret::Secret;
pub use size::Size;
pub use web::{HostName, HttpUrl, Origin};

use std::{fmt, str::FromStr};

/// Why a text is not a value of its kind, in two halves of a sentence: "`x` is …; write …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What the text is, with its article: "not a duration".
    pub is: String,
    /// What to write instead: "a number with its unit, such as `30s`".
    pub write: String,
}

impl Wrong {
    fn new(is: impl Into<String>, write: impl Into<String>) -> Self {
        Wrong {
            is: is.into(),
            write: write.into(),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "is {}; write {}", self.is, self.write)
    }
}

impl std::error::Error for Wrong {}

/// A kind of value that is written as one string.
pub(crate) trait Written: FromStr<Err = Wrong> {
    /// Its name in the schema's `x-kind`, by which the reader finds the parser.
    const KIND: &'static str;
    /// What the schema and the faults call it, with an article.
    const NOUN: &'static str;
    /// A valid text.
    const EXAMPLE: &'static str;
    /// A regular expression for editors, or nothing. The parser decides.
    const PATTERN: Option<&'static str> = None;
}

/// `Deserialize` and `JsonSchema` by way of [`Written`].
macro_rules! written {
    ($($kind:ty),+ $(,)?) => {$(
        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::config::value::schema_of::<$kind>()
            }
        }
    )+};
}

written!(
    Address,
    Backoff,
    EndpointPath,
    Expiry,
    HeaderName,
    HostName,
    HttpUrl,
    KeyName,
    Origin,
    Period,
    Scope,
    ServerId,
    Sha256,
    Size,
);

/// The schema of a [`Written`] kind. What comes from the environment is let through: it is not there yet.
pub(crate) fn schema_of<T: Written>() -> schemars::Schema {
    let mut schema =
        schemars::json_schema!({ "type": "string", "x-kind": T::KIND, "examples": [T::EXAMPLE] });
    if let Some(pattern) = T::PATTERN {
        schema.insert("pattern".into(), format!(r"{pattern}|\$\{{").into());
    }
    schema
}

/// The schema of the keys of a map. Nothing expands in a key.
pub(crate) fn names_of<T: Written>() -> schemars::Schema {
    let mut schema = schemars::json_schema!({ "x-kind": T::KIND, "examples": [T::EXAMPLE] });
    if let Some(pattern) = T::PATTERN {
        schema.insert("pattern".into(), pattern.into());
    }
    schema
}

/// What the reader needs to know about one kind.
pub(crate) struct Kind {
    /// What faults call it, with an article.
    pub noun: &'static str,
    /// A valid text.
    pub example: &'static str,
    /// Whether a text is one.
    pub check: fn(&str) -> Result<(), Wrong>,
}

/// The kind that a schema's `x-kind` names.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    fn of<T: Written>() -> Kind {
        Kind {
            noun: T::NOUN,
            example: T::EXAMPLE,
            check: |text| text.parse::<T>().map(drop),
        }
    }
    Some(match name {
        Address::KIND => of::<Address>(),
        address::AdminAddress::KIND => of::<address::AdminAddress>(),
        Backoff::KIND => of::<Backoff>(),
        EndpointPath::KIND => of::<EndpointPath>(),
        Expiry::KIND => of::<Expiry>(),
        HeaderName::KIND => of::<HeaderName>(),
        HostName::KIND => of::<HostName>(),
        HttpUrl::KIND => of::<HttpUrl>(),
        KeyName::KIND => of::<KeyName>(),
        Origin::KIND => of::<Origin>(),
        patterns::Glob::KIND => of::<patterns::Glob>(),
        Period::KIND => of::<Period>(),
        Scope::KIND => of::<Scope>(),
        ServerId::KIND => of::<ServerId>(),
        Sha256::KIND => of::<Sha256>(),
        Size::KIND => of::<Size>(),
        _ => return None,
    })
}
