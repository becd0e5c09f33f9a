//! Names of keys, and what stands in index entries and leases.
//!
//! Names are hashes, so they are written as the bytes their hexadecimal digits stand for: half the memory, which
//! is most of what a session takes besides its payload. A name that is no such digits stands as it is, below
//! another letter.
//!
//! An index has no key of its own, which would take more than its one usual entry: the first two bytes of its name say
//! which of 65,536 sorted sets it shares, and the rest stands in front of its entries. A set has one or two members
//! in a small installation and some thirty at a million sessions, so it stays a compact list.
//!
//! Entries of a record's first index are in a second set as well, beside the shared one, that orders them by creation: all scored
//! alike, so that a page is a range of their bytes (see `docs/decisions/lists.md`).

use crate::store::inspect::KeySpace;
use crate::store::{Lease, Record, codec};

/// Makes key names below one prefix.
#[derive(Clone)]
pub(super) struct KeyNames {
    prefix: String,
    events: Vec<u8>,
}

/// Letters of keys; upper case where the name is not packed.
const RECORD: [u8; 2] = [b's', b'S'];
const INDEX: [u8; 2] = [b'i', b'I'];
const ORDER: [u8; 2] = [b'o', b'O'];
const LEASE: [u8; 2] = [b'l', b'L'];
const REMEMBERED: [u8; 2] = [b'm', b'M'];
const EVENTS: u8 = b'e';

/// Bytes of an index's name that say which sorted set it is in.
const SET_BYTES: usize = 2;

/// The part of the second of them that says which set orders it: half as many sets, for they have half as many members. What
/// is left of a name, 112 bits of a hash, distinguishes lists in a set.
const ORDER_MASK: u8 = 0xfe;

/// How `codec` introduces a name of 16 packed bytes, as this service's all are.
const PACKED_HASH: &[u8] = &[0x80, 16];

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
    pub(super) fn new(prefix: &str) -> Self {
        let prefix = format!("{prefix}:");
        let mut events = prefix.clone().into_bytes();
        events.push(EVENTS);
        Self { prefix, events }
    }

    /// What every key begins with.
    pub(super) fn prefix(&self) -> &[u8] {
        self.prefix.as_bytes()
    }

    fn key(&self, letters: [u8; 2], name: &str) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + 1 + name.len());
        key.extend_from_slice(self.prefix());
        put_lettered(&mut key, letters, name);
        key
    }

    pub(super) fn record(&self, name: &str) -> Vec<u8> {
        self.key(RECORD, name)
    }

    /// Key of the record an index entry's end names.
    pub(super) fn record_of(&self, end: &IndexMember) -> Vec<u8> {
        [self.prefix(), &end.0[CREATED_BYTES.min(end.0.len())..]].concat()
    }

    pub(super) fn index(&self, name: &str) -> IndexLocation {
        let written = codec::index_name(name);
        let (head, bytes) = written.split_at(PACKED_HASH.len());
        let (set, rest) = bytes.split_at(SET_BYTES.min(bytes.len()));
        let (which, begins) = if head == PACKED_HASH {
            (0, rest.to_vec())
        } else {
            // Introduced by its length, so that no name is another's beginning.
            (1, written.clone())
        };
        let key = |letters: [u8; 2], set: &[u8]| [self.prefix(), &letters[which..=which], set].concat();
        let order = match *set {
            [first, second] if which == 0 => key(ORDER, &[first, second & ORDER_MASK]),
            _ => key(ORDER, set),
        };
        IndexLocation {
            key: key(INDEX, set),
            order,
            begins,
        }
    }

    pub(super) fn lease(&self, name: &str) -> Vec<u8> {
        self.key(LEASE, name)
    }

    pub(super) fn remembered(&self, name: &str) -> Vec<u8> {
        self.key(REMEMBERED, name)
    }

    /// The pattern that finds the keys of a key space. A prefix has no character that means something in one.
    pub(super) fn pattern(&self, key_space: KeySpace) -> String {
        let [packed, plain] = letters(key_space).map(char::from);
        format!("{}[{packed}{plain}]*", self.prefix)
    }

    /// The name in a key of a key space; of an index's key the part of the name that is in it. `None` if it is no key of ours.
    pub(super) fn name_in(&self, key_space: KeySpace, key: &[u8]) -> Option<String> {
        named(letters(key_space), key.strip_prefix(self.prefix())?)
    }

    /// The name of the index and the end of an entry that was found in the sorted set of this key.
    pub(super) fn found_in(&self, key: &[u8], member: &[u8]) -> Option<(String, IndexMember)> {
        let (&letter, set) = key.strip_prefix(self.prefix())?.split_first()?;
        if letter == INDEX[0] {
            let (rest, end) = member.split_at_checked(usize::from(PACKED_HASH[1]) - SET_BYTES)?;
            return Some((codec::unpack(&[set, rest].concat()), IndexMember(end.to_vec())));
        }
        let (name, end) = codec::read_index_name(member)?;
        Some((name, IndexMember(end.to_vec())))
    }

    pub(super) fn events(&self) -> &[u8] {
        &self.events
    }
}

