//! Keys for callers that have to be told apart.

use drawbridge::auth::new_key;

/// Keys for these names, and the `auth` of a configuration that lets them in.
pub fn keys(names: &[&str]) -> (String, Vec<String>) {
    let made: Vec<_> = names.iter().map(|name| (name, new_key())).collect();
    let entry = |(name, key): &(&&str, _)| {
        let key: &drawbridge::auth::NewKey = key;
        format!("{{ name: {name}, sha256: {:?} }}", key.sha256)
    };
    let entries: Vec<_> = made.iter().map(entry).collect();
    let yaml = format!("auth: {{ api_keys: [{}] }}\n", entries.join(", "));
    (yaml, made.into_iter().map(|(_, key)| key.key).collect())
}
