//! The protocol as a table: each method a row.
//!
//! Dispatch elsewhere matches on what a row says (where the target stands, how
//! replies join), not on names. Methods that no row knows pass by their text.

use super::revision::Era;

/// A method the gateway does something about. Everything else is [`Method::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Initialize,
    Discover,
    Ping,
    Shutdown,
    List(ListKind),
    CallTool,
    ReadResource,
    GetPrompt,
    Complete,
    SetLevel,
    Subscribe,
    Unsubscribe,
    Listen,
    GetTask,
    TaskResult,
    CancelTask,
    UpdateTask,
    ListTasks,
    CreateMessage,
    Elicit,
    ListRoots,
    Initialized,
    Cancelled,
    Progress,
    Log,
    RootsChanged,
    ListChanged(ListKind),
    ResourceUpdated,
    ElicitationComplete,
    TaskStatus,
    SubscriptionAcknowledged,
    Exit,
    Other,
}

/// The four lists a server keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

/// Who sends a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    Client,
    Server,
    Either,
}

/// What decides which server a client's request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The gateway answers by itself.
    Gateway,
    /// Every server of the endpoint, answers merged.
    All,
    /// `params.name`, a tool.
    Tool,
    /// `params.name`, a prompt.
    Prompt,
    /// `params.uri`.
    Uri,
    /// `params.ref`.
    Reference,
    /// `params.taskId`.
    Task,
    /// The only server of the endpoint, or nobody.
    Only,
}

#[derive(Debug)]
pub struct Row {
    pub method: Method,
    pub name: &'static str,
    pub sender: Sender,
    pub target: Target,
    /// The only era that has it; `None` for both.
    pub era: Option<Era>,
}

impl Row {
    /// Whether it is a request of the protocol; what no row names may be either.
    pub fn is_request(&self) -> bool {
        self.method != Method::Other && !self.name.starts_with("notifications/")
    }
}

const fn row(
    method: Method,
    name: &'static str,
    sender: Sender,
    target: Target,
    era: Option<Era>,
) -> Row {
    Row {
        method,
        name,
        sender,
        target,
        era,
    }
}

const LEGACY: Option<Era> = Some(Era::Legacy);
const MODERN: Option<Era> = Some(Era::Modern);

