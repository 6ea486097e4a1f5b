//! One request on its way through an example server: what a tool sees of its client. A tool asks, reports
//! progress and logs without knowing whether the client has a session or repeats everything in `_meta`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::calendar::Diary;
use super::fault::{Fault, MISSING_CAPABILITY, notification};
use super::revision::Revision;
use super::session::Session;
use super::world::{Outlet, World};

/// The log levels, least severe first; a level's place is its rank.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// The rank of the level, if it is one.
pub fn rank(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}

/// How the client is reached while the call runs.
pub enum Way {
    /// By requests of ours, which it answers.
    Legacy(Arc<Session>),
    /// Not at all: a question ends the call, and a later call brings its answer.
    Modern {
        /// The answers that this call brought.
        answers: Map<String, Value>,
        /// The rank of the least severe log message wanted, if any is.
        level: Option<usize>,
    },
}

/// One request on its way.
pub struct Call {
    /// The process.
    pub world: Arc<World>,
    /// The revision that this request is in.
    pub revision: Revision,
    /// The request's parameters.
    pub params: Value,
    /// The bookings that this client sees.
    pub diary: Arc<Diary>,
    /// What the client can be asked for.
    pub capabilities: Value,
    /// How the client is reached.
    pub way: Way,
    /// Where messages go that belong to this request.
    pub out: Outlet,
}

impl Call {
    /// Sends a notification that belongs to this request.
    fn notify(&self, method: &str, params: Value) {
        // A client that has gone hears nothing; that it has gone is for the transport to notice.
        let _ = self.out.send(notification(method, params));
    }

    /// Reports progress, if the client wants to hear of it.
    pub fn progress(&self, done: u64, total: u64, message: &str) {
        let token = &self.params["_meta"]["progressToken"];
        if !token.is_string() && !token.is_number() {
            return;
        }
        let mut params = json!({ "progressToken": token, "progress": done, "total": total });
        if self.revision >= Revision::V2025_03_26 {
            params["message"] = json!(message);
        }
        self.notify("notifications/progress", params);
    }

    /// Sends a log message, if the client wants that level.
    pub fn log(&self, level: &str, data: Value) {
        let wanted = match &self.way {
            Way::Legacy(session) => Some(session.level()),
            Way::Modern { level, .. } => *level,
        };
        if wanted.is_some_and(|wanted| rank(level) >= Some(wanted)) {
            let logger = self.world.server.name();
            let params = json!({ "level": level, "logger": logger, "data": data });
            self.notify("notifications/message", params);
        }
    }

    /// Fails unless the client can be asked with this capability: `sampling`, `elicitation` (forms) or `roots`.
    pub fn require(&self, capability: &str) -> Result<(), Fault> {
        let declared = &self.capabilities[capability];
        let forms_missing =
            capability == "elicitation" && !declared["url"].is_null() && declared["form"].is_null();
        let too_old = capability == "elicitation" && self.revision < Revision::V2025_06_18;
        if declared.is_object() && !forms_missing && !too_old {
            return Ok(());
        }
        let message = format!("This tool needs a client with the capability `{capability}`");
        match self.way {
            Way::Legacy(_) => Err(Fault::tool(message)),
            Way::Modern { .. } => Err(Fault::with_data(
                MISSING_CAPABILITY,
                message,
                json!({ "requiredCapabilities": { capability: {} } }),
            )),
        }
    }

    /// The client's answer to a question. `key` names the question within this request, so that a later call
    /// can bring the answer.
    pub async fn ask(
        &self,
        key: &'static str,
        method: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        match &self.way {
            Way::Legacy(session) => session.ask(method, params, &self.out).await,
            Way::Modern { answers, .. } => match answers.get(key) {
                Some(answer) => Ok(answer.clone()),
                None => Err(Fault::Input {
                    key,
                    request: question(method, params),
                }),
            },
        }
    }

    /// Whether this request already brings the answer to that question.
    pub fn knows(&self, key: &str) -> bool {
        match &self.way {
            Way::Legacy(_) => false,
            Way::Modern { answers, .. } => answers.contains_key(key),
        }
    }

    /// Tells those who see this call's diary that the list of tools has changed.
    pub fn tools_changed(&self) {
        match &self.way {
            Way::Legacy(session) => {
                session.notify(notification(
                    "notifications/tools/list_changed",
                    Value::Null,
                ));
            }
            Way::Modern { .. } => self.world.tools_changed(),
        }
    }
}

fn question(method: &str, params: Value) -> Value {
    if params.is_null() {
        json!({ "method": method })
    } else {
        json!({ "method": method, "params": params })
    }
}
