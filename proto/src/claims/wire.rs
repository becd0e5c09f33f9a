//! The one way in which claims are written as bytes: every field is there, in the order of its number, lengths take as few bytes as
//! they can, and the members of an object are in the order of their names, each once.
//!
//! This is what most encoders write, save for the order of the outermost members, which those of other languages leave to chance.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The field `fields` of a Struct.
pub(super) const MEMBERS: u32 = 1;

/// The fields of a Struct, of its members, of a Value and of a ListValue: their numbers and wire types.
pub(super) mod key {
    pub(in crate::claims) const MEMBER: u8 = (1 << 3) | 2;
    pub(in crate::claims) const NAME: u8 = (1 << 3) | 2;
    pub(in crate::claims) const VALUE: u8 = (2 << 3) | 2;
    pub(in crate::claims) const NULL: u8 = 1 << 3;
    pub(in crate::claims) const NUMBER: u8 = (2 << 3) | 1;
    pub(in crate::claims) const TEXT: u8 = (3 << 3) | 2;
    pub(in crate::claims) const BOOL: u8 = 4 << 3;
    pub(in crate::claims) const OBJECT: u8 = (5 << 3) | 2;
    pub(in crate::claims) const LIST: u8 = (6 << 3) | 2;
    pub(in crate::claims) const ITEM: u8 = (1 << 3) | 2;
}

/// Lists and objects inside each other that are looked through here; what is deeper is left to prost, which counts too.
const DEPTH_MAX: usize = 16;

/// Bits of a length that this reads: no message is larger.
const LENGTH_BITS: u32 = 28;

/// The bytes are not written as they have to be.
#[derive(Debug)]
pub(super) struct Malformed;

/// What a Value says.
pub(super) enum Kind<'a> {
    Null,
    Bool(bool),
    Number(f64),
    /// UTF-8.
    Text(&'a [u8]),
    Object(&'a [u8]),
    List(&'a [u8]),
}

/// What the bytes of a Value say. That letters are UTF-8 is [`plain_member`]'s to know.
pub(super) fn kind(value: &[u8]) -> Option<Kind<'_>> {
    let (key, rest) = value.split_first()?;
    match (*key, rest) {
        (key::NULL, [0]) => Some(Kind::Null),
        (key::BOOL, [yes @ (0 | 1)]) => Some(Kind::Bool(*yes == 1)),
        (key::NUMBER, _) => Some(Kind::Number(f64::from_le_bytes(rest.try_into().ok()?))),
        (key::TEXT, _) => all(rest).map(Kind::Text),
        (key::OBJECT, _) => all(rest).map(Kind::Object),
        (key::LIST, _) => all(rest).map(Kind::List),
        _ => None,
    }
}

/// The members of an object: names and Values.
pub(super) fn members(object: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), Malformed>> {
    blocks(key::MEMBER, object).map(|member| member.and_then(|member| split(member).ok_or(Malformed)))
}

/// The Values of a list.
pub(super) fn items(list: &[u8]) -> impl Iterator<Item = Result<&[u8], Malformed>> {
    blocks(key::ITEM, list)
}

/// The member that `bytes` begin with, behind its key and with its length, if it is written as it has to be.
pub(super) fn plain_member(bytes: &[u8]) -> Option<&[u8]> {
    let (member, rest) = counted(bytes)?;
    let (name, value) = split(member)?;
    // Usually all of it is ASCII: then so are the letters in it.
    let are_letters = if member.is_ascii() {
        |_: &[u8]| true
    } else {
        is_utf8
    };
    (are_letters(name) && is_plain(value, are_letters, DEPTH_MAX)).then_some(())?;
    bytes.get(..bytes.len() - rest.len())
}

/// The name of the member that `bytes` begin with, behind its key.
pub(super) fn name(bytes: &[u8]) -> Option<&[u8]> {
    let (member, _) = counted(bytes)?;
    block(key::NAME, member).map(|(name, _)| name)
}

/// Adds a member that [`plain_member`] gave.
pub(super) fn put_member(object: &mut Vec<u8>, member: &[u8]) {
    object.push(key::MEMBER);
    object.extend_from_slice(member);
}

/// The members of an object in the order of their names, of each name the last.
pub(super) fn in_order(object: &[u8]) -> Cow<'_, [u8]> {
    if is_in_order(object) {
        return Cow::Borrowed(object);
    }
    let mut last: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    for member in blocks(key::MEMBER, object).filter_map(Result::ok) {
        last.extend(split(member).map(|(name, _)| (name, member)));
    }
    let mut ordered = Vec::with_capacity(object.len());
    for member in last.values() {
        ordered.push(key::MEMBER);
        put_length(&mut ordered, member.len());
        ordered.extend_from_slice(member);
    }
    Cow::Owned(ordered)
}

/// Writes a length.
pub(super) fn put_length(bytes: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short @ 0..0x80) => bytes.push(short),
        _ => prost::encoding::encode_varint(length as u64, bytes),
    }
}

/// Whether all of it is members, each behind those whose names are less: bytes of UTF-8 stand in the order of their letters.
fn is_in_order(object: &[u8]) -> bool {
    let mut before = None;
    blocks(key::MEMBER, object).all(|member| {
        let name = member.ok().and_then(|member| block(key::NAME, member));
        name.is_some_and(|(name, _)| before.replace(name).is_none_or(|before| before < name))
    })
}

fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

fn is_plain(value: &[u8], are_letters: fn(&[u8]) -> bool, depth: usize) -> bool {
    let is_inside = |value| is_plain(value, are_letters, depth - 1);
    match kind(value) {
        None => false,
        Some(Kind::Null | Kind::Bool(_) | Kind::Number(_)) => true,
        Some(Kind::Text(text)) => are_letters(text),
        Some(Kind::List(list)) => depth > 0 && items(list).all(|item| item.is_ok_and(is_inside)),
        Some(Kind::Object(object)) => {
            let is_member = |(name, value)| are_letters(name) && is_inside(value);
            depth > 0 && is_in_order(object) && members(object).all(|member| member.is_ok_and(is_member))
        }
    }
}

/// A member's name and Value.
fn split(member: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = block(key::NAME, member)?;
    let (value, rest) = block(key::VALUE, rest)?;
    rest.is_empty().then_some((name, value))
}

/// Fields with this key and nothing else; ends at the first that is malformed.
fn blocks(key: u8, bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], Malformed>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((content, after)) = block(key, rest) else {
            rest = &[];
            return Some(Err(Malformed));
        };
        rest = after;
        Some(Ok(content))
    })
}

/// The content of a field with this key, and what comes behind it.
fn block(key: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    (*found == key).then(|| counted(rest)).flatten()
}

/// What a length counts when nothing comes behind it.
fn all(bytes: &[u8]) -> Option<&[u8]> {
    counted(bytes).and_then(|(content, rest)| rest.is_empty().then_some(content))
}

/// What a length counts, and what comes behind.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, mut rest) = bytes.split_first()?;
    let mut length = usize::from(first & 0x7f);
    let (mut byte, mut shift) = (*first, 7);
    while byte >= 0x80 {
        (byte, rest) = rest.split_first().map(|(byte, rest)| (*byte, rest))?;
        // A last byte of nothing could have been left out.
        if shift >= LENGTH_BITS || byte == 0 {
            return None;
        }
        length |= usize::from(byte & 0x7f) << shift;
        shift += 7;
    }
    rest.split_at_checked(length)
}
