//! Names of keys, and the content of index entries and leases.
//!
//! Names are written as bytes, which take half the memory of their digits.
//!
//! An index has no key of its own, which would take more memory than its usual single entry. The first bits
//! of its name select one of 65,536 shared sorted sets; the other bits begin its entries. With a million
//! sessions a set has thirty entries and stays a compact list.
//!
//! A large set has a second set on the same node, which orders the entries by creation. All its scores are
//! equal, so that a page is a range of entry bytes (see `docs/decisions/lists.md`).

use super::partitions;
use crate::store::{IndexEntry, Lease, Name, Record};

/// Makes key names below one prefix.
#[derive(Clone)]
pub(super) struct KeyNames {
    prefix: Vec<u8>,
}

/// Letters that keys begin with.
const RECORD: u8 = b's';
const INDEX: u8 = b'i';
const ORDER: u8 = b'o';
const LEASE: u8 = b'l';
const REMEMBERED: u8 = b'm';
const EVENTS: u8 = b'e';
const PROBE: u8 = b'w';

/// Bytes of an index's name in a set's key. The others, 112 bits of a hash, distinguish the lists in a set.
const SET_BYTES: usize = 2;

/// The location of an index.
pub(super) struct IndexLocation {
    /// The shared sorted set, scored by expiry.
    pub(super) key: Vec<u8>,
    /// The second set, which orders entries by creation.
    pub(super) order: Vec<u8>,
    /// The prefix of its entries.
    pub(super) begins: Vec<u8>,
}

impl KeyNames {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: format!("{prefix}:").into_bytes(),
        }
    }

    /// The prefix of every key.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    fn key(&self, letter: u8, name: &[u8]) -> Vec<u8> {
        [&self.prefix, &[letter][..], name].concat()
    }

    pub(super) fn record(&self, name: Name) -> Vec<u8> {
        self.key(RECORD, name.as_bytes())
    }

    /// The location of an index's entries.
    pub(super) fn index(&self, name: Name) -> IndexLocation {
        let set = format!("{{{}}}", &name.digits()[..2 * SET_BYTES]);
        IndexLocation {
            key: self.key(INDEX, set.as_bytes()),
            order: self.key(ORDER, set.as_bytes()),
            begins: name.as_bytes()[SET_BYTES..].to_vec(),
        }
    }

    pub(super) fn lease(&self, name: Name) -> Vec<u8> {
        self.key(LEASE, name.as_bytes())
    }

    /// A lease's key that is never written.
    pub(super) fn nobodys_lease(&self) -> Vec<u8> {
        self.key(LEASE, b"nobody's")
    }

    /// Keys that `acknowledged` writes and removes at once. In a cluster, one next to each stream.
    pub(super) fn probes(&self, scattered: bool) -> Vec<Vec<u8>> {
        let probe = self.key(PROBE, b"");
        if scattered {
            in_partitions(&probe)
        } else {
            vec![probe]
        }
    }

    pub(super) fn remembered(&self, name: Name) -> Vec<u8> {
        self.key(REMEMBERED, name.as_bytes())
    }

    /// The stream of events, for one server or with Sentinels.
    pub(super) fn events(&self) -> Vec<u8> {
        self.key(EVENTS, b"")
    }

    /// The streams of a cluster's events, in the order of their slots.
    pub(super) fn event_partitions(&self) -> Vec<Vec<u8>> {
        in_partitions(&self.events())
    }
}

/// One key in each partition of a cluster.
fn in_partitions(begins: &[u8]) -> Vec<Vec<u8>> {
    let tags = partitions::tags().into_iter();
    tags.map(|tag| [begins, format!("{{{tag}}}").as_bytes()].concat())
        .collect()
}

/// Sorts after the bytes of every [`IndexEntry`]: it is one byte longer.
pub(super) const PAST_ANY_ENTRY: [u8; 25] = [u8::MAX; 25];

impl IndexLocation {
    /// The entry of a record in this index.
    pub(super) fn member(&self, record: &Record) -> Vec<u8> {
        let entry = IndexEntry {
            created_at_ms: record.created_at_ms,
            name: record.name,
        };
        [&self.begins[..], &entry.to_bytes()].concat()
    }
}

/// The value of a lease's key.
pub(super) fn lease_value(lease: &Lease) -> String {
    format!("{}:{}", lease.serial, lease.holder)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_name() -> impl Strategy<Value = Name> {
        any::<[u8; 16]>().prop_map(Name::from_bytes)
    }

    proptest! {
        #[test]
        fn an_entry_names_its_record(
            created_at_ms in prop_oneof![any::<u64>(), Just(u64::MAX)],
            name in prop_oneof![any_name(), Just(Name::from_bytes([u8::MAX; 16]))],
        ) {
            let entry = IndexEntry { name, created_at_ms };
            prop_assert_eq!(IndexEntry::from_bytes(&entry.to_bytes()), Some(entry));
            prop_assert!(entry.to_bytes() < PAST_ANY_ENTRY.to_vec());
        }

        #[test]
        fn no_two_indexes_share_a_beginning_in_a_set(one in any_name(), other in any_name()) {
            let keys = KeyNames::new("p");
            let (one_at, other_at) = (keys.index(one), keys.index(other));
            if one != other && one_at.key == other_at.key {
                prop_assert!(!one_at.begins.starts_with(&other_at.begins));
            }
        }

        #[test]
        fn no_two_names_share_a_key(one in any_name(), other in any_name()) {
            let keys = KeyNames::new("p");
            if one != other {
                prop_assert_ne!(keys.record(one), keys.record(other));
            }
            prop_assert_ne!(keys.record(one), keys.lease(one));
        }
    }

    #[test]
    fn keys_are_these() {
        let name = Name::from_bytes(*b"0123456789abcdef");
        let keys = KeyNames::new("v");
        for (key, expected) in [
            (keys.record(name), "v:s0123456789abcdef"),
            (keys.index(name).key, "v:i{3031}"),
            (keys.index(name).order, "v:o{3031}"),
            (keys.index(name).begins, "23456789abcdef"),
            (keys.lease(name), "v:l0123456789abcdef"),
            (keys.remembered(name), "v:m0123456789abcdef"),
        ] {
            assert_eq!(String::from_utf8(key).unwrap(), expected);
        }
    }

    #[test]
    fn keys_of_hashes_stay_in_the_smallest_class_of_strings() {
        let name = Name::parse("0123456789abcdef0123456789abcdef").unwrap();
        let keys = KeyNames::new("vestibule");
        assert!(keys.record(name).len() < 31);
        assert_eq!(keys.index(name).key.len(), 17);
        assert_eq!(keys.index(name).begins.len(), 14);
    }
}
