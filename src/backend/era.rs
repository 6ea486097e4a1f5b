//! Which eras a server speaks, as far as is known.
//!
//! The decision only; asking is the transports' work. A client is served in its own
//! era where the server speaks it (a server of both eras needs no translation then),
//! in the other one where it does not. Answers "Backward Compatibility" of the
//! versioning, stdio and streamable HTTP pages of revision 2026-07-28.

use crate::mcp::{Era, Revision, code};
use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

/// A verdict "does not speak it" is tried again after this long, in case it was wrong or the server was updated.
const DOUBT_AFTER: Duration = Duration::from_secs(60);

/// What to send first on a new connection or process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Send `server/discover`, and `initialize` if that shows a legacy server.
    Probe,
    /// Send `initialize`; refused as the wrong era, speak the modern one (on stdio in a fresh process).
    Initialize,
    /// Speak the modern era; no question is open.
    Modern,
}

/// What is known of one server.
#[derive(Debug)]
pub struct Eras {
    fixed: Option<Era>,
    known: Mutex<Known>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    modern: Option<bool>,
    legacy: Option<bool>,
    denied_at: Option<Instant>,
}

impl Eras {
    /// `fixed` is the era that the operator set, if any.
    pub fn new(fixed: Option<Era>) -> Self {
        Self {
            fixed,
            known: Mutex::new(Known::default()),
        }
    }

    pub fn plan(&self, wanted: Era) -> Plan {
        match self.fixed {
            Some(Era::Legacy) => return Plan::Initialize,
            Some(Era::Modern) => return Plan::Modern,
            None => {}
        }
        let known = self.read();
        match (wanted, known.modern, known.legacy) {
            (Era::Legacy, _, Some(true) | None) => Plan::Initialize,
            (Era::Legacy, Some(false), _) => Plan::Initialize,
            (Era::Legacy, Some(true), Some(false)) => Plan::Modern,
            (Era::Legacy, None, Some(false)) => Plan::Probe,
            (Era::Modern, Some(true), _) => Plan::Modern,
            (Era::Modern, None, _) => Plan::Probe,
            (Era::Modern, Some(false), _) => Plan::Initialize,
        }
    }

    /// Records that the server spoke, or clearly does not speak, `era`. What says nothing of the era (401, 403, 429, 5xx, silence, a refused connection) must not come here.
    pub fn learn(&self, era: Era, speaks: bool) {
        let mut known = self.known.lock().expect("no holder of this lock panics");
        match era {
            Era::Modern => known.modern = Some(speaks),
            Era::Legacy => known.legacy = Some(speaks),
        }
        if !speaks {
            known.denied_at = Some(Instant::now());
        }
    }

    /// Whether the server is known to speak `era`.
    pub fn speaks(&self, era: Era) -> Option<bool> {
        match (self.fixed, self.read()) {
            (Some(fixed), _) => Some(fixed == era),
            (None, known) if era == Era::Modern => known.modern,
            (None, known) => known.legacy,
        }
    }

    /// An answer that no server of `era` gives: everything is asked anew.
    pub fn doubt(&self, era: Era) {
        let mut known = self.known.lock().expect("no holder of this lock panics");
        match era {
            Era::Modern => known.modern = None,
            Era::Legacy => known.legacy = None,
        }
    }

    fn read(&self) -> Known {
        let mut known = self.known.lock().expect("no holder of this lock panics");
        if known.denied_at.is_some_and(|at| at.elapsed() > DOUBT_AFTER) {
            known.denied_at = None;
            known.modern = known.modern.filter(|speaks| *speaks);
            known.legacy = known.legacy.filter(|speaks| *speaks);
        }
        *known
    }
}

/// Whether an error code is one that only modern servers give.
pub fn is_modern_error(error: Option<i64>) -> bool {
    matches!(
        error,
        Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION)
    )
}

/// The newest legacy revision in a list of supported ones, as -32022 and `server/discover` give it.
pub fn newest_legacy(supported: &[Revision]) -> Option<Revision> {
    supported
        .iter()
        .copied()
        .filter(|r| r.era() == Era::Legacy)
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_served_in_its_own_era_where_the_server_has_it() {
        let eras = Eras::new(None);
        assert_eq!(eras.plan(Era::Legacy), Plan::Initialize);
        assert_eq!(eras.plan(Era::Modern), Plan::Probe);
        eras.learn(Era::Modern, true);
        assert_eq!(eras.plan(Era::Modern), Plan::Modern);
        assert_eq!(eras.plan(Era::Legacy), Plan::Initialize);
        eras.learn(Era::Legacy, false);
        assert_eq!(eras.plan(Era::Legacy), Plan::Modern);
    }

    #[test]
    fn a_legacy_server_is_not_probed_twice() {
        let eras = Eras::new(None);
        eras.learn(Era::Modern, false);
        eras.learn(Era::Legacy, true);
        assert_eq!(eras.plan(Era::Modern), Plan::Initialize);
        eras.doubt(Era::Modern);
        assert_eq!(eras.plan(Era::Modern), Plan::Probe);
    }

    #[test]
    fn what_the_operator_set_stands() {
        assert_eq!(
            Eras::new(Some(Era::Legacy)).plan(Era::Modern),
            Plan::Initialize
        );
        assert_eq!(Eras::new(Some(Era::Modern)).plan(Era::Legacy), Plan::Modern);
    }
}
