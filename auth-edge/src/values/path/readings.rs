//! The possible readings of an ambiguous path.
//!
//! A rule matches such a path only if every reading leads to it. So the readings cover how programs differ: how often
//! they decode, whether `\` and `;` separate, whether `;` starts parameters, and whether empty segments count. Dot
//! segments, control characters and over [`MAX_DECODINGS`] encodings are rejected.

use percent_encoding::percent_decode_str;

use super::{MAX_PATH_BYTES, RequestPath, is_escape};

/// The most encodings of a path: one by the browser, and one or two by applications for their own names.
const MAX_DECODINGS: usize = 3;

/// The original path with all of its readings; `None` if they cannot be listed.
pub(super) fn of(raw: &str) -> Option<RequestPath> {
    let inner = raw.strip_prefix('/').filter(|_| raw.len() <= MAX_PATH_BYTES)?;
    let bytes = inner.as_bytes();
    let is_malformed = |(at, byte): (usize, &u8)| *byte == b'%' && !is_escape(&bytes[at..]);
    if inner.contains(['#', '?']) || bytes.iter().enumerate().any(is_malformed) {
        return None;
    }
    let once = decoded_once(inner)?;
    let plain = decoded(inner)?;
    let is_dots = |segment: &str| matches!(segment.trim(), "." | "..");
    if plain.split(['/', '\\', ';']).any(is_dots) {
        return None;
    }
    let as_sent: Vec<String> = inner.split('/').map(decoded_once).collect::<Option<_>>()?;
    let without_parameters: String = inner
        .split('/')
        .map(|one| before(one, ';'))
        .fold(String::new(), |path, segment| path + "/" + segment);
    let others = vec![
        named(as_sent.iter().map(String::as_str)),
        named(once.split('/')),
        named(plain.split(['/', '\\'])),
        named(plain.split(['/', '\\', ';'])),
        named(plain.split(['/', '\\']).map(|one| before(one, ';'))),
        named(before(&plain, ';').split(['/', '\\'])),
        named(decoded(&without_parameters)?.split(['/', '\\'])),
    ];
    let encoded = inner.split('/').zip(&as_sent);
    Some(RequestPath {
        encoded: encoded
            .map(|(sent, decoded)| (sent != decoded).then(|| sent.to_owned()))
            .collect(),
        decoded: as_sent,
        others,
    })
}

/// Decodes until nothing is left to decode.
fn decoded(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for _ in 0..=MAX_DECODINGS {
        let next = decoded_once(&text)?;
        if next == text {
            return Some(text);
        }
        text = next;
    }
    None
}

/// Decodes once; `None` if the result is not UTF-8, or holds a control character.
fn decoded_once(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?;
    (!text.chars().any(char::is_control)).then(|| text.into_owned())
}

/// The non-empty segments.
fn named<'a>(segments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let named = segments.filter(|segment| !segment.is_empty());
    named.map(str::to_owned).collect()
}

fn before(text: &str, end: char) -> &str {
    text.split(end).next().unwrap_or_default()
}
