//! What an operator may have meant by a key or a word that there is not.

use serde_json::Value;

use super::{Reader, expect};
use crate::config::fault::Quoted;

/// Keys of features that are planned: whoever writes one has read of it and should not look for a typing error.
const PLANNED: [&str; 14] = [
    "audit",
    "auth",
    "jwt",
    "oauth",
    "oidc",
    "otlp",
    "policy",
    "rate",
    "rate_limit",
    "rate_limits",
    "redis",
    "sandbox",
    "store",
    "traces",
];

/// What to say about a key that a map does not have.
pub(super) fn advice(reader: &Reader<'_>, key: &str, schema: &Value) -> String {
    let keys = schema["properties"].as_object();
    let keys: Vec<&str> = keys
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    if PLANNED.contains(&key) {
        return "is not available in this version".into();
    }
    if let Some(meant) = nearest(key, keys.iter().copied()) {
        return format!("is not a key here; did you mean `{meant}`?");
    }
    if let Some(deeper) = deeper(reader, key, schema) {
        return format!("is not a key here; did you mean `{deeper}`?");
    }
    const MOST: usize = 12;
    match keys.len() {
        0 => "is not a key here".into(),
        1..=MOST => format!(
            "is not a key here; possible are {}",
            expect::any_of(&keys).replace(" or ", " and ")
        ),
        _ => "is not a key here; `drawbridge schema` prints all that there are".into(),
    }
}

/// The only place further down where the key is known.
fn deeper(reader: &Reader<'_>, key: &str, schema: &Value) -> Option<String> {
    fn collect(
        reader: &Reader<'_>,
        key: &str,
        schema: &Value,
        path: &str,
        depth: usize,
        found: &mut Vec<String>,
    ) {
        for (name, value) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            if name == key {
                found.push(path);
            } else if depth > 0 {
                collect(reader, key, reader.resolve(value), &path, depth - 1, found);
            }
        }
    }
    let mut found = Vec::new();
    collect(reader, key, schema, "", 2, &mut found);
    match &found[..] {
        [one] => Some(one.clone()),
        _ => None,
    }
}

/// The word that differs least, if by no more than a third of it.
pub(super) fn nearest<'w>(written: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let plain = |word: &str| word.to_ascii_lowercase().replace(['-', ' '], "_");
    let written = plain(written);
    let most = (written.chars().count() / 3).clamp(1, 3);
    words
        .map(|word| (distance(&written, &plain(word)), word))
        .filter(|(distance, word)| *distance <= most && *distance < word.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let last = &rows[i - 1];
            let mut best = (last[j - 1] + usize::from(a[i - 1] != b[j - 1]))
                .min(last[j] + 1)
                .min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// A name that was probably meant, for a fault elsewhere.
pub(crate) fn did_you_mean<'w>(written: &str, words: impl Iterator<Item = &'w str>) -> String {
    match nearest(written, words) {
        Some(word) => format!("; did you mean {}?", Quoted(word, '`')),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_a_typing_error_away() {
        let words = ["timeout", "restarts", "backoff", "url"];
        for (written, meant) in [
            ("timout", Some("timeout")),
            ("tiemout", Some("timeout")),
            ("Time-out", Some("timeout")),
            ("restart", Some("restarts")),
            ("ulr", Some("url")),
            ("x", None),
            ("", None),
            ("policy", None),
        ] {
            assert_eq!(nearest(written, words.into_iter()), meant, "{written}");
        }
    }
}
