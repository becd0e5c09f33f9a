//! The one path normaliser: what rules are matched against is what the upstream gets and what is looked up on disk.
//!
//! Invariant: two programs that read a [`RequestPath`] by any usual rule (with or without decoding, with or without
//! removing dot segments, splitting on `/` alone or on `\` and `;` too) see the same segments. A path for which that
//! is not so is refused, not repaired; or it comes with its [`readings`], and a rule has to take it in each of them.
//! Deliberately absent: the query; nothing here ever looks at it.

mod readings;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The longest path looked at, in bytes: longer than any browser's address bar is used for, short enough to be cheap.
const MAX_PATH_BYTES: usize = 8_192;

/// Why a path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ambiguous {
    /// It does not begin with a slash.
    #[error("the path does not begin with a slash")]
    NotAbsolute,
    /// It is longer than [`MAX_PATH_BYTES`].
    #[error("the path is too long")]
    TooLong,
    /// A percent sign is not followed by two hexadecimal digits, or what it encodes is not UTF-8.
    #[error("the path is not well-formed percent-encoded UTF-8")]
    Malformed,
    /// A slash, backslash or semicolon is hidden, or one that some programs split paths on stands in the open.
    #[error("the path holds a separator that programs read differently")]
    Separator,
    /// A control character, in the open or encoded.
    #[error("the path holds a control character")]
    Control,
    /// What is left after decoding would decode once more.
    #[error("the path is percent-encoded twice")]
    EncodedTwice,
    /// An empty segment that is not the last.
    #[error("the path has an empty segment")]
    EmptySegment,
    /// Dot segments climb above the root.
    #[error("the path climbs above the root")]
    AboveRoot,
}

/// A path every program reads alike, or one with all of its readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestPath {
    /// Segments as they came, still percent-encoded, where that is not how they read.
    encoded: Vec<Option<String>>,
    /// The same segments decoded; the last is empty if the path ends with a slash.
    decoded: Vec<String>,
    /// The segments that other programs would see; none where every program sees the same.
    others: Vec<Vec<String>>,
}

impl RequestPath {
    /// Reads a raw request path, without its query, also where it holds what programs read differently: `%2F`, `%5C`, `\`,
    /// `;`, `//` or a doubled encoding. Such a path is kept byte for byte, and no dot segment is in it.
    ///
    /// # Errors
    /// [`Ambiguous`] when not even all of its readings are known.
    pub(crate) fn read(raw: &str) -> Result<Self, Ambiguous> {
        match Self::parse(raw) {
            Err(why @ (Ambiguous::Separator | Ambiguous::EncodedTwice | Ambiguous::EmptySegment)) => {
                readings::of(raw).ok_or(why)
            }
            parsed => parsed,
        }
    }

    /// Reads a raw request path, without its query.
    ///
    /// Dot segments are removed in whatever spelling (RFC 3986, section 5.2.4, after section 6.2.2.2); everything
    /// else stays as it came.
    ///
    /// # Errors
    /// [`Ambiguous`] when programs could read the path differently.
    pub(crate) fn parse(raw: &str) -> Result<Self, Ambiguous> {
        if raw.len() > MAX_PATH_BYTES {
            return Err(Ambiguous::TooLong);
        }
        let inner = raw.strip_prefix('/').ok_or(Ambiguous::NotAbsolute)?;
        let mut encoded: Vec<Option<String>> = Vec::with_capacity(8);
        let mut decoded: Vec<String> = Vec::with_capacity(8);
        let mut segments = inner.split('/').peekable();
        while let Some(segment) = segments.next() {
            let last = segments.peek().is_none();
            let text = decode(segment)?;
            match &*text {
                "" if !last => return Err(Ambiguous::EmptySegment),
                "." | ".." => {
                    if text == ".." && encoded.pop().and(decoded.pop()).is_none() {
                        return Err(Ambiguous::AboveRoot);
                    }
                    if last {
                        encoded.push(None);
                        decoded.push(String::new());
                    }
                }
                _ => {
                    encoded.push((*text != *segment).then(|| segment.to_owned()));
                    decoded.push(text.into_owned());
                }
            }
        }
        Ok(Self {
            encoded,
            decoded,
            others: Vec::new(),
        })
    }

    /// Whether programs could read the path differently.
    pub(crate) fn is_ambiguous(&self) -> bool {
        !self.others.is_empty()
    }

