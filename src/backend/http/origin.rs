//! One configured HTTP server: what is known of it, and how links to it are opened.

use super::{
    client::Client,
    link::{HttpLink, Introduced},
    opening::{self, Discovered, Initialized},
    settings::{Fixed, Settings},
    site::{Health, Site},
};
use crate::{
    backend::{Eras, Fault, Opening, Plan, Profile, Ran},
    mcp::{Era, Revision, ServerId},
    telemetry::ServerMetrics,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// A server reached by HTTP. Links opened here are independent of each other.
pub struct Origin {
    site: Arc<Site>,
    eras: Arc<Eras>,
    /// Held while the server is asked for its era: one question at a time.
    asking: tokio::sync::Mutex<()>,
    /// What a modern server said of itself, and until when that may be used.
    profile: Mutex<Option<(Arc<Profile>, Instant)>>,
}

impl Origin {
    /// Connects to nothing yet.
    pub fn new(id: ServerId, settings: Settings, client: &Client, metrics: ServerMetrics) -> Self {
        let fixed = settings.protocol.map(Fixed::era);
        Self {
            site: Arc::new(Site::new(id, settings, client, metrics)),
            eras: Arc::new(Eras::new(fixed)),
            asking: tokio::sync::Mutex::default(),
            profile: Mutex::default(),
        }
    }

    /// Finds out how to speak to the server where that is not known, and opens a link: a session of its own, or a stateless standing.
    pub async fn open(&self, opening: Opening) -> Result<HttpLink, Fault> {
        let limit = self.site.settings.start;
        match tokio::time::timeout(limit, self.open_link(&opening)).await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(fault)) => Err(self.before_any_call(fault)),
            Err(_) => Err(self.before_any_call(Fault::TimedOut(limit))),
        }
    }

    pub fn health(&self) -> Health {
        self.site.health()
    }

    /// What is known of the server's eras.
    pub fn eras(&self) -> &Eras {
        &self.eras
    }

    /// Ends every standing stream and waits up to `grace` for what is still being said.
    pub async fn close(&self, grace: Duration) {
        self.site.stop.cancel();
        self.site.tracker.close();
        let _ = tokio::time::timeout(grace, self.site.tracker.wait()).await;
    }

    async fn open_link(&self, opening: &Opening) -> Result<HttpLink, Fault> {
        if self.eras.plan(opening.era) == Plan::Initialize {
            return self.legacy_first(opening).await;
        }
        if let Some(profile) = self.known_profile() {
            return Ok(self.modern_link(profile, opening));
        }
        let one = self.asking.lock().await;
        if self.eras.plan(opening.era) == Plan::Initialize {
            // Whoever asked before found a legacy server.
            drop(one);
            return self.legacy_first(opening).await;
        }
        match self.discover(opening).await? {
            Discovered::Modern(profile) => Ok(self.modern_link(profile, opening)),
            Discovered::Legacy(_) if self.is_fixed() => Err(Fault::WrongEra("modern")),
            Discovered::Legacy(named) => {
                let link = match self.initialize(opening, named).await? {
                    Ok(link) => link,
                    Err((fault, _)) => return Err(fault),
                };
                self.eras.learn(Era::Modern, false);
                Ok(link)
            }
        }
    }

    async fn legacy_first(&self, opening: &Opening) -> Result<HttpLink, Fault> {
        let (fault, modern) = match self.initialize(opening, None).await? {
            Ok(link) => return Ok(link),
            Err(refused) => refused,
        };
        if self.is_fixed() {
            return Err(match modern {
                true => Fault::WrongEra("legacy"),
                false => fault,
            });
        }
        if modern {
            self.eras.learn(Era::Legacy, false);
        }
        // Some modern servers refuse it with an error that anybody could give.
        let _one = self.asking.lock().await;
        match self.discover(opening).await {
            Ok(Discovered::Modern(profile)) => {
                self.eras.learn(Era::Legacy, false);
                Ok(self.modern_link(profile, opening))
            }
            Ok(Discovered::Legacy(_)) => Err(fault),
            Err(second) if modern => Err(second),
            Err(_) => Err(fault),
        }
    }

    /// Asks the server for its era, unless a modern answer is at hand. Only for the holder of `asking`.
    async fn discover(&self, opening: &Opening) -> Result<Discovered, Fault> {
        if let Some(profile) = self.known_profile() {
            return Ok(Discovered::Modern(profile));
        }
        let found = opening::discover(&self.site, opening).await?;
        if let Discovered::Modern(profile) = &found {
            self.eras.learn(Era::Modern, true);
            let until = Instant::now() + opening::keep(profile);
            *self.profile.lock().expect(LOCK) = Some((profile.clone(), until));
        }
        Ok(found)
    }

    fn known_profile(&self) -> Option<Arc<Profile>> {
        if self.eras.speaks(Era::Modern) != Some(true) {
            return None;
        }
        let known = self.profile.lock().expect(LOCK);
        let (profile, until) = known.as_ref()?;
        (*until > Instant::now()).then(|| profile.clone())
    }

    fn modern_link(&self, profile: Arc<Profile>, opening: &Opening) -> HttpLink {
        let introduced = Introduced {
            profile,
            session: None,
            next: opening::FIRST_CALL,
        };
        self.link(introduced, opening)
    }

    fn link(&self, introduced: Introduced, opening: &Opening) -> HttpLink {
        let receiver = opening.receiver.clone();
        HttpLink::new(self.site.clone(), self.eras.clone(), introduced, receiver)
    }

    /// `Err` within is a refusal, with whether only a modern server gives it.
    async fn initialize(
        &self,
        opening: &Opening,
        named: Option<Revision>,
    ) -> Result<Result<HttpLink, (Fault, bool)>, Fault> {
        let revision = match (self.site.settings.protocol, named) {
            (Some(Fixed::Revision(revision)), _) | (_, Some(revision)) => revision,
            _ => opening.revision.min(Revision::NEWEST_LEGACY),
        };
        match opening::initialize(&self.site, opening, revision).await? {
            Initialized::Refused { fault, modern } => Ok(Err((fault, modern))),
            Initialized::Open(introduced, early) => {
                self.eras.learn(Era::Legacy, true);
                let link = self.link(introduced, opening);
                link.begin(early).await?;
                Ok(Ok(link))
            }
        }
    }

    fn is_fixed(&self) -> bool {
        self.site.settings.protocol.is_some()
    }

    /// Nothing of the caller's has been sent yet, whatever went wrong.
    fn before_any_call(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Unreachable { reason, .. } => Fault::unreachable(reason),
            Fault::Crashed { reason } => self.site.down(reason, Ran::No),
            Fault::TimedOut(limit) => {
                self.site.note_down("no answer in time");
                Fault::TimedOut(limit)
            }
            other => other,
        }
    }
}

const LOCK: &str = "no holder of this lock panics";
