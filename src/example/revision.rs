//! The five revisions of the protocol as the example servers see them: which came first, and which of them
//! a server was told to speak. Not for the rules of any one revision; those stand where they apply.

use std::fmt;
use std::str::FromStr;

/// A published revision of the protocol; the order is the order of publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// Sessions, stdio and HTTP+SSE.
    V2024_11_05,
    /// Streamable HTTP, batches, tool annotations, the `completions` capability.
    V2025_03_26,
    /// Elicitation, structured output, resource links, titles; no batches.
    V2025_06_18,
    /// Form and URL modes of elicitation.
    V2025_11_25,
    /// Stateless: `_meta` on every request, `server/discover`, `input_required`.
    V2026_07_28,
}

impl Revision {
    /// All revisions, newest first.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// The revision's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that name, if it is one of the five.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    /// True for revisions that carry everything in each request (2026-07-28 and later).
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The revisions that a server speaks: all of them, or exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// All five; the client's first message (stdio) or each request (HTTP) decides.
    All,
    /// This one only.
    Only(Revision),
}

impl Spoken {
    /// What the server speaks, newest first.
    pub fn revisions(self) -> Vec<Revision> {
        match self {
            Self::All => Revision::ALL.to_vec(),
            Self::Only(one) => vec![one],
        }
    }

    /// What the server speaks, newest first, as names.
    pub fn names(self) -> Vec<&'static str> {
        self.revisions().into_iter().map(Revision::as_str).collect()
    }

    /// Whether `revision` is spoken.
    pub fn includes(self, revision: Revision) -> bool {
        self == Self::All || self == Self::Only(revision)
    }

    /// Whether any revision without `initialize` is spoken.
    pub fn modern(self) -> bool {
        self.revisions().into_iter().any(Revision::is_modern)
    }

    /// Whether any revision with `initialize` is spoken.
    pub fn legacy(self) -> bool {
        self.newest_legacy().is_some()
    }

    /// What `initialize` settles on where the client asks for something else.
    pub fn newest_legacy(self) -> Option<Revision> {
        self.revisions()
            .into_iter()
            .find(|revision| !revision.is_modern())
    }
}

impl FromStr for Spoken {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" {
            return Ok(Self::All);
        }
        Revision::named(text).map(Self::Only).ok_or_else(|| {
            let known = Self::All.names().join(", ");
            format!("not a revision of the protocol; write `all` or one of {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_is_found_by_its_name() {
        for revision in Revision::ALL {
            assert_eq!(Revision::named(revision.as_str()), Some(revision));
        }
        assert_eq!(Revision::named("2023-01-01"), None);
    }

    #[test]
    fn one_revision_alone_is_either_legacy_or_modern() {
        let modern: Spoken = "2026-07-28".parse().unwrap();
        assert!(modern.modern() && !modern.legacy());
        let legacy: Spoken = "2025-03-26".parse().unwrap();
        assert!(!legacy.modern() && legacy.legacy());
        assert_eq!(Spoken::All.newest_legacy(), Some(Revision::V2025_11_25));
        assert!("2025".parse::<Spoken>().is_err());
    }
}