fn letters(key_space: KeySpace) -> [u8; 2] {
    match key_space {
        KeySpace::Records => RECORD,
        KeySpace::Remembered => REMEMBERED,
        KeySpace::Indexes => INDEX,
    }
}

/// The name behind its letter.
fn named([packed, plain]: [u8; 2], lettered: &[u8]) -> Option<String> {
    let (&letter, name) = lettered.split_first()?;
    if letter == packed {
        Some(codec::unpack(name))
    } else if letter == plain {
        String::from_utf8(name.to_vec()).ok()
    } else {
        None
    }
}

/// Adds a name behind the letter that says how it is written.
fn put_lettered(key: &mut Vec<u8>, [packed, plain]: [u8; 2], name: &str) {
    if let Some(bytes) = codec::pack(name) {
        key.push(packed);
        key.extend_from_slice(&bytes);
    } else {
        key.push(plain);
        key.extend_from_slice(name.as_bytes());
    }
}

const CREATED_BYTES: usize = 8;

/// The end of an index entry: creation time, and the record's key without the prefix. Entries are ordered by it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IndexMember(pub(super) Vec<u8>);

impl IndexMember {
    pub(super) fn new(created_at_ms: u64, name: &str) -> Self {
        let mut entry = created_at_ms.to_be_bytes().to_vec();
        put_lettered(&mut entry, RECORD, name);
        Self(entry)
    }

    /// The entry of a record in one index, behind the index's own beginning.
    pub(super) fn member(record: &Record, location: &IndexLocation) -> Vec<u8> {
        [
            &location.begins[..],
            &Self::new(record.created_at_ms, &record.name).0,
        ]
        .concat()
    }

    /// When the record was created; `None` if this is no entry of ours.
    pub(super) fn created_at_ms(&self) -> Option<u64> {
        self.0.first_chunk().map(|time| u64::from_be_bytes(*time))
    }

    /// Name of the record; `None` if this is no entry of ours.
    pub(super) fn name(&self) -> Option<String> {
        named(RECORD, self.0.get(CREATED_BYTES..)?)
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

    fn any_name() -> impl Strategy<Value = String> {
        prop_oneof!["[0-9a-f]{32}", "[0-9a-f]{0,6}", "[ -~]{0,20}", any::<String>()]
    }

    proptest! {
        #[test]
        fn an_entry_names_its_record(created: u64, name in any_name()) {
            let keys = KeyNames::new("p");
            let entry = IndexMember::new(created, &name);
            prop_assert_eq!(entry.name(), Some(name.clone()));
            prop_assert_eq!(entry.created_at_ms(), Some(created));
            prop_assert_eq!(keys.record_of(&entry), keys.record(&name));
        }

        #[test]
        fn no_two_indexes_share_a_beginning_in_a_set(one in any_name(), other in any_name()) {
            let keys = KeyNames::new("p");
            let (one_at, other_at) = (keys.index(&one), keys.index(&other));
            if one != other && one_at.key == other_at.key {
                prop_assert!(!one_at.begins.starts_with(&other_at.begins));
            }
        }

        #[test]
        fn a_walk_reads_names_and_entries_back(created: u64, name in any_name(), index in any_name()) {
            let keys = KeyNames::new("p");
            let key = keys.record(&name);
            prop_assert_eq!(keys.name_in(KeySpace::Records, &key), Some(name.clone()));
            prop_assert_eq!(keys.name_in(KeySpace::Remembered, &key), None);
            let (location, entry) = (keys.index(&index), IndexMember::new(created, &name));
            let member = [&location.begins[..], &entry.0].concat();
            let (found, end) = keys.found_in(&location.key, &member).unwrap();
            prop_assert_eq!(found, index);
            prop_assert!(end == entry);
        }

        #[test]
        fn no_two_names_share_a_key(one in any_name(), other in any_name()) {
            let keys = KeyNames::new("p");
            if one != other {
                prop_assert_ne!(keys.record(&one), keys.record(&other));
            }
            prop_assert_ne!(keys.record(&one), keys.lease(&one));
        }
    }

    #[test]
    fn keys_of_hashes_stay_in_the_smallest_class_of_strings() {
        let name = "0123456789abcdef0123456789abcdef";
        let keys = KeyNames::new("vestibule");
        assert!(keys.record(name).len() < 31);
        assert_eq!(keys.index(name).key.len(), 13);
        assert_eq!(keys.index(name).begins.len(), 14);
    }
}
