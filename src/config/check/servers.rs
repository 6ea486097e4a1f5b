//! Servers: one way to reach each, and nothing that belongs to the other way.

use indexmap::IndexMap;

use super::Check;
use crate::config::{
    fault::Quoted,
    read::did_you_mean,
    server::{Protocol, Server, Target},
    settings::Config,
    tree::{Data, Node},
};

/// Keys that mean something for a process only.
const OF_PROCESSES: [&str; 5] = ["args", "env", "envFile", "cwd", "inherit_env"];

const NO_SSE: &str =
    "the HTTP+SSE transport of 2024-11-05 is not supported yet: give the streamable HTTP address";

impl Check<'_> {
    pub(super) fn servers(&mut self, config: &mut Config) {
        for (id, server) in &mut config.servers {
            let id = id.as_str();
            self.one_target(id);
            self.transport(id, server);
            self.environment(id);
            self.timeouts(id, server);
            for part in ["tools", "prompts", "resources"] {
                let rename = match part {
                    "tools" => &server.tools.rename,
                    "prompts" => &server.prompts.rename,
                    _ => &server.resources.rename,
                };
                self.renames(id, part, rename);
            }
            self.target(id, server);
        }
    }

    /// Exactly one of `command` and `url`, and what goes with it.
    fn one_target(&mut self, id: &str) {
        let has = |key: &str| self.written(&["servers", id, key]).is_some();
        match (has("command"), has("url")) {
            (true, true) => {
                self.fault(
                    &["servers", id, "url"],
                    "stands beside `command`; write one of them only",
                );
            }
            (false, false) if self.misspelt_target(id) => {}
            (false, false) => {
                let text = "has neither `command` nor `url`; write the program to run or the address to connect to";
                self.fault(&["servers", id], text);
            }
            (true, false) => self.out_of_place(id, &["headers"], "command"),
            (false, true) => self.out_of_place(id, &OF_PROCESSES, "url"),
        }
    }

    /// Whether a key was meant for `command` or `url`: then that has been reported, and is enough.
    fn misspelt_target(&self, id: &str) -> bool {
        let keys = self
            .written(&["servers", id])
            .map_or(&[][..], Node::entries);
        let meant = |key: &str| !did_you_mean(key, ["command", "url"].into_iter()).is_empty();
        !self.ground.lenient && keys.iter().any(|entry| meant(&entry.key))
    }

    fn out_of_place(&mut self, id: &str, keys: &[&str], beside: &str) {
        for key in keys {
            let Some(value) = self.written(&["servers", id, key]) else {
                continue;
            };
            let empty = match &value.data {
                Data::Map(entries) => entries.is_empty(),
                Data::List(items) => items.is_empty(),
                _ => false,
            };
            let other = if beside == "url" { "command" } else { "url" };
            // Desktop clients write empty ones everywhere.
            match self.ground.lenient {
                _ if empty => {}
                true => self.warn(
                    &["servers", id, key],
                    format!("means nothing beside `{beside}`; it is ignored"),
                ),
                false => {
                    let text = format!(
                        "means nothing beside `{beside}`; it belongs to a server with `{other}`"
                    );
                    self.fault(&["servers", id, key], text);
                }
            }
        }
        if beside == "url" {
            for keys in [
                &["start"][..],
                &["limits", "processes"],
                &["limits", "per_principal"],
                &["limits", "memory"],
            ] {
                let keys = [&["servers", id][..], keys].concat();
                if self.written(&keys).is_some() {
                    self.warn(&keys, "means nothing beside `url`; it is ignored");
                }
            }
        }
    }

    /// `type` says the same as `command` or `url`, and neither asks for the old transport.
    fn transport(&mut self, id: &str, server: &Server) {
        let remote = self.written(&["servers", id, "url"]).is_some();
        let kind = self
            .written(&["servers", id, "type"])
            .and_then(Node::as_text)
            .unwrap_or_default();
        match kind {
            "sse" => self.fault(&["servers", id, "type"], NO_SSE),
            "stdio" if remote => {
                self.fault(
                    &["servers", id, "type"],
                    "`stdio` goes with `command`; write `http`, or leave it out",
                );
            }
            "http" | "streamable-http" | "streamableHttp" if !remote => {
                let text = "goes with `url`; write `stdio`, or leave it out";
                self.fault(&["servers", id, "type"], text);
            }
            _ => {}
        }
        if remote && server.protocol == Protocol::V2024_11_05 {
            self.fault(&["servers", id, "protocol"], NO_SSE);
        }
    }

    fn environment(&mut self, id: &str) {
        let keys = ["servers", id, "env"];
        let names = self.written(&keys).map_or(&[][..], Node::entries);
        let odd: Vec<_> = names
            .iter()
            .filter(|entry| is_odd(&entry.key))
            .map(|entry| entry.key.clone())
            .collect();
        for name in odd {
            self.fault(
                &["servers", id, "env", &name],
                "is no name for a variable; write one without `=`, such as `LOG`",
            );
        }
        if let Some(Node {
            data: Data::List(items),
            ..
        }) = self.written(&["servers", id, "inherit_env"])
        {
            let odd = |item: &Node| item.as_text().is_some_and(is_odd);
            let odd: Vec<_> = items
                .iter()
                .enumerate()
                .filter(|(_, item)| odd(item))
                .map(|(index, _)| index)
                .collect();
            for index in odd {
                let text = "is no name for a variable; write one such as `HTTPS_PROXY`";
                self.item_fault(&["servers", id, "inherit_env"], index, text);
            }
        }
    }

    /// The whole time is at least the time without progress. Who lengthens the one alone means the other too.
    fn timeouts(&mut self, id: &str, server: &mut Server) {
        let timeouts = &mut server.timeouts;
        if timeouts.call <= timeouts.call_max {
            return;
        }
        let keys = ["servers", id, "timeouts", "call_max"];
        if self.written(&keys).is_some() {
            let text = "is less than `call`; write at least as much, or leave it out";
            self.fault(&keys, text);
        }
        timeouts.call_max = timeouts.call;
    }

    fn renames(&mut self, id: &str, part: &str, rename: &IndexMap<String, String>) {
        for (index, (old, new)) in rename.iter().enumerate() {
            let keys = ["servers", id, part, "rename", old];
            let same = rename.iter().take(index).find(|(_, other)| *other == new);
            if new.is_empty() {
                self.fault(&keys, "is empty; write the new name");
            } else if let Some((other, _)) = same {
                let text = format!(
                    "is the new name of {} already; write another",
                    Quoted(other, '`')
                );
                self.fault(&keys, text);
            }
        }
    }

    fn target(&mut self, id: &str, server: &mut Server) {
        match &mut server.target {
            Target::Process(process) => {
                process.cwd = process.cwd.take().map(|cwd| self.ground.folder.join(cwd));
            }
            Target::Remote(remote) => {
                let names = self
                    .written(&["servers", id, "headers"])
                    .map_or(&[][..], Node::entries);
                let keys: Vec<_> = names.iter().map(|entry| entry.key.clone()).collect();
                for (index, key) in keys.iter().enumerate() {
                    if keys[..index]
                        .iter()
                        .any(|other| other.eq_ignore_ascii_case(key))
                    {
                        let text = "stands here twice; upper and lower case do not matter in the name of a header";
                        self.fault(&["servers", id, "headers", key], text);
                    }
                    let value = remote
                        .headers
                        .iter()
                        .find(|(name, _)| name.as_str().eq_ignore_ascii_case(key));
                    if value.is_some_and(|(_, value)| {
                        http::HeaderValue::from_bytes(value.expose().as_bytes()).is_err()
                    }) {
                        let text =
                            "has a line break or another control character; write a single line";
                        self.fault(&["servers", id, "headers", key], text);
                    }
                }
            }
            Target::Unavailable(reason) => {
                let written = self.written(&["servers", id]);
                if written.is_some_and(|server| {
                    server.get("command").is_some() || server.get("url").is_some()
                }) {
                    let text = format!("cannot be used, and the others can: {reason}");
                    self.warn(&["servers", id], text);
                }
            }
        }
    }
}

/// Whether a text can be no variable's name.
fn is_odd(name: &str) -> bool {
    name.is_empty() || name.contains(['=', '\0'])
}
