//! Names of keys, and what stands in index entries and leases.
//!
//! Names are written as their bytes: half the memory of their digits, which is most of what a session takes besides its
//! payload. What has a name of another kind is written as text, below another letter.
//!
//! An index has no key of its own, which would take more than its one usual entry: the first bits of its name say
//! which of 65,536 sorted sets it shares, and all but the first two bytes stand in front of its entries. A set has one or two members
//! in a small installation and some thirty at a million sessions, so it stays a compact list; larger installations have more sets
//! (`list_sets`).
//!
//! What is in a large set is in a second one as well, beside the shared one, that orders entries by creation: all scored
//! alike, so that a page is a range of their bytes (see `docs/decisions/lists.md`).

use base16ct::lower::encode_string;

use super::partitions;
use crate::store::inspect::KeySpace;
use crate::store::url::ListSets;
use crate::store::{Lease, LeaseName, Name, Record, RememberedName};

/// Makes key names below one prefix.
#[derive(Clone)]
pub(super) struct KeyNames {
    prefix: String,
    events: Vec<u8>,
    /// Over how many sets lists are divided: the first is written, all are read.
    list_sets: Vec<ListSets>,
}

/// Letters of keys; upper case where the name is text.
const RECORD: [u8; 2] = [b's', b'S'];
const INDEX: [u8; 2] = [b'i', b'I'];
const ORDER: u8 = b'o';
const LEASE: [u8; 2] = [b'l', b'L'];
const REMEMBERED: [u8; 2] = [b'm', b'M'];
const EVENTS: u8 = b'e';
const PROBE: u8 = b'w';

/// Bytes of an index's name that every set's key has, as far as they are not masked: what is left of a name, 112 bits of a hash,
/// distinguishes lists in a set.
const SET_BYTES: usize = 2;

/// Bytes of an index's name in front of its entries.
const BEGINNING_BYTES: usize = 16 - SET_BYTES;

/// Where an index is.
pub(super) struct IndexLocation {
    /// The sorted set it shares, scored by expiry.
    pub(super) key: Vec<u8>,
    /// The set beside it that orders entries by creation.
    pub(super) order: Vec<u8>,
    /// What its entries begin with.
    pub(super) begins: Vec<u8>,
}

impl KeyNames {
    pub(super) fn new(prefix: &str, list_sets: &[ListSets]) -> Self {
        let prefix = format!("{prefix}:");
        let mut events = prefix.clone().into_bytes();
        events.push(EVENTS);
        Self {
            prefix,
            events,
            list_sets: list_sets.to_vec(),
        }
    }

    /// What every key begins with.
    pub(super) fn prefix(&self) -> &[u8] {
        self.prefix.as_bytes()
    }

