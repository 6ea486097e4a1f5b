//! One configured server: its transport, what is known of it, and how it fares.

use super::{Eras, Fault, Link, Opening, Profile, http::Origin, stdio::Supervisor};
use crate::{
    config::Isolation,
    mcp::{Era, ServerId},
    telemetry::ServerMetrics,
};
use arc_swap::ArcSwapOption;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// How a server fares, as far as the last contact told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Never reached yet.
    Starting,
    Up,
    Down,
}

pub enum Transport {
    Stdio {
        supervisor: Supervisor,
        eras: Arc<Eras>,
    },
    Http(Origin),
    /// The configuration of this one server is incomplete; the text says what is missing.
    Unavailable(String),
}

pub struct Server {
    pub id: ServerId,
    pub metrics: ServerMetrics,
    pub isolation: Isolation,
    /// The largest message, in bytes.
    pub frame: usize,
    transport: Transport,
    profiles: [ArcSwapOption<Profile>; 2],
    health: watch::Sender<Health>,
    /// Whether it was found down, or its lists were learned, for the first time.
    met: watch::Sender<bool>,
}

impl Server {
    pub fn new(
        id: ServerId,
        isolation: Isolation,
        frame: usize,
        transport: Transport,
        metrics: ServerMetrics,
    ) -> Self {
        Self {
            id,
            metrics,
            isolation,
            frame,
            transport,
            profiles: Default::default(),
            health: watch::Sender::new(Health::Starting),
            met: watch::Sender::new(false),
        }
    }

    /// Opens a link and keeps what the server said of itself.
    pub async fn open(&self, opening: Opening) -> Result<Link, Fault> {
        let opened = match &self.transport {
            Transport::Stdio { supervisor, .. } => supervisor.open(opening).await.map(Link::Stdio),
            Transport::Http(origin) => origin.open(opening).await.map(Link::Http),
            Transport::Unavailable(reason) => Err(Fault::unreachable(reason.clone())),
        };
        match &opened {
            Ok(link) => {
                let profile = link.profile();
                self.profiles[profile.era() as usize].store(Some(profile.clone()));
                self.note(Health::Up);
            }
            Err(fault) if says_down(fault) => {
                tracing::warn!(server = %self.id, %fault, "server cannot be opened");
                self.note(Health::Down);
            }
            Err(_) => {}
        }
        opened
    }

    /// Notes how the last contact went.
    pub fn note(&self, health: Health) {
        self.metrics.up.set(i64::from(health == Health::Up));
        if health == Health::Down {
            self.introduce();
        }
        self.health.send_if_modified(|now| {
            let new = *now != health;
            *now = health.clone();
            new
        });
    }

    pub fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// Notes that what there is to know at the start is known.
    pub fn introduce(&self) {
        self.met
            .send_if_modified(|met| !std::mem::replace(met, true));
    }

    /// Whether the first contact is over, well or badly.
    pub fn is_met(&self) -> bool {
        *self.met.borrow()
    }

    /// Waits, at most `limit`, until the server was found down or its lists were learned for the first time.
    pub async fn first_contact(&self, limit: Duration) {
        let mut met = self.met.subscribe();
        let contact = met.wait_for(|met| *met);
        let _ = tokio::time::timeout(limit, contact).await;
    }

    /// Told whenever the health changes.
    pub fn watch(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// What the server said of itself in `era`.
    pub fn profile(&self, era: Era) -> Option<Arc<Profile>> {
        self.profiles[era as usize].load_full()
    }

    /// What a client of `era` would be told: the profile of its own era, or else of the other.
    pub fn profile_for(&self, era: Era) -> Option<Arc<Profile>> {
        let other = match era {
            Era::Legacy => Era::Modern,
            Era::Modern => Era::Legacy,
        };
        self.profile(era).or_else(|| self.profile(other))
    }

    /// Whether the server is known to speak `era`.
    pub fn speaks(&self, era: Era) -> Option<bool> {
        match &self.transport {
            Transport::Stdio { eras, .. } => eras.speaks(era),
            Transport::Http(origin) => origin.eras().speaks(era),
            Transport::Unavailable(_) => None,
        }
    }

    pub fn is_stdio(&self) -> bool {
        matches!(self.transport, Transport::Stdio { .. })
    }

    /// Ends everything that runs for this server, within `grace`.
    pub async fn shutdown(&self, grace: Duration) {
        match &self.transport {
            Transport::Stdio { supervisor, .. } => supervisor.shutdown(grace).await,
            Transport::Http(origin) => origin.close(grace).await,
            Transport::Unavailable(_) => {}
        }
    }
}

fn says_down(fault: &Fault) -> bool {
    !matches!(
        fault,
        Fault::Busy(_) | Fault::Cancelled | Fault::WrongEra(_)
    )
}
