//! What no schema can say: which settings need, exclude or contradict each other.
//!
//! Runs on whatever could be read, so it asks the tree, not the settings, whether something was written: a value that
//! was wrong has been reported and must not be missed a second time.

mod endpoints;
mod servers;

use std::{path::Path as File, time::SystemTime};

use super::{
    auth::Auth,
    fault::{Path, Position, Report},
    settings::Config,
    tree::{Data, Node},
    value::{Address, Expiry},
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

impl<'a> Check<'a> {
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

    fn written(&self, keys: &[&str]) -> Option<&'a Node> {
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
                self.item_fault(&["listen"], index, "stands here twice; write it once");
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
                "is in `listen` too; write another port",
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
            Some(Auth::Keys(_)) => self.keys(),
        }
    }

    /// Names and hashes are compared as they are written: an entry that is wrong elsewhere counts too.
    fn keys(&mut self) {
        const LIST: [&str; 2] = ["auth", "api_keys"];
        let Some(Node {
            data: Data::List(items),
            ..
        }) = self.written(&LIST)
        else {
            return;
        };
        if items.is_empty() {
            self.warn(&LIST, "has no key, so no one can connect");
            return;
        }
        // A hash may consist of digits only, and upper and lower case do not matter in it.
        let text = |index: usize, key: &str| match &items[index].get(key)?.data {
            Data::Text(text) if key == "sha256" => Some(text.text.to_lowercase()),
            Data::Text(text) => Some(text.text.clone()),
            Data::Number(written, _) => Some(written.clone()),
            _ => None,
        };
        let earlier = |index: usize, key: &str| {
            let own = text(index, key)?;
            (0..index).find(|other| text(*other, key).as_ref() == Some(&own))
        };
        for index in 0..items.len() {
            if let Some(other) = earlier(index, "name") {
                let text = format!(
                    "has the name of `api_keys[{other}]`; give every key a name of its own"
                );
                self.item_fault(&LIST, index, text);
            }
            if let Some(other) = earlier(index, "sha256") {
                let text = format!(
                    "is the same key as `api_keys[{other}]`; make another with `drawbridge key new NAME`"
                );
                self.item_fault(&LIST, index, text);
            }
            let expiry = text(index, "expires").and_then(|text| text.parse::<Expiry>().ok());
            if expiry.is_some_and(|expiry| expiry.is_past(self.ground.now)) {
                let (at, path) = self.item_place(&LIST, index);
                self.report
                    .warn(at, &path, "has expired and is not accepted");
            }
        }
    }

    /// Paths are relative to the file that they stand in.
    fn paths(&mut self, config: &mut Config) {
        if let Some(tls) = &mut config.tls {
            tls.cert = self.ground.folder.join(&tls.cert);
            tls.key = self.ground.folder.join(&tls.key);
        }
    }
}
