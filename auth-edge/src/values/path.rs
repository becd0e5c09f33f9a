//! The one path normaliser: rules, upstreams and the file system use the same path.
//!
//! Invariant: all programs see the same segments in a [`RequestPath`], whether or not they decode, remove dot
//! segments, or split on `\` and `;` besides `/`. Other paths are rejected, not repaired. Or they come with their
//! [`readings`], and a rule has to match each of them.
//! Deliberately absent: the query, which is never read here.

mod readings;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The longest path accepted, in bytes: longer than real browser addresses, and cheap to check.
const MAX_PATH_BYTES: usize = 8_192;

/// Why a path is rejected, as the end of a sentence.
type Ambiguous = &'static str;

/// The percent-encoding is invalid, or does not encode UTF-8.
const MALFORMED: Ambiguous = "the path is not well-formed percent-encoded UTF-8";

/// The path has an encoded slash, backslash or semicolon, or an unencoded sign that some programs split on.
const SEPARATOR: Ambiguous = "the path holds a separator that programs read differently";

/// A path that every program reads alike, or one with all of its readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestPath {
    /// The original segments, still percent-encoded; `None` if equal to the decoded ones.
    encoded: Vec<Option<String>>,
    /// The same segments decoded; the last is empty if the path ends with a slash.
    decoded: Vec<String>,
    /// The segments that other programs would see; empty if every program sees the same.
    others: Vec<Vec<String>>,
}

impl RequestPath {
    /// Reads a raw request path, without its query. Also accepts what programs read differently: `%2F`,
    /// `%5C`, `\`, `;`, `//` or a double encoding. Such a path is kept unchanged, and has no dot segments.
    ///
    /// # Errors
    /// The reason, if not all readings are known.
    pub(crate) fn read(raw: &str) -> Result<Self, Ambiguous> {
        Self::parse(raw).or_else(|why| readings::of(raw).ok_or(why))
    }

    /// Reads a raw request path, without its query.
    ///
    /// Removes dot segments in any spelling (RFC 3986, section 5.2.4, after section 6.2.2.2). All else stays
    /// unchanged.
    ///
    /// # Errors
    /// The reason, if programs could read the path differently.
    pub(crate) fn parse(raw: &str) -> Result<Self, Ambiguous> {
        if raw.len() > MAX_PATH_BYTES {
            return Err("the path is too long");
        }
        let inner = raw
            .strip_prefix('/')
            .ok_or("the path does not begin with a slash")?;
        let mut encoded: Vec<Option<String>> = Vec::with_capacity(8);
        let mut decoded: Vec<String> = Vec::with_capacity(8);
        let mut segments = inner.split('/').peekable();
        while let Some(segment) = segments.next() {
            let last = segments.peek().is_none();
            let text = decode(segment)?;
            match &*text {
                "" if !last => return Err("the path has an empty segment"),
                "." | ".." => {
                    if text == ".." && encoded.pop().and(decoded.pop()).is_none() {
                        return Err("the path climbs above the root");
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

    /// The segments in each reading; the first is that of [`RequestPath::segments`].
    pub(crate) fn readings(&self) -> impl Iterator<Item = &[String]> {
        std::iter::once(self.segments()).chain(self.others.iter().map(Vec::as_slice))
    }

    /// The decoded segments, without the empty one after a trailing slash.
    pub(crate) fn segments(&self) -> &[String] {
        match self.decoded.split_last() {
            Some((last, rest)) if last.is_empty() => rest,
            _ => &self.decoded,
        }
    }

    /// The path to forward, still percent-encoded, without its first `strip` segments.
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

    /// Its first `count` segments, still percent-encoded; empty without segments.
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
    // All programs read unreserved characters alike (RFC 3986, section 2.3).
    if bytes
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~'))
    {
        return Ok(Cow::Borrowed(segment));
    }
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'%' && !is_escape(&bytes[at..]) {
            return Err(MALFORMED);
        }
    }
    let text = percent_decode_str(segment).decode_utf8().map_err(|_| MALFORMED)?;
    for (at, character) in text.char_indices() {
        match character {
            '/' | '\\' | ';' => return Err(SEPARATOR),
            '#' | '?' if segment.contains(character) => return Err(SEPARATOR),
            '%' if is_escape(&text.as_bytes()[at..]) => return Err("the path is percent-encoded twice"),
            _ if character.is_control() => return Err("the path holds a control character"),
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
    use super::RequestPath;
    use proptest::prelude::*;

    fn normalize(raw: &str) -> Result<String, &'static str> {
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
            assert_eq!(normalize(raw).as_deref(), Ok(raw), "{raw}");
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
            assert_eq!(normalize(raw).as_deref(), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn what_programs_read_differently_is_refused() {
        for (raw, reason) in [
            ("", "does not begin with a slash"),
            ("a", "does not begin with a slash"),
            ("*", "does not begin with a slash"),
            ("/..", "above the root"),
            ("/a/../..", "above the root"),
            ("/%2e%2e/x", "above the root"),
            ("//", "an empty segment"),
            ("//evil.example/x", "an empty segment"),
            ("/a//b", "an empty segment"),
            ("/public//../api", "an empty segment"),
            ("/a/%2fb", "a separator"),
            ("/a%2Fb", "a separator"),
            ("/public/..%2fapi", "a separator"),
            ("/a\\b", "a separator"),
            ("/a%5cb", "a separator"),
            ("/public/..%5Capi", "a separator"),
            ("/public/..;/api", "a separator"),
            ("/public;a=b/api", "a separator"),
            ("/public/..%3b/api", "a separator"),
            ("/api#/public", "a separator"),
            ("/a%00", "a control character"),
            ("/a%0d%0aX: y", "a control character"),
            ("/a%7f", "a control character"),
            ("/a%c2%85", "a control character"),
            ("/%252e%252e/api", "encoded twice"),
            ("/a%252fb", "encoded twice"),
            ("/a%25%32%66b", "encoded twice"),
            ("/a%2", "not well-formed"),
            ("/a%zz", "not well-formed"),
            ("/a%", "not well-formed"),
            ("/%c0%ae%c0%ae/api", "not well-formed"),
            ("/%ff", "not well-formed"),
            ("/a%u002e", "not well-formed"),
        ] {
            assert!(normalize(raw).unwrap_err().contains(reason), "{raw}");
        }
        let long = format!("/{}", "a".repeat(9_000));
        assert!(normalize(&long).unwrap_err().contains("too long"));
        assert!(RequestPath::read(&format!("{long}//")).is_err());
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
                // Marks a slash within a segment, to distinguish it from a separator.
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
