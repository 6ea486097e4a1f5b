//! The first words with a server: which era it speaks, and what it says of itself.
//!
//! Answers "Backward Compatibility" of the stdio page of revision 2026-07-28. The
//! verdict is reached on the first message; a process that has understood one era is
//! never spoken to in the other, a fresh one is.

use super::{
    calls::{Answer, NO_LINK},
    process::Process,
};
use crate::{
    backend::{Eras, Fault, Opening, Plan, Profile, error_text, is_modern_error, newest_legacy},
    mcp::{Era, Kind, Message, Revision, code},
};
use bytes::Bytes;
use std::{pin::pin, sync::Arc};

/// How the gateway presents itself to one process.
#[derive(Clone)]
pub(super) struct Introduction {
    pub(super) era: Era,
    /// What to ask for in `initialize`.
    pub(super) legacy: Revision,
    /// What to speak in the modern era.
    pub(super) modern: Revision,
    pub(super) client_info: Bytes,
    pub(super) capabilities: Bytes,
}

/// What came of the first words.
#[derive(Debug)]
pub(super) enum Greeting {
    /// In service.
    Ready,
    /// To be spoken to in this era, by a fresh process.
    Fresh(Era),
}

/// What a process is told first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// As the plan says.
    Plan(Plan),
    /// This era, as is known from another process.
    Only(Era),
}

impl Introduction {
    pub(super) fn of(opening: &Opening, exactly: Option<Revision>, capabilities: Bytes) -> Self {
        let asked = exactly.unwrap_or(opening.revision);
        let or = |era: Era, else_: Revision| if asked.era() == era { asked } else { else_ };
        Self {
            era: opening.era,
            legacy: or(Era::Legacy, Revision::NEWEST_LEGACY),
            modern: or(Era::Modern, Revision::NEWEST),
            client_info: opening.client_info.clone(),
            capabilities,
        }
    }

    fn initialize(&self, revision: Revision) -> Vec<u8> {
        let mut params =
            format!("{{\"protocolVersion\":\"{revision}\",\"capabilities\":").into_bytes();
        params.extend_from_slice(&self.capabilities);
        params.extend_from_slice(b",\"clientInfo\":");
        params.extend_from_slice(&self.client_info);
        params.push(b'}');
        params
    }

    fn discover(&self) -> Vec<u8> {
        let mut params = Vec::with_capacity(256);
        params.extend_from_slice(b"{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"");
        params.extend_from_slice(self.modern.as_str().as_bytes());
        params.extend_from_slice(b"\",\"io.modelcontextprotocol/clientInfo\":");
        params.extend_from_slice(&self.client_info);
        params.extend_from_slice(b",\"io.modelcontextprotocol/clientCapabilities\":");
        params.extend_from_slice(&self.capabilities);
        params.extend_from_slice(b"}}");
        params
    }
}

/// Speaks to a process for the first time.
pub(super) async fn greet(
    process: &Arc<Process>,
    first: First,
    introduction: &Introduction,
    eras: &Eras,
) -> Result<Greeting, Fault> {
    let greeter = Greeter {
        process,
        introduction,
        eras,
        fixed: process.settings.protocol.fixed().is_some(),
        probed: first != First::Plan(Plan::Initialize),
    };
    match first {
        First::Plan(Plan::Initialize) | First::Only(Era::Legacy) => {
            greeter.initialize(introduction.legacy).await
        }
        First::Plan(Plan::Probe) => greeter.probe().await,
        First::Plan(Plan::Modern) | First::Only(Era::Modern) => greeter.discover().await,
    }
}

struct Greeter<'a> {
    process: &'a Arc<Process>,
    introduction: &'a Introduction,
    eras: &'a Eras,
    /// The operator set the era: no other is tried.
    fixed: bool,
    /// The modern era was, or is being, tried first: a legacy greeting is then a verdict on it.
    probed: bool,
}

/// What an answer to `server/discover` says of the era.
enum Verdict {
    Modern(Box<Profile>),
    /// Modern, but not to be talked to.
    Refused(Fault),
    /// Legacy, with the newest legacy revision it named, if it did.
    Legacy(Option<Revision>),
}