    /// The segments by every reading, that of [`RequestPath::segments`] first.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &[String]> {
        std::iter::once(self.segments()).chain(self.others.iter().map(Vec::as_slice))
    }

    /// The decoded segments that name something: without the empty one a closing slash leaves.
    pub(crate) fn segments(&self) -> &[String] {
        match self.decoded.split_last() {
            Some((last, rest)) if last.is_empty() => rest,
            _ => &self.decoded,
        }
    }

    /// The path to send on, still percent-encoded, without its first `strip` segments.
    pub(crate) fn to_encoded(&self, strip: usize) -> String {
        let mut path = String::with_capacity(64);
        for (encoded, decoded) in self.encoded.iter().zip(&self.decoded).skip(strip) {
            path.push('/');
            path.push_str(encoded.as_ref().unwrap_or(decoded));
        }
        if path.is_empty() {
            path.push('/');
        }
        path
    }

    /// Its first `count` segments, still percent-encoded; empty if there are none.
    pub(crate) fn leading(&self, count: usize) -> String {
        let encoded = self.encoded.iter().zip(&self.decoded).take(count);
        encoded.fold(String::new(), |path, (encoded, decoded)| {
            path + "/" + encoded.as_ref().unwrap_or(decoded)
        })
    }

    /// The last segment, decoded; empty if the path ends with a slash.
    pub(crate) fn last(&self) -> &str {
        self.decoded.last().map_or("", String::as_str)
    }
}

fn decode(segment: &str) -> Result<Cow<'_, str>, Ambiguous> {
    let bytes = segment.as_bytes();
    // Unreserved characters mean themselves to everybody (RFC 3986, section 2.3).
    if bytes
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~'))
    {
        return Ok(Cow::Borrowed(segment));
    }
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'%' && !is_escape(&bytes[at..]) {
            return Err(Ambiguous::Malformed);
        }
    }
    let text = percent_decode_str(segment)
        .decode_utf8()
        .map_err(|_| Ambiguous::Malformed)?;
    for (at, character) in text.char_indices() {
        match character {
            '/' | '\\' | ';' => return Err(Ambiguous::Separator),
            '#' | '?' if segment.contains(character) => return Err(Ambiguous::Separator),
            '%' if is_escape(&text.as_bytes()[at..]) => return Err(Ambiguous::EncodedTwice),
            _ if character.is_control() => return Err(Ambiguous::Control),
            _ => {}
        }
    }
    Ok(text)
}