    fn key(&self, letter: u8, name: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + 1 + name.len());
        key.extend_from_slice(self.prefix());
        key.push(letter);
        key.extend_from_slice(name);
        key
    }

    pub(super) fn record(&self, name: Name) -> Vec<u8> {
        self.key(RECORD[0], name.as_bytes())
    }

    /// Key of the record an index entry's end names.
    pub(super) fn record_of(&self, end: &IndexMember) -> Vec<u8> {
        [self.prefix(), &end.0[CREATED_BYTES.min(end.0.len())..]].concat()
    }

    /// Where entries of an index are written.
    pub(super) fn index(&self, name: Name) -> IndexLocation {
        self.location(name, self.list_sets.first().copied().unwrap_or_default())
    }

    /// Where entries of an index are read, the place they are written first.
    pub(super) fn indexes(&self, name: Name) -> Vec<IndexLocation> {
        let sets = self.list_sets.iter();
        sets.map(|sets| self.location(name, *sets)).collect()
    }

    fn location(&self, name: Name, sets: ListSets) -> IndexLocation {
        // Half as many sets order entries by creation, as in every release.
        let [key, order] =
            [sets.bits(), sets.bits() - 1].map(|bits| first_bits(&name, sets.key_bytes(), bits));
        IndexLocation {
            key: self.key(INDEX[0], &key),
            order: self.key(ORDER, &order),
            begins: name.as_bytes()[SET_BYTES..].to_vec(),
        }
    }

    /// Of each number of sets: bytes of a name in their keys, and by how much what is left of the last of them is divided by.
    pub(super) fn set_names(&self) -> impl Iterator<Item = (usize, u32)> {
        self.list_sets.iter().map(|sets| {
            let cut = sets.key_bytes() as u32 * 8 - sets.bits();
            (sets.key_bytes(), 1 << cut)
        })
    }

    pub(super) fn lease(&self, name: LeaseName) -> Vec<u8> {
        match name {
            LeaseName::Named(name) => self.key(LEASE[0], name.as_bytes()),
            LeaseName::Refresh(_) => self.key(LEASE[1], name.to_string().as_bytes()),
        }
    }

    /// A lease's key that nobody ever writes.
    pub(super) fn nobodys_lease(&self) -> Vec<u8> {
        self.key(LEASE[1], b"nobody's")
    }

    /// What is written for replicas to acknowledge; nobody reads it.
    pub(super) fn probe(&self) -> Vec<u8> {
        self.key(PROBE, b"")
    }

    pub(super) fn remembered(&self, name: RememberedName) -> Vec<u8> {
        match name {
            RememberedName::Named(name) => self.key(REMEMBERED[0], name.as_bytes()),
            RememberedName::Ahead(_) => self.key(REMEMBERED[1], name.to_string().as_bytes()),
        }
    }

    /// The pattern that finds the keys of a key space. A prefix has no character that means something in one.
    pub(super) fn pattern(&self, key_space: KeySpace) -> String {
        let [bytes, text] = letters(key_space).map(char::from);
        format!("{}[{bytes}{text}]*", self.prefix)
    }

    /// The name in a key of a key space; of an index's key the part of the name that is in it. `None` if it is no key of ours.
    pub(super) fn name_in(&self, key_space: KeySpace, key: &[u8]) -> Option<String> {
        named(letters(key_space), key.strip_prefix(self.prefix())?)
    }

    /// The name of the index and the end of an entry that was found in the sorted set of this key.
    pub(super) fn found_in(&self, key: &[u8], member: &[u8]) -> Option<(String, IndexMember)> {
        let (&letter, set) = key.strip_prefix(self.prefix())?.split_first()?;
        if letter == INDEX[0] {
            let (rest, end) = member.split_at_checked(BEGINNING_BYTES)?;
            let name = [set.get(..SET_BYTES)?, rest].concat();
            return Some((encode_string(&name), IndexMember(end.to_vec())));
        }
        let (name, end) = text_name(member)?;
        Some((name, IndexMember(end.to_vec())))
    }

    /// The stream of events every release knows.
    pub(super) fn events(&self) -> &[u8] {
        &self.events
    }

    /// The streams of a cluster's events beside it, in the order of their slots.
    pub(super) fn event_partitions(&self) -> Vec<Vec<u8>> {
        let tags = partitions::tags().into_iter();
        tags.map(|tag| [&self.events[..], format!("{{{tag}}}").as_bytes()].concat())
            .collect()
    }
}

/// The first bits of a name, in so many bytes.
fn first_bits(name: &Name, bytes: usize, bits: u32) -> Vec<u8> {
    let mut first = name.as_bytes()[..bytes].to_vec();
    if let Some(last) = first.last_mut() {
        let [.., mask] = (u32::from(u8::MAX) << (bytes as u32 * 8 - bits)).to_be_bytes();
        *last &= mask;
    }
    first
}

fn letters(key_space: KeySpace) -> [u8; 2] {
    match key_space {
        KeySpace::Records => RECORD,
        KeySpace::Remembered => REMEMBERED,
        KeySpace::Indexes => INDEX,
    }
}

/// The name behind its letter, as a walk shows it.
fn named([bytes, text]: [u8; 2], lettered: &[u8]) -> Option<String> {
    let (&letter, name) = lettered.split_first()?;
    if letter == bytes {
        Some(encode_string(name))
    } else if letter == text {
        String::from_utf8(name.to_vec()).ok()
    } else {
        None
    }
}

/// The high bit of the length of an index's name: these are bytes and no text.
const IN_BYTES: u16 = 1 << 15;

/// The name of an index that stands at the beginning behind its length, as a set that no release writes might have it, and what
/// follows it.
fn text_name(member: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = member.split_first_chunk()?;
    let length = u16::from_be_bytes(*length);
    let (name, rest) = rest.split_at_checked(usize::from(length & !IN_BYTES))?;
    let name = if length & IN_BYTES == 0 {
        String::from_utf8(name.to_vec()).ok()?
    } else {
        encode_string(name)
    };
    Some((name, rest))
}

const CREATED_BYTES: usize = 8;

/// The end of an index entry: creation time, and the record's key without the prefix. Entries are ordered by it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IndexMember(pub(super) Vec<u8>);

impl IndexMember {
    pub(super) fn new(created_at_ms: u64, name: Name) -> Self {
        Self([&created_at_ms.to_be_bytes()[..], &RECORD[..1], name.as_bytes()].concat())
    }

    /// The entry of a record in one index, behind the index's own beginning.
    pub(super) fn member(record: &Record, location: &IndexLocation) -> Vec<u8> {
        [
            &location.begins[..],
            &Self::new(record.created_at_ms, record.name).0,
        ]
        .concat()
    }

    /// When the record was created; `None` if this is no entry of ours.
    pub(super) fn created_at_ms(&self) -> Option<u64> {
        self.0.first_chunk().map(|time| u64::from_be_bytes(*time))
    }