impl Greeter<'_> {
    async fn probe(&self) -> Result<Greeting, Fault> {
        let mut probe = pin!(self.ask("server/discover", self.introduction.discover()));
        tokio::select! {
            biased;
            answer = &mut probe => return match answer {
                Ok(message) => self.judge(&message).await,
                Err(Fault::Crashed { .. }) => Ok(Greeting::Fresh(Era::Legacy)),
                // What cannot be read was no modern answer.
                Err(Fault::NotMcp(_)) => self.initialize(self.introduction.legacy).await,
                Err(fault) => Err(fault),
            },
            () = self.process.silence() => {}
        }
        let mut initialize = pin!(self.initialize(self.introduction.legacy));
        tokio::select! {
            biased;
            Ok(late) = &mut probe => {
                // It was only slow. This process has now been told of both eras.
                if let Verdict::Modern(_) = verdict(&late, self.introduction.modern) {
                    self.eras.learn(Era::Modern, true);
                    return Ok(Greeting::Fresh(Era::Modern));
                }
            }
            greeting = &mut initialize => return greeting,
        }
        initialize.await
    }

    /// Speaks to a server that is known, or was set, to be modern.
    async fn discover(&self) -> Result<Greeting, Fault> {
        let params = self.introduction.discover();
        let answer = self.ask("server/discover", params).await?;
        self.judge(&answer).await
    }

    async fn judge(&self, message: &Message) -> Result<Greeting, Fault> {
        match verdict(message, self.introduction.modern) {
            Verdict::Modern(profile) => {
                self.eras.learn(Era::Modern, true);
                self.process.introduce(*profile);
                Ok(Greeting::Ready)
            }
            Verdict::Refused(fault) => {
                self.eras.learn(Era::Modern, true);
                Err(fault)
            }
            Verdict::Legacy(_) if self.fixed => Err(Fault::WrongEra("modern")),
            Verdict::Legacy(revision) => {
                let revision = revision.unwrap_or(self.introduction.legacy);
                self.initialize(revision).await
            }
        }
    }

    async fn initialize(&self, revision: Revision) -> Result<Greeting, Fault> {
        let params = self.introduction.initialize(revision);
        let mut answer = self.ask("initialize", params).await?;
        let other = newest_legacy(&supported(&answer)).filter(|other| *other != revision);
        if let (Kind::Error, Some(other)) = (answer.kind(), other) {
            let params = self.introduction.initialize(other);
            answer = self.ask("initialize", params).await?;
        }
        if answer.kind() == Kind::Result {
            return self.is_legacy(&answer);
        }
        if asks_for_modern(&answer) && !self.fixed {
            self.eras.learn(Era::Legacy, false);
            return Ok(Greeting::Fresh(Era::Modern));
        }
        Err(Fault::Declined(error_text(&answer)))
    }

    fn is_legacy(&self, answer: &Message) -> Result<Greeting, Fault> {
        let declined = |why: &str| Fault::Declined(why.to_owned());
        let result = answer.payload_span().map(|span| answer.slice(span));
        let result = result.ok_or_else(|| declined("no result"))?;
        let profile = Profile::read(&result, None).map_err(declined)?;
        if profile.era() != Era::Legacy {
            return Err(declined("a modern revision in the answer to initialize"));
        }
        self.eras.learn(Era::Legacy, true);
        if self.probed {
            self.eras.learn(Era::Modern, false);
        }
        self.process.introduce(profile);
        Ok(Greeting::Ready)
    }

    async fn ask(&self, method: &str, params: Vec<u8>) -> Answer {
        let id = self.process.calls.next_id();
        let message = code::call_message(Some(&id.to_string()), method, Some(&params));
        self.process.ask(NO_LINK, id, message.into(), true).await
    }
}

fn verdict(message: &Message, spoken: Revision) -> Verdict {
    if message.kind() == Kind::Error {
        let supported = supported(message);
        return match newest_legacy(&supported) {
            Some(revision) if !supported.contains(&spoken) => Verdict::Legacy(Some(revision)),
            _ if is_modern_error(message.error_code()) => {
                Verdict::Refused(Fault::Declined(error_text(message)))
            }
            _ => Verdict::Legacy(None),
        };
    }
    let result = message.payload_span().map(|span| message.slice(span));
    let Some(Ok(profile)) = result.map(|result| Profile::read(&result, Some(spoken))) else {
        return Verdict::Legacy(None);
    };
    if profile.supported.contains(&spoken) {
        return Verdict::Modern(Box::new(profile));
    }
    // A server that answers anything with some result is no modern one.
    Verdict::Legacy(newest_legacy(&profile.supported))
}

/// The revisions in an error's `data.supported`.
fn supported(message: &Message) -> Vec<Revision> {
    if message.kind() != Kind::Error {
        return Vec::new();
    }
    let payload = message.payload().unwrap_or_default();
    let error: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
    let list = error["data"]["supported"].as_array();
    let texts = list.into_iter().flatten().filter_map(|v| v.as_str());
    texts.filter_map(Revision::parse).collect()
}

/// Whether the answer to `initialize` is one that a server without that method gives.
fn asks_for_modern(answer: &Message) -> bool {
    matches!(
        answer.error_code(),
        Some(code::UNSUPPORTED_VERSION | code::METHOD_NOT_FOUND)
    ) || error_text(answer)
        .to_ascii_lowercase()
        .contains("method not found")
}