fn is_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::{Ambiguous, RequestPath};
    use proptest::prelude::*;

    fn sent(raw: &str) -> Result<String, Ambiguous> {
        RequestPath::parse(raw).map(|path| path.to_encoded(0))
    }

    #[test]
    fn plain_paths_stay_as_they_came() {
        for raw in [
            "/",
            "/a",
            "/a/",
            "/a/b%20c",
            "/a/%E2%82%AC",
            "/tags/c%23",
            "/a/..b",
            "/a/.b/...",
            "/a:b@c,d",
            "/100%25",
        ] {
            assert_eq!(sent(raw).as_deref(), Ok(raw), "{raw}");
        }
    }

    #[test]
    fn dot_segments_are_removed_in_every_spelling() {
        for (raw, expected) in [
            ("/public/../api", "/api"),
            ("/public/%2e%2e/api", "/api"),
            ("/public/%2E./api/", "/api/"),
            ("/public/.%2e/api", "/api"),
            ("/./api", "/api"),
            ("/a/%2e/b", "/a/b"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/a/..", "/"),
            ("/..a/b", "/..a/b"),
        ] {
            assert_eq!(sent(raw).as_deref(), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn what_programs_read_differently_is_refused() {
        for (raw, reason) in [
            ("", Ambiguous::NotAbsolute),
            ("a", Ambiguous::NotAbsolute),
            ("*", Ambiguous::NotAbsolute),
            ("/..", Ambiguous::AboveRoot),
            ("/a/../..", Ambiguous::AboveRoot),
            ("/%2e%2e/x", Ambiguous::AboveRoot),
            ("//", Ambiguous::EmptySegment),
            ("//evil.example/x", Ambiguous::EmptySegment),
            ("/a//b", Ambiguous::EmptySegment),
            ("/public//../api", Ambiguous::EmptySegment),
            ("/a/%2fb", Ambiguous::Separator),
            ("/a%2Fb", Ambiguous::Separator),
            ("/public/..%2fapi", Ambiguous::Separator),
            ("/a\\b", Ambiguous::Separator),
            ("/a%5cb", Ambiguous::Separator),
            ("/public/..%5Capi", Ambiguous::Separator),
            ("/public/..;/api", Ambiguous::Separator),
            ("/public;a=b/api", Ambiguous::Separator),
            ("/public/..%3b/api", Ambiguous::Separator),
            ("/api#/public", Ambiguous::Separator),
            ("/a%00", Ambiguous::Control),
            ("/a%0d%0aX: y", Ambiguous::Control),
            ("/a%7f", Ambiguous::Control),
            ("/a%c2%85", Ambiguous::Control),
            ("/%252e%252e/api", Ambiguous::EncodedTwice),
            ("/a%252fb", Ambiguous::EncodedTwice),
            ("/a%25%32%66b", Ambiguous::EncodedTwice),
            ("/a%2", Ambiguous::Malformed),
            ("/a%zz", Ambiguous::Malformed),
            ("/a%", Ambiguous::Malformed),
            ("/%c0%ae%c0%ae/api", Ambiguous::Malformed),
            ("/%ff", Ambiguous::Malformed),
            ("/a%u002e", Ambiguous::Malformed),
        ] {
            assert_eq!(sent(raw), Err(reason), "{raw}");
        }
        assert_eq!(sent(&format!("/{}", "a".repeat(9_000))), Err(Ambiguous::TooLong));
    }

    #[test]
    fn a_path_that_programs_read_differently_is_kept_as_it_came_with_all_of_its_readings() {
        for (raw, readings) in [
            (
                "/api/projects/a%2Fb",
                &["api/projects/a%2Fb", "api/projects/a/b"][..],
            ),
            ("/@scope%2fpkg", &["@scope%2Fpkg", "@scope/pkg"]),
            (
                "/api/queues/%2F/name",
                &["api/queues/%2F/name", "api/queues/name"],
            ),
            ("/a;v=1/b", &["a;v=1/b", "a/v=1/b", "a/b", "a"]),
            ("/a//b", &["a//b", "a/b"]),
            ("/a%5Cb", &["a\\b", "a/b"]),
            ("/a\\b", &["a\\b", "a/b"]),
            ("/a%252Fb", &["a%2Fb", "a/b"]),
            ("/a/%253B", &["a/%3B", "a/;", "a"]),
        ] {
            assert!(RequestPath::parse(raw).is_err(), "{raw}");
            let path = RequestPath::read(raw).expect(raw);
            assert_eq!(path.to_encoded(0), raw);
            let shown = |segments: &[String]| -> String {
                // A slash within a segment, so that it can be told from one between two.
                let segments: Vec<String> = segments.iter().map(|one| one.replace('/', "%2F")).collect();
                segments.join("/")
            };
            let found: Vec<String> = path.readings().map(shown).collect();
            for reading in readings {
                assert!(found.iter().any(|found| found == reading), "{raw}: {found:?}");
            }
        }
    }

    #[test]
    fn a_path_with_a_hidden_dot_segment_or_a_control_character_has_no_readings() {
        for raw in [
            "/public/..%2fapi",
            "/public/..%5Capi",
            "/public/..;/api",
            "/public/%2e%2e;x/api",
            "/public//../api",
            "/public/x%2f%252e%252e%2fapi",
            "/public/%25252e%25252e/x;",
            "/a/.;/b",
            "/a//./b",
            "/a%2f%00",
            "/a%2f%0d%0aX",
            "/a%2f%250a",
            "/a%2f%zz",
            "/a;%ff",
            "/a;#b",
            "/a/%25252525252F",
            "a//b",
        ] {
            assert!(RequestPath::read(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn stripping_drops_whole_segments_and_keeps_the_rest_as_it_came() {
        let path = RequestPath::parse("/api/orders/a%20b/").expect("a plain path");
        assert_eq!(path.to_encoded(2), "/a%20b/");
        assert_eq!(path.to_encoded(9), "/");
        assert_eq!(path.segments(), ["api", "orders", "a b"]);
        assert_eq!(path.last(), "");
    }

    proptest! {
        #[test]
        fn an_ambiguous_path_is_sent_on_byte_for_byte_without_dot_segments(raw in "/[a-z./%2Ff5cC;\\\\]{0,24}") {
            let ambiguous = RequestPath::read(&raw).ok().filter(RequestPath::is_ambiguous);
            if let Some(path) = ambiguous {
                prop_assert_eq!(path.to_encoded(0), &*raw);
                for reading in path.readings() {
                    prop_assert!(reading.iter().all(|one| one != "." && one != ".."));
                }
            }
        }

        #[test]
        fn reading_what_is_sent_on_gives_the_same_path(raw in "/[a-z./%25;\\\\]{0,24}") {
            if let Ok(path) = RequestPath::parse(&raw) {
                let again = RequestPath::parse(&path.to_encoded(0)).expect("what is sent on is never ambiguous");
                prop_assert_eq!(again.segments(), path.segments());
                prop_assert_eq!(again.to_encoded(0), path.to_encoded(0));
                prop_assert!(path.segments().iter().all(|one| one != "." && one != ".." && !one.is_empty()));
            }
        }
    }
}
