//! The five published revisions and the two eras they fall into.
//!
//! Answers the versioning page of revision 2026-07-28: *modern* revisions carry
//! version, identity and capabilities on every request, *legacy* ones open a
//! session with `initialize`.

use std::fmt;

/// A published revision of the protocol, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// How a revision opens a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// `initialize`, then a session.
    Legacy,
    /// Stateless, `_meta` on every request.
    Modern,
}

impl Revision {
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    pub const NEWEST: Self = Self::V2026_07_28;
    /// What a request without `MCP-Protocol-Version` is taken for (2025-06-18, transports).
    pub const WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// All revisions, newest first, as `server/discover` lists them.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 {
            Era::Modern
        } else {
            Era::Legacy
        }
    }

    /// What `initialize` settles on: the asked revision if it is a legacy one that we speak, else our newest legacy one.
    pub fn settle(asked: &str) -> Self {
        Self::parse(asked)
            .filter(|r| r.era() == Era::Legacy)
            .unwrap_or(Self::NEWEST_LEGACY)
    }

    /// JSON-RPC batches existed in 2025-03-26 only.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Older SDKs fail on the empty event that primes a client to resume, so only 2025-11-25 gets it.
    pub fn primes_streams(self) -> bool {
        self == Self::V2025_11_25
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Era {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialize_settles_on_a_legacy_revision() {
        assert_eq!(Revision::settle("2025-06-18"), Revision::V2025_06_18);
        assert_eq!(Revision::settle("2026-07-28"), Revision::V2025_11_25);
        assert_eq!(Revision::settle("1999-01-01"), Revision::V2025_11_25);
    }
}
