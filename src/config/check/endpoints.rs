//! Endpoints: paths that do not clash, and servers that there are.

use super::Check;
use crate::config::{
    fault::Quoted,
    read::did_you_mean,
    settings::Config,
    tree::{Data, Node},
    value::{EndpointPath, ServerId},
};

impl Check<'_> {
    pub(super) fn endpoints(&mut self, config: &mut Config) {
        self.same_paths();
        let written: Vec<String> = match self.written(&["endpoints"]) {
            Some(node) => node
                .entries()
                .iter()
                .map(|entry| entry.key.clone())
                .collect(),
            None => Vec::new(),
        };
        for key in &written {
            let Ok(path) = key.parse::<EndpointPath>() else {
                continue;
            };
            self.single_server_path(config, key, &path);
            self.known_servers(key);
        }
        for endpoint in config.endpoints.values_mut() {
            if let Some(ids) = &mut endpoint.servers {
                ids.retain(|id| config.servers.contains_key(id));
            }
        }
        if config.endpoints.is_empty() && !config.single_server && !config.servers.is_empty() {
            let text = "is empty, and `single_server` is off, so no server can be reached; leave one of them out";
            self.fault(&["endpoints"], text);
        }
    }

    /// A `/` at the end makes no difference.
    fn same_paths(&mut self) {
        let Some(node) = self.written(&["endpoints"]) else {
            return;
        };
        let mut seen: Vec<(EndpointPath, String)> = Vec::new();
        let mut same = Vec::new();
        for entry in node.entries() {
            let Ok(path) = entry.key.parse::<EndpointPath>() else {
                continue;
            };
            match seen.iter().find(|(other, _)| *other == path) {
                Some((_, other)) => same.push((entry.key.clone(), other.clone())),
                None => seen.push((path, entry.key.clone())),
            }
        }
        for (key, other) in same {
            let text = format!(
                "is the same path as {}; write one of them only",
                Quoted(&other, '`')
            );
            self.fault(&["endpoints", &key], text);
        }
    }

    /// Every server has a path of its own, unless that is switched off.
    fn single_server_path(&mut self, config: &Config, key: &str, path: &EndpointPath) {
        let Some(name) = path.as_str().strip_prefix("/mcp/") else {
            return;
        };
        if config.single_server && config.servers.contains_key(name) {
            let text = format!(
                "is where the server `{name}` is served alone; write another path, or `single_server: false`"
            );
            self.fault(&["endpoints", key], text);
        }
    }

    fn known_servers(&mut self, key: &str) {
        let keys = ["endpoints", key, "servers"];
        let Some(Node {
            data: Data::List(items),
            ..
        }) = self.written(&keys)
        else {
            return;
        };
        let known: Vec<&str> = match self.written(&["servers"]) {
            Some(servers) => servers.entries().iter().map(|entry| &*entry.key).collect(),
            None => Vec::new(),
        };
        let ids: Vec<_> = items
            .iter()
            .map(|item| item.as_text().unwrap_or_default())
            .collect();
        let mut faults = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            if id.parse::<ServerId>().is_err() {
                // The reader has reported it.
            } else if ids[..index].contains(id) {
                faults.push((index, "stands here twice; write it once".to_owned()));
            } else if !known.contains(id) && !self.disabled.iter().any(|off| off == id) {
                let shown = items[index].is_shown();
                faults.push((index, no_server(shown.then_some(id), &known)));
            }
        }
        for (index, text) in faults {
            self.item_fault(&keys, index, text);
        }
    }
}

fn no_server(id: Option<&&str>, known: &[&str]) -> String {
    let Some(id) = id else {
        return "there is no server with the name that came from the environment".into();
    };
    let meant = did_you_mean(id, known.iter().copied());
    let advice = if meant.is_empty() {
        "; add it to `servers`".into()
    } else {
        meant
    };
    format!("there is no server `{id}`{advice}")
}
