//! What no schema can say: which settings need, exclude or contradict each other.
//!
//! Runs on whatever could be read, so it asks the tree, not the settings, whether something was written: a value that
//! was wrong has been reported and must not be missed a second time.

mod endpoints;
mod servers;

use std::{path::Path as File, time::SystemTime};

use super::{
    auth::{Auth, Keys},
    fault::{Path, Position, Report},
    settings::Config,
    tree::{Data, Node},
    value::Address,
};

/// Checks the settings and completes those that follow from others.
pub(crate) fn check(
    config: &mut Config,
    top: &Node,
    disabled: &[String],
    ground: &Ground<'_>,
    report: &mut Report,
) {
    let mut check = Check {
        top,
        disabled,
        ground,
        report,
    };
    check.listeners(config);
    check.auth(config);
    check.servers(config);
    check.endpoints(config);
    check.paths(config);
}

/// What a check knows of the world.
pub(crate) struct Ground<'a> {
    /// The folder of the file.
    pub folder: &'a File,
    /// Whether the file is a desktop client's.
    pub lenient: bool,
    /// The time.
    pub now: SystemTime,
}

struct Check<'a> {
    top: &'a Node,
    /// Servers that are switched off.
    disabled: &'a [String],
    ground: &'a Ground<'a>,
    report: &'a mut Report,
}

impl Check<'_> {
    /// The place and the path of a value, or of what of the way to it was written.
    fn place(&self, keys: &[&str]) -> (Position, Path) {
        let (mut node, mut at, mut path) = (Some(self.top), self.top.at, Path::default());
        for key in keys {
            let entry = node.and_then(|node| node.entry(key));
            path = path.key(entry.map_or(key, |entry| &entry.written));
            at = entry.map_or(at, |entry| entry.at);
            node = entry.map(|entry| &entry.value);
        }
        (at, path)
    }

    fn written(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(self.top, |node, key| node.get(key))
    }

    fn fault(&mut self, keys: &[&str], text: impl Into<String>) {
        let (at, path) = self.place(keys);
        self.report.fault(at, &path, text);
    }

    /// A fault of an item of a list.
    fn item_fault(&mut self, keys: &[&str], index: usize, text: impl Into<String>) {
        let (at, path) = self.item_place(keys, index);
        self.report.fault(at, &path, text);
    }

    fn item_place(&self, keys: &[&str], index: usize) -> (Position, Path) {
        let (mut at, path) = self.place(keys);
        if let Some(Node {
            data: Data::List(items),
            ..
        }) = self.written(keys)
            && let Some(item) = items.get(index)
        {
            at = item.at;
        }
        (at, path.item(index))
    }

    fn warn(&mut self, keys: &[&str], text: impl Into<String>) {
        let (at, path) = self.place(keys);
        self.report.warn(at, &path, text);
    }

    fn listeners(&mut self, config: &Config) {
        let addresses = config.listen.addresses();
        let twice = |index: usize, address: &Address| {
            address.port() != 0 && addresses[..index].contains(address)
        };
        for (index, address) in addresses.iter().enumerate() {
            if twice(index, address) {
                self.item_fault(
                    &["listen"],
                    index,
                    format!("`{address}` stands here twice; write it once"),
                );
            }
        }
        if let Some(url) = &config.public_url
            && url.as_url().query().is_some()
        {
            self.fault(
                &["public_url"],
                "has a query; write it without the part from `?` on",
            );
        }
        let Some(admin) = &config.admin.listen else {
            return;
        };
        if admin.port() != 0 && addresses.contains(admin) {
            self.fault(
                &["admin", "listen"],
                format!("`{admin}` is in `listen` too; write another port"),
            );
        }
        let key_written = self.written(&["admin", "key"]).is_some();
        if !admin.is_loopback() && !key_written {
            let text = "other machines can reach it, so it needs a key; write `key: { env: DRAWBRIDGE_ADMIN_KEY }` \
                        beside it, or listen on `127.0.0.1:9090`";
            self.fault(&["admin", "listen"], text);
        }
        if config
            .admin
            .key
            .as_ref()
            .is_some_and(|key| key.expose().trim().is_empty())
        {
            self.fault(
                &["admin", "key"],
                "is empty; write a key, or leave it out on loopback",
            );
        }
    }

    fn auth(&mut self, config: &Config) {
        match &config.auth {
            None if !config.listen.is_loopback() && self.written(&["auth"]).is_none() => {
                let text = "other machines can reach it, so say who may: add a key to `auth.api_keys` \
                            (`drawbridge key new NAME` makes one), or write `auth: none` for everyone";
                self.fault(&["listen"], text);
            }
            None | Some(Auth::Open) => {}
            Some(Auth::Keys(keys)) => self.keys(keys),
        }
    }

    /// The entries that could be read are fewer than the written ones if some were wrong, so places go by name.
    fn keys(&mut self, keys: &Keys) {
        const LIST: [&str; 2] = ["auth", "api_keys"];
        if keys.api_keys.is_empty()
            && matches!(self.written(&LIST), Some(Node { data: Data::List(items), .. }) if items.is_empty())
        {
            self.warn(&LIST, "has no key, so no one can connect");
        }
        for (index, key) in keys.api_keys.iter().enumerate() {
            let before = &keys.api_keys[..index];
            let at = self.index_of_key(
                key.name.as_str(),
                before.iter().filter(|k| k.name == key.name).count(),
            );
            if before.iter().any(|other| other.name == key.name) {
                let text = format!(
                    "the name `{}` stands here twice; give every key a name of its own",
                    key.name
                );
                self.item_fault(&LIST, at, text);
            }
            if let Some(other) = before.iter().find(|other| other.sha256 == key.sha256) {
                let text = format!(
                    "is the same key as `{}`; make another with `drawbridge key new NAME`",
                    other.name
                );
                self.item_fault(&LIST, at, text);
            }
            if key
                .expires
                .is_some_and(|expiry| expiry.is_past(self.ground.now))
            {
                let (at, path) = self.item_place(&LIST, at);
                self.report.warn(
                    at,
                    &path,
                    format!("the key `{}` has expired and is not accepted", key.name),
                );
            }
        }
    }

    /// Where in the file the nth entry with a name stands.
    fn index_of_key(&self, name: &str, nth: usize) -> usize {
        let Some(Node {
            data: Data::List(items),
            ..
        }) = self.written(&["auth", "api_keys"])
        else {
            return 0;
        };
        let named = |item: &Node| item.get("name").and_then(Node::as_text) == Some(name);
        let found = items
            .iter()
            .enumerate()
            .filter(|(_, item)| named(item))
            .nth(nth);
        found.map_or(0, |(index, _)| index)
    }

    /// Paths are relative to the file that they stand in.
    fn paths(&mut self, config: &mut Config) {
        if let Some(tls) = &mut config.tls {
            tls.cert = self.ground.folder.join(&tls.cert);
            tls.key = self.ground.folder.join(&tls.key);
        }
    }
}
