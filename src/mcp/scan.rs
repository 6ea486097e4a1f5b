//! One validating pass over JSON text that builds nothing.
//!
//! The gateway forwards bytes; all it needs to know of a message is where a few
//! members stand. This scanner accepts exactly what RFC 8259 allows (a property
//! test holds it against `serde_json`), counts depth, and hands out byte ranges.
//! It is not a parser: it never allocates and never decodes.

use std::num::NonZeroU32;

/// Deepest nesting the scanner can follow; [`Scanner::new`] may ask for less.
pub const MAX_DEPTH: u32 = 128;

/// Largest text it accepts, in bytes: spans are 32 bits wide.
pub const MAX_LEN: usize = u32::MAX as usize;

/// A byte range of the scanned text. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: NonZeroU32,
}

impl Span {
    fn new(start: usize, end: usize) -> Self {
        debug_assert!(start < end && end <= MAX_LEN);
        let end = NonZeroU32::new(end as u32).expect("a span ends after it starts");
        Self {
            start: start as u32,
            end,
        }
    }

    pub fn start(self) -> usize {
        self.start as usize
    }

    pub fn end(self) -> usize {
        self.end.get() as usize
    }

    pub fn range(self) -> std::ops::Range<usize> {
        self.start()..self.end()
    }

    /// A span of the text that this one covers, as a span of the whole.
    pub fn within(self, inner: Self) -> Self {
        Self::new(self.start() + inner.start(), self.start() + inner.end())
    }

    /// The bytes of `text` that this span covers.
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.range()]
    }
}

/// Why a text is not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    #[error("not JSON at byte {0}")]
    Syntax(usize),
    #[error("nested deeper than {0} levels")]
    Depth(u32),
    #[error("the key at byte {0} stands twice in its object")]
    Duplicate(usize),
    #[error("not UTF-8")]
    Encoding,
    #[error("longer than 4 GiB")]
    Length,
}

/// A key as it stands in the text, quotes left out.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    pub raw: &'a [u8],
    pub escaped: bool,
    pub at: usize,
}

impl Key<'_> {
    /// Whether the key, escapes decoded, is `name` (which must be plain ASCII).
    pub fn is(&self, name: &str) -> bool {
        if self.escaped {
            decode(self.raw).is_some_and(|k| k == name)
        } else {
            self.raw == name.as_bytes()
        }
    }
}

/// Decodes the inside of a JSON string (no quotes). `None` for a lone surrogate.
pub fn decode(raw: &[u8]) -> Option<String> {
    let mut quoted = Vec::with_capacity(raw.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(raw);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).ok()
}

pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
    max_depth: u32,
    /// No byte below 0x20 in the whole text: strings then end at a quote or have a backslash, and nothing else stops them.
    no_control: bool,
}