    /// Name of the record; `None` if this is no entry of ours.
    pub(super) fn name(&self) -> Option<Name> {
        let name = self.0.get(CREATED_BYTES..)?.strip_prefix(&RECORD[..1])?;
        name.try_into().ok().map(Name::from_bytes)
    }
}

/// The value of a held lease's key.
pub(super) fn held(lease: &Lease) -> String {
    format!("{}:{}", lease.serial, lease.holder)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::Handle;

    fn any_name() -> impl Strategy<Value = Name> {
        any::<[u8; 16]>().prop_map(Name::from_bytes)
    }

    proptest! {
        #[test]
        fn an_entry_names_its_record(created: u64, name in any_name()) {
            let keys = KeyNames::new("p", &[ListSets::default()]);
            let entry = IndexMember::new(created, name);
            prop_assert_eq!(entry.name(), Some(name));
            prop_assert_eq!(entry.created_at_ms(), Some(created));
            prop_assert_eq!(keys.record_of(&entry), keys.record(name));
        }

        #[test]
        fn no_two_indexes_share_a_beginning_in_a_set(one in any_name(), other in any_name()) {
            let keys = KeyNames::new("p", &[ListSets::default()]);
            let (one_at, other_at) = (keys.index(one), keys.index(other));
            if one != other && one_at.key == other_at.key {
                prop_assert!(!one_at.begins.starts_with(&other_at.begins));
            }
        }

        #[test]
        fn a_walk_reads_names_and_entries_back(created: u64, name in any_name(), index in any_name()) {
            let keys = KeyNames::new("p", &[ListSets::default()]);
            let key = keys.record(name);
            prop_assert_eq!(keys.name_in(KeySpace::Records, &key), Some(name.to_string()));
            prop_assert_eq!(keys.name_in(KeySpace::Remembered, &key), None);
            let (location, entry) = (keys.index(index), IndexMember::new(created, name));
            let member = [&location.begins[..], &entry.0].concat();
            let (found, end) = keys.found_in(&location.key, &member).unwrap();
            prop_assert_eq!(found, index.to_string());
            prop_assert!(end == entry);
        }

        #[test]
        fn no_two_names_share_a_key(one in any_name(), other in any_name()) {
            let keys = KeyNames::new("p", &[ListSets::default()]);
            if one != other {
                prop_assert_ne!(keys.record(one), keys.record(other));
            }
            prop_assert_ne!(keys.record(one), keys.lease(LeaseName::Named(one)));
        }
    }

    #[test]
    fn keys_are_those_of_every_release() {
        let (name, handle) = (
            Name::from_bytes(*b"0123456789abcdef"),
            Handle::from_bytes([0xab; 16]),
        );
        let keys = KeyNames::new("v", &[ListSets::default()]);
        let digits = "ab".repeat(16);
        for (key, expected) in [
            (keys.record(name), "v:s0123456789abcdef"),
            (keys.index(name).key, "v:i01"),
            (keys.index(name).order, "v:o00"),
            (keys.index(name).begins, "23456789abcdef"),
            (keys.lease(LeaseName::Named(name)), "v:l0123456789abcdef"),
            (
                keys.lease(LeaseName::Refresh(handle)),
                &format!("v:Lrefresh:{digits}"),
            ),
            (
                keys.remembered(RememberedName::Named(name)),
                "v:m0123456789abcdef",
            ),
            (
                keys.remembered(RememberedName::Ahead(handle)),
                &format!("v:Mahead:{digits}"),
            ),
        ] {
            assert_eq!(String::from_utf8(key).unwrap(), expected);
        }
    }

    #[test]
    fn more_sets_have_longer_names_and_the_same_entries() {
        let name = Name::from_bytes(*b"01\xff3456789abcdef");
        for (sets, key, order) in [
            ("65536", &b"v:i01"[..], &b"v:o00"[..]),
            ("131072", b"v:i01\x80", b"v:o01\x00"),
            ("4194304", b"v:i01\xfc", b"v:o01\xf8"),
            ("16777216", b"v:i01\xff", b"v:o01\xfe"),
        ] {
            let keys = KeyNames::new("v", &[sets.parse().unwrap()]);
            let location = keys.index(name);
            assert_eq!((&location.key[..], &location.order[..]), (key, order), "{sets}");
            assert_eq!(location.begins, b"\xff3456789abcdef");
            let member = [&location.begins[..], b"end"].concat();
            let (found, end) = keys.found_in(&location.key, &member).unwrap();
            assert_eq!((found, end.0), (name.to_string(), b"end".to_vec()));
        }
    }

    #[test]
    fn keys_of_hashes_stay_in_the_smallest_class_of_strings() {
        let name = Name::parse("0123456789abcdef0123456789abcdef").unwrap();
        let keys = KeyNames::new("vestibule", &[ListSets::default()]);
        assert!(keys.record(name).len() < 31);
        assert_eq!(keys.index(name).key.len(), 13);
        assert_eq!(keys.index(name).begins.len(), 14);
    }
}
