//! Does a URI come from a template? (RFC 6570, as far as routing needs it.)
//!
//! The client expands a template by itself; the gateway only has to find the
//! server that offered it. A simple expression never expands to a `/`, the
//! reserved and path kinds may.

/// A URI template taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// Any run of characters but `/`.
    Simple,
    /// Any run of characters.
    Wide,
}

impl Template {
    /// `None` for a text whose braces do not match.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            if rest.as_bytes()[open] == b'}' {
                return None;
            }
            if open > 0 {
                parts.push(Part::Literal(rest[..open].to_owned()));
            }
            let close = rest[open..].find('}')? + open;
            let expression = &rest[open + 1..close];
            let wide = expression.starts_with(['+', '#', '/', '.', ';', '?', '&'])
                || expression.ends_with('*');
            parts.push(if wide { Part::Wide } else { Part::Simple });
            rest = &rest[close + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Some(Self { parts })
    }

    pub fn matches(&self, uri: &str) -> bool {
        matches(&self.parts, uri)
    }

    /// How many characters stand fixed: of two templates that match, the one with more is meant.
    pub fn weight(&self) -> usize {
        let literal = |p: &Part| match p {
            Part::Literal(text) => text.len(),
            _ => 0,
        };
        self.parts.iter().map(literal).sum()
    }
}

/// Greedy with one point of return, as shell patterns are matched: linear in practice, quadratic at worst.
fn matches(parts: &[Part], uri: &str) -> bool {
    let mut reach = vec![false; uri.len() + 1];
    reach[0] = true;
    for part in parts {
        let mut next = vec![false; uri.len() + 1];
        match part {
            Part::Literal(text) => {
                for at in (0..=uri.len()).filter(|&i| reach[i]) {
                    if uri.as_bytes()[at..].starts_with(text.as_bytes()) {
                        next[at + text.len()] = true;
                    }
                }
            }
            Part::Simple | Part::Wide => {
                let mut open = false;
                for at in 0..=uri.len() {
                    open |= reach[at];
                    next[at] = open;
                    if *part == Part::Simple && uri.as_bytes().get(at) == Some(&b'/') {
                        open = false;
                    }
                }
            }
        }
        reach = next;
    }
    reach[uri.len()]
}

/// The scheme of a URI, lower-case; `None` where there is none.
pub fn scheme(uri: &str) -> Option<String> {
    let (scheme, _) = uri.split_once(':')?;
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(good);
    fits.then(|| scheme.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansions_match_and_others_do_not() {
        for (template, uri, want) in [
            ("file:///p/{id}.txt", "file:///p/7.txt", true),
            ("file:///p/{id}.txt", "file:///p/a/b.txt", false),
            ("file:///p/{+id}.txt", "file:///p/a/b.txt", true),
            ("travel://flights/{from}/{to}", "travel://flights/a/b", true),
            ("travel://flights/{from}/{to}", "travel://flights/a", false),
            ("x://{a}{?q,r}", "x://one?q=1&r=2", true),
            ("x://{path*}", "x://a/b/c", true),
            ("plain://uri", "plain://uri", true),
            ("a{b}a{c}a", "aaaa", true),
        ] {
            assert_eq!(
                Template::parse(template).unwrap().matches(uri),
                want,
                "{template} {uri}"
            );
        }
        assert_eq!(Template::parse("x://{a"), None);
        assert_eq!(Template::parse("x://}a"), None);
    }

    #[test]
    fn schemes() {
        assert_eq!(scheme("File:///x").as_deref(), Some("file"));
        assert_eq!(scheme("no scheme"), None);
        assert_eq!(scheme("1a:b"), None);
    }
}
