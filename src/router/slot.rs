//! A client's place at one server: the link in use, opened when first needed and again when it is lost.

use super::{
    core::Router,
    inlet::{Home, Inlet, Shared},
    standing::LEVELS,
};
use crate::{
    backend::{Call, Fault, Holder, Link, Opening, Server},
    bridge::Hop,
    catalog::Layer,
    mcp::{Era, Message, Revision, code::call_message, message::quote},
};
use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// What servers are told of the client.
#[derive(Clone, Debug)]
pub struct Face {
    /// The era that fits the client.
    pub era: Era,
    pub revision: Revision,
    /// Raw JSON.
    pub client_info: Bytes,
    /// Raw JSON; only what can be answered.
    pub capabilities: Bytes,
    pub holder: Holder,
}

/// A link and where its messages go.
pub struct Open {
    pub link: Link,
    pub inlet: Arc<Inlet>,
}

pub struct Slot {
    pub endpoint: usize,
    pub place: usize,
    pub server: Arc<Server>,
    pub face: Face,
    pub home: Home,
    router: Weak<Router>,
    current: ArcSwapOption<Open>,
    opening: tokio::sync::Mutex<()>,
    layer: ArcSwap<Layer>,
    own_layer: AtomicBool,
    /// Rank of the level that a pooled backend was set to.
    level: AtomicUsize,
}

impl Slot {
    pub fn new(
        router: Weak<Router>,
        (endpoint, place): (usize, usize),
        server: Arc<Server>,
        face: Face,
        home: Home,
        layer: Arc<Layer>,
    ) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            place,
            server,
            face,
            home,
            router,
            current: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::new(()),
            layer: ArcSwap::new(layer),
            own_layer: AtomicBool::new(false),
            level: AtomicUsize::new(LEVELS.len()),
        })
    }

    /// The link in use, if it still lives.
    pub fn ready(&self) -> Option<Arc<Open>> {
        self.current.load_full().filter(|open| open.link.is_alive())
    }

    /// The link in use, opened first if there is none. One opening at a time.
    pub async fn open(self: &Arc<Self>) -> Result<Arc<Open>, Fault> {
        if let Some(open) = self.ready() {
            return Ok(open);
        }
        let _turn = self.opening.lock().await;
        if let Some(open) = self.ready() {
            return Ok(open);
        }
        let open = self.fresh().await?;
        self.current.store(Some(open.clone()));
        Ok(open)
    }

    /// A new link that is not kept. It knows all that an older one was told before anyone gets it.
    pub async fn fresh(self: &Arc<Self>) -> Result<Arc<Open>, Fault> {
        let inlet = Arc::new(Inlet::new(self.router.clone(), self));
        let opening = Opening {
            era: self.face.era,
            revision: self.face.revision,
            client_info: self.face.client_info.clone(),
            capabilities: self.face.capabilities.clone(),
            holder: self.face.holder.clone(),
            receiver: Arc::new(Shared(inlet.clone())),
        };
        let link = self.server.open(opening).await?;
        let open = Arc::new(Open { link, inlet });
        open.inlet.attach(&open);
        self.tell_again(&open).await;
        Ok(open)
    }

    /// Level and subscriptions, which a backend that starts again has lost.
    async fn tell_again(&self, open: &Arc<Open>) {
        let Home::Session(session) = &self.home else {
            self.level.store(LEVELS.len(), Ordering::Relaxed);
            return;
        };
        let Some(session) = session.upgrade() else {
            return;
        };
        if open.link.profile().era() == Era::Modern {
            return;
        }
        if let Some(level) = session.state.level_name() {
            self.set_level(open, level).await;
        }
        for uri in session.state.subscriptions(self.place) {
            let params = format!("{{\"uri\":{}}}", quote(&uri));
            let told = open.ask("resources/subscribe", &params).await;
            if let Err(fault) = told {
                tracing::debug!(server = %self.server.id, %fault, "a subscription could not be renewed");
            }
        }
    }

    /// Sets the level of a backend that has levels; others are left alone.
    pub async fn set_level(&self, open: &Arc<Open>, level: &str) {
        let profile = open.link.profile();
        if profile.era() == Era::Modern || !profile.has("logging") {
            return;
        }
        let params = format!("{{\"level\":{}}}", quote(level));
        if let Err(fault) = open.ask("logging/setLevel", &params).await {
            tracing::debug!(server = %self.server.id, %fault, "a level could not be set");
        }
    }

    /// Makes a pooled backend at least as talkative as `rank`.
    pub async fn lower_level(&self, open: &Arc<Open>, rank: usize) {
        if self.level.fetch_min(rank, Ordering::Relaxed) > rank {
            self.set_level(open, LEVELS[rank]).await;
        }
    }

    /// Lets go of a link that turned out to be lost.
    pub fn forget(&self, open: &Arc<Open>) {
        let current = self.current.load();
        if current.as_ref().is_some_and(|c| Arc::ptr_eq(c, open)) {
            self.current.compare_and_swap(&current, None);
        }
    }

    /// Ends the link in use.
    pub async fn close(&self) {
        if let Some(open) = self.current.swap(None) {
            open.link.close().await;
        }
    }

    pub fn layer(&self) -> Arc<Layer> {
        self.layer.load_full()
    }

    /// The server told this client alone that a list changed: from now on it may differ from what others see.
    pub fn take_own_layer(&self) -> Arc<Layer> {
        if !self.own_layer.swap(true, Ordering::AcqRel) {
            let copy = self.layer.load().copy();
            self.layer.store(Arc::new(copy));
        }
        self.layer()
    }
}

impl Open {
    /// A request of the gateway's own; `params` is the JSON text of an object.
    pub async fn ask(
        self: &Arc<Self>,
        method: &'static str,
        params: &str,
    ) -> Result<Message, Fault> {
        let id = self.link.next_id();
        let params = match self.link.profile().era() {
            Era::Legacy => params.to_owned(),
            Era::Modern => self.with_meta(params),
        };
        let message = call_message(Some(&id.to_string()), method, Some(params.as_bytes()));
        let call = Call {
            id,
            message: message.into(),
            method,
            other_method: None,
            name: None,
            params: Vec::new(),
        };
        self.link.call(call).await
    }

    fn with_meta(&self, params: &str) -> String {
        let face = &self.inlet.face;
        let hop = Hop {
            revision: self.link.profile().revision,
            client_info: &face.client_info,
            capabilities: b"{}",
            log_level: None,
        };
        let inside = params.strip_prefix('{').and_then(|p| p.strip_suffix('}'));
        let inside = inside.unwrap_or_default();
        let comma = if inside.is_empty() { "" } else { "," };
        format!("{{\"_meta\":{}{comma}{inside}}}", hop.meta())
    }
}