/// Ordered by how often a gateway sees them.
pub static TABLE: &[Row] = &[
    row(
        Method::CallTool,
        "tools/call",
        Sender::Client,
        Target::Tool,
        None,
    ),
    row(
        Method::List(ListKind::Tools),
        "tools/list",
        Sender::Client,
        Target::All,
        None,
    ),
    row(
        Method::Initialize,
        "initialize",
        Sender::Client,
        Target::Gateway,
        LEGACY,
    ),
    row(
        Method::Initialized,
        "notifications/initialized",
        Sender::Client,
        Target::Gateway,
        LEGACY,
    ),
    row(
        Method::Progress,
        "notifications/progress",
        Sender::Either,
        Target::Only,
        None,
    ),
    row(
        Method::Log,
        "notifications/message",
        Sender::Server,
        Target::Only,
        None,
    ),
    row(
        Method::Cancelled,
        "notifications/cancelled",
        Sender::Either,
        Target::Only,
        None,
    ),
    row(
        Method::Ping,
        "ping",
        Sender::Either,
        Target::Gateway,
        LEGACY,
    ),
    row(
        Method::ReadResource,
        "resources/read",
        Sender::Client,
        Target::Uri,
        None,
    ),
    row(
        Method::GetPrompt,
        "prompts/get",
        Sender::Client,
        Target::Prompt,
        None,
    ),
    row(
        Method::List(ListKind::Resources),
        "resources/list",
        Sender::Client,
        Target::All,
        None,
    ),
    row(
        Method::List(ListKind::Templates),
        "resources/templates/list",
        Sender::Client,
        Target::All,
        None,
    ),
    row(
        Method::List(ListKind::Prompts),
        "prompts/list",
        Sender::Client,
        Target::All,
        None,
    ),
    row(
        Method::Discover,
        "server/discover",
        Sender::Client,
        Target::Gateway,
        MODERN,
    ),
    row(
        Method::Complete,
        "completion/complete",
        Sender::Client,
        Target::Reference,
        None,
    ),
    row(
        Method::SetLevel,
        "logging/setLevel",
        Sender::Client,
        Target::Gateway,
        LEGACY,
    ),
    row(
        Method::Subscribe,
        "resources/subscribe",
        Sender::Client,
        Target::Uri,
        LEGACY,
    ),
    row(
        Method::Unsubscribe,
        "resources/unsubscribe",
        Sender::Client,
        Target::Uri,
        LEGACY,
    ),
    row(
        Method::Listen,
        "subscriptions/listen",
        Sender::Client,
        Target::Only,
        MODERN,
    ),
    row(
        Method::CreateMessage,
        "sampling/createMessage",
        Sender::Server,
        Target::Only,
        LEGACY,
    ),
    row(
        Method::Elicit,
        "elicitation/create",
        Sender::Server,
        Target::Only,
        LEGACY,
    ),
    row(
        Method::ListRoots,
        "roots/list",
        Sender::Server,
        Target::Only,
        LEGACY,
    ),
    row(
        Method::RootsChanged,
        "notifications/roots/list_changed",
        Sender::Client,
        Target::All,
        LEGACY,
    ),
    row(
        Method::ListChanged(ListKind::Tools),
        "notifications/tools/list_changed",
        Sender::Server,
        Target::All,
        None,
    ),
    row(
        Method::ListChanged(ListKind::Prompts),
        "notifications/prompts/list_changed",
        Sender::Server,
        Target::All,
        None,
    ),
    row(
        Method::ListChanged(ListKind::Resources),
        "notifications/resources/list_changed",
        Sender::Server,
        Target::All,
        None,
    ),
    row(
        Method::ResourceUpdated,
        "notifications/resources/updated",
        Sender::Server,
        Target::Uri,
        None,
    ),
    row(
        Method::ElicitationComplete,
        "notifications/elicitation/complete",
        Sender::Server,
        Target::Only,
        LEGACY,
    ),
    row(
        Method::TaskStatus,
        "notifications/tasks/status",
        Sender::Either,
        Target::Task,
        None,
    ),
    row(
        Method::GetTask,
        "tasks/get",
        Sender::Either,
        Target::Task,
        None,
    ),
    row(
        Method::TaskResult,
        "tasks/result",
        Sender::Either,
        Target::Task,
        LEGACY,
    ),
    row(
        Method::CancelTask,
        "tasks/cancel",
        Sender::Either,
        Target::Task,
        None,
    ),
    row(
        Method::UpdateTask,
        "tasks/update",
        Sender::Client,
        Target::Task,
        MODERN,
    ),
    row(
        Method::ListTasks,
        "tasks/list",
        Sender::Either,
        Target::All,
        LEGACY,
    ),
    row(
        Method::SubscriptionAcknowledged,
        "notifications/subscriptions/acknowledged",
        Sender::Server,
        Target::Only,
        MODERN,
    ),
    // In no revision, but some guides describe them (see the front).
    row(
        Method::Shutdown,
        "shutdown",
        Sender::Client,
        Target::Gateway,
        LEGACY,
    ),
    row(
        Method::Exit,
        "notifications/exit",
        Sender::Client,
        Target::Gateway,
        LEGACY,
    ),
];

static OTHER: Row = row(Method::Other, "", Sender::Either, Target::Only, None);

impl Method {
    /// The capability that a server must have declared for this method to mean anything.
    pub fn capability(self) -> Option<&'static str> {
        match self {
            Self::List(kind) => Some(kind.capability()),
            Self::CallTool => Some("tools"),
            Self::GetPrompt => Some("prompts"),
            Self::ReadResource | Self::Subscribe | Self::Unsubscribe => Some("resources"),
            Self::Complete => Some("completions"),
            Self::ListTasks => Some("tasks.list"),
            _ => None,
        }
    }

    /// The row of the method called `name`, or the one for unknown methods.
    pub fn row(name: &str) -> &'static Row {
        TABLE.iter().find(|r| r.name == name).unwrap_or(&OTHER)
    }

    pub fn named(name: &str) -> Self {
        Self::row(name).method
    }
}

impl ListKind {
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The list request's method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of the result that holds the list.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The capability that a server with this list declares.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// The notification that says it changed; templates share the resources' one.
    pub fn changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
        }
    }

    /// The member of an item that tells it from others.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    pub fn index(self) -> usize {
        match self {
            Self::Tools => 0,
            Self::Prompts => 1,
            Self::Resources => 2,
            Self::Templates => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<_> = TABLE.iter().map(|r| r.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }

    #[test]
    fn list_kinds_agree_with_the_table() {
        for kind in ListKind::ALL {
            assert_eq!(Method::named(kind.method()), Method::List(kind));
        }
    }
}