impl<'a> Scanner<'a> {
    /// `text` must be UTF-8, as [`check_text`] tells.
    pub fn new(text: &'a [u8], max_depth: u32) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            max_depth: max_depth.min(MAX_DEPTH),
            no_control: false,
        }
    }

    /// Tells what [`check_text`] found, which makes long strings quicker to pass.
    pub fn with(mut self, checked: Checked) -> Self {
        self.no_control = !checked.control;
        self
    }

    /// The whole text.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The next byte that is not white space, left in place.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.get(self.at).copied()
    }

    /// Fails unless only white space is left.
    pub fn end(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.syntax()),
        }
    }

    /// Reads an object; `member` must read each value with [`Scanner::value`], [`Scanner::object`] or [`Scanner::array`].
    pub fn object<F>(&mut self, mut member: F) -> Result<Span, ScanError>
    where
        F: FnMut(&mut Self, Key<'a>) -> Result<(), ScanError>,
    {
        self.skip_space();
        let start = self.at;
        self.open(b'{')?;
        if self.peek() == Some(b'}') {
            return Ok(self.close(start));
        }
        loop {
            self.skip_space();
            let key = self.key()?;
            self.skip_space();
            self.expect(b':')?;
            member(self, key)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => return Ok(self.close(start)),
                _ => return Err(self.syntax()),
            }
        }
    }

    /// Reads an array; `element` must read each element.
    pub fn array<F>(&mut self, mut element: F) -> Result<Span, ScanError>
    where
        F: FnMut(&mut Self) -> Result<(), ScanError>,
    {
        self.skip_space();
        let start = self.at;
        self.open(b'[')?;
        if self.peek() == Some(b']') {
            return Ok(self.close(start));
        }
        loop {
            element(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => return Ok(self.close(start)),
                _ => return Err(self.syntax()),
            }
        }
    }

    /// Passes over one value of any kind and tells where it stood.
    pub fn value(&mut self) -> Result<Span, ScanError> {
        self.skip_space();
        let start = self.at;
        match self.text.get(self.at) {
            Some(b'{' | b'[') => self.container()?,
            _ => self.scalar()?,
        }
        Ok(Span::new(start, self.at))
    }

    /// Like [`Scanner::value`], and fails on a key that stands twice in one object at any depth.
    pub fn value_without_duplicates(&mut self) -> Result<Span, ScanError> {
        match self.peek() {
            Some(b'{') => {
                let mut keys = std::collections::HashSet::new();
                self.object(|s, key| {
                    let name = decode(key.raw).ok_or(ScanError::Syntax(key.at))?;
                    if !keys.insert(name) {
                        return Err(ScanError::Duplicate(key.at));
                    }
                    s.value_without_duplicates().map(drop)
                })
            }
            Some(b'[') => self.array(|s| s.value_without_duplicates().map(drop)),
            _ => self.value(),
        }
    }

    /// A container, without recursion: one bit a level tells objects from arrays.
    fn container(&mut self) -> Result<(), ScanError> {
        let floor = self.depth;
        let mut objects: u128 = 0;
        loop {
            // At the start of a value, white space already passed.
            let opened = match self.text.get(self.at) {
                Some(b'{') => {
                    self.open(b'{')?;
                    objects = objects << 1 | 1;
                    true
                }
                Some(b'[') => {
                    self.open(b'[')?;
                    objects <<= 1;
                    true
                }
                _ => {
                    self.scalar()?;
                    false
                }
            };
            if opened {
                let closer = if objects & 1 == 1 { b'}' } else { b']' };
                if self.peek() != Some(closer) {
                    if closer == b'}' {
                        self.member_key()?;
                    }
                    continue;
                }
                self.at += 1;
                self.depth -= 1;
                objects >>= 1;
            }
            // After a value: close what ends here, or go on to the next one.
            loop {
                if self.depth == floor {
                    return Ok(());
                }
                let in_object = objects & 1 == 1;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        self.skip_space();
                        if in_object {
                            self.member_key()?;
                        }
                        break;
                    }
                    Some(b'}') if in_object => {}
                    Some(b']') if !in_object => {}
                    _ => return Err(self.syntax()),
                }
                self.at += 1;
                self.depth -= 1;
                objects >>= 1;
            }
        }
    }

    #[inline]
    fn member_key(&mut self) -> Result<(), ScanError> {
        self.key()?;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(())
    }

    fn open(&mut self, byte: u8) -> Result<(), ScanError> {
        self.expect(byte)?;
        self.depth += 1;
        if self.depth > self.max_depth {
            return Err(ScanError::Depth(self.max_depth));
        }
        Ok(())
    }

    fn close(&mut self, start: usize) -> Span {
        self.at += 1;
        self.depth -= 1;
        Span::new(start, self.at)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.text.get(self.at) == Some(&byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.syntax())
    }

    #[inline]
    fn key(&mut self) -> Result<Key<'a>, ScanError> {
        let at = self.at;
        let escaped = self.string()?;
        Ok(Key {
            raw: &self.text[at + 1..self.at - 1],
            escaped,
            at,
        })
    }

    #[inline]
    fn scalar(&mut self) -> Result<(), ScanError> {
        match self.text.get(self.at) {
            Some(b'"') => self.string().map(drop),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.syntax()),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), ScanError> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.syntax())
    }

    fn number(&mut self) -> Result<(), ScanError> {
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.syntax()),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while matches!(self.text.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.syntax());
        }
        Ok(())
    }

    /// Passes over a string and tells whether it holds an escape.
    #[inline]
    fn string(&mut self) -> Result<bool, ScanError> {
        self.expect(b'"')?;
        let mut escaped = false;
        loop {
            self.plain();
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.syntax()),
            }
        }
    }

    /// Moves to the next quote, backslash or control character, eight bytes at a time: most strings are short. Long ones go on in vector code.
    #[inline]
    fn plain(&mut self) {
        let from = self.at;
        while let Some(word) = self.text.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let stops = stops(u64::from_le_bytes(*word));
            if stops != 0 {
                self.at += (stops.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
            if self.no_control && self.at - from >= LONG {
                let rest = &self.text[self.at..];
                self.at += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                return;
            }
        }
        let rest = &self.text[self.at..];
        let stop = |b: &u8| matches!(b, b'"' | b'\\' | 0..0x20);
        self.at += rest.iter().position(stop).unwrap_or(rest.len());
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6);
                if digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                    self.at += 6;
                    return Ok(());
                }
                Err(self.syntax())
            }
            _ => Err(self.syntax()),
        }
    }

    #[inline]
    fn skip_space(&mut self) {
        // Compact text has no white space: one comparison then.
        while let Some(&byte) = self.text.get(self.at) {
            if byte > b' ' || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return;
            }
            self.at += 1;
        }
    }

    fn syntax(&self) -> ScanError {
        ScanError::Syntax(self.at)
    }
}

/// A string that goes on beyond this many bytes is passed by vector code.
const LONG: usize = 32;

/// The high bit of each byte of `word` that is a quote, a backslash or below 0x20; exact for the lowest such byte.
#[inline]
fn stops(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    let zero = |w: u64| w.wrapping_sub(ONES) & !w;
    let quote = zero(word ^ (ONES * b'"' as u64));
    let backslash = zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & (ONES * 0x80)
}

/// What [`check_text`] found out on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Some byte is below 0x20: a line break, say.
    pub control: bool,
}

/// Checks what must hold before scanning: UTF-8 and a length that spans can express.
pub fn check_text(text: &[u8]) -> Result<Checked, ScanError> {
    if text.len() > MAX_LEN {
        return Err(ScanError::Length);
    }
    // One pass without an early exit, which compiles to vector code; most texts are plain ASCII on one line.
    let (all, control) = text.iter().fold((0u8, false), |(all, control), &b| {
        (all | b, control | (b < 0x20))
    });
    if all >= 0x80 && std::str::from_utf8(text).is_err() {
        return Err(ScanError::Encoding);
    }
    Ok(Checked { control })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn accepts(text: &[u8]) -> Result<(), ScanError> {
        let checked = check_text(text)?;
        let mut scanner = Scanner::new(text, MAX_DEPTH).with(checked);
        scanner.value()?;
        scanner.end()
    }

    #[test]
    fn takes_what_json_allows_and_nothing_else() {
        for good in [
            "{}",
            "[]",
            " [ ] ",
            "0",
            "-0",
            "1e9",
            "-1.5E-7",
            "\"\\u00e9\\n\"",
            "null",
            "[[],{},[{}]]",
            "{\"a\":{\"b\":[1,2,{\"c\":null}]}}",
        ] {
            assert_eq!(accepts(good.as_bytes()), Ok(()), "{good}");
        }
        for bad in [
            "",
            "{",
            "}",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{,}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "tru",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "[1 2]",
            "{\"a\":1,}",
            "[}",
            "{]",
            "1 2",
            "\u{feff}{}",
            "nul",
            "[\"a\":1]",
            "{\"a\",1}",
            "'a'",
        ] {
            assert!(accepts(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert_eq!(accepts(nested(128).as_bytes()), Ok(()));
        assert_eq!(accepts(nested(129).as_bytes()), Err(ScanError::Depth(128)));
        assert_eq!(
            accepts("[".repeat(1_000_000).as_bytes()),
            Err(ScanError::Depth(128))
        );
    }

    #[test]
    fn duplicates_are_found_at_any_depth() {
        let check = |t: &str| Scanner::new(t.as_bytes(), 16).value_without_duplicates();
        assert!(check(r#"{"a":[{"b":1,"c":{"b":2}}]}"#).is_ok());
        assert!(matches!(
            check(r#"{"a":[{"b":1,"\u0062":2}]}"#),
            Err(ScanError::Duplicate(_))
        ));
    }

    /// JSON-like text: mostly valid fragments, shuffled, so that both outcomes are common.
    fn jsonish() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("{".to_owned()),
            Just("}".to_owned()),
            Just("[".to_owned()),
            Just("]".to_owned()),
            Just(",".to_owned()),
            Just(":".to_owned()),
            Just("\"a\"".to_owned()),
            Just("\"\\u0061\"".to_owned()),
            Just("1".to_owned()),
            Just("-2.5e+3".to_owned()),
            Just("0".to_owned()),
            Just("true".to_owned()),
            Just("null".to_owned()),
            Just(" ".to_owned()),
            Just("\n".to_owned()),
            "[ -~]{0,3}",
            "\\PC{0,2}",
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|p| p.concat())
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in jsonish()) {
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(accepts(text.as_bytes()).is_ok(), theirs, "{}", text);
        }

        #[test]
        fn a_long_string_ends_where_it_ends(a in "[a-zé]{0,80}", b in "[a-z]{0,80}") {
            let text = format!("[\"{a}\\\"{b}\" , 7]");
            let mut spans = Vec::new();
            let mut scanner = Scanner::new(text.as_bytes(), 8);
            scanner.array(|s| { spans.push(s.value()?); Ok(()) }).unwrap();
            let want = format!("\"{a}\\\"{b}\"");
            prop_assert_eq!(spans[0].of(text.as_bytes()), want.as_bytes());
            prop_assert_eq!(spans[1].of(text.as_bytes()), b"7");
        }
    }
}
