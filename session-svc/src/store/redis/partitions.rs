//! Divides the events of a cluster over its nodes.
//!
//! The 16,384 slots form one range of equal length per stream. A stream has the events of the records in its
//! range. Its key is in the slot in the middle. Clusters give their nodes long ranges of slots, so a stream
//! is almost always on the node of its records, and each node has its share of the streams.

use std::collections::HashMap;
use std::sync::LazyLock;

use redis::cluster_routing::Slot;

/// Streams of a cluster. All releases use this number, so it never changes.
pub(super) const PARTITIONS: usize = 32;

/// Slots of a cluster (Redis Cluster Specification, "Key distribution model").
const SLOTS: usize = 16_384;

/// Slots whose records share a stream.
const SLOTS_EACH: usize = SLOTS / PARTITIONS;

/// The numbers of slots; the client library does not expose them.
static NUMBERS: LazyLock<HashMap<Slot, u16>> = LazyLock::new(|| {
    let numbered = |number| Some((Slot::new(number)?, number));
    (0..).map_while(numbered).collect()
});

/// The number of a key's slot.
pub(super) fn slot_number(key: &[u8]) -> u16 {
    NUMBERS.get(&Slot::for_key(key)).copied().unwrap_or_default()
}

/// The partition of the record with this key.
pub(super) fn partition_of(key: &[u8]) -> usize {
    usize::from(slot_number(key)) / SLOTS_EACH
}

/// The partitions whose stream may be on the node of a record: the record's own and its two neighbours,
/// because a node's range of slots may begin or end within a partition.
pub(super) fn neighbours(partition: usize) -> [usize; 3] {
    let after = (partition + 1) % PARTITIONS;
    let before = (partition + PARTITIONS - 1) % PARTITIONS;
    [partition, after, before]
}

/// A hash tag for each partition: the first number whose slot is in the middle of the partition.
pub(super) fn tags() -> Vec<u32> {
    let mut tags = vec![None; PARTITIONS];
    let mut missing = PARTITIONS;
    for tag in 0_u32.. {
        let slot = usize::from(slot_number(tag.to_string().as_bytes()));
        let place = &mut tags[slot / SLOTS_EACH];
        if slot % SLOTS_EACH == SLOTS_EACH / 2 && place.is_none() {
            *place = Some(tag);
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    tags.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_in_the_middle_of_its_records() {
        let tags = tags();
        assert_eq!(tags.len(), PARTITIONS);
        for (partition, tag) in tags.iter().enumerate() {
            assert_eq!(
                partition_of(format!("vestibule:e{{{tag}}}").as_bytes()),
                partition
            );
        }
    }

    #[test]
    fn a_node_with_a_long_range_of_slots_has_a_stream_for_each_of_its_records() {
        let middle = |partition: usize| partition * SLOTS_EACH + SLOTS_EACH / 2;
        for nodes in 1..=20 {
            for slot in 0..SLOTS {
                let node = |slot: usize| slot * nodes / SLOTS;
                let near = neighbours(slot / SLOTS_EACH);
                let has_one = near.iter().any(|near| node(middle(*near)) == node(slot));
                assert!(has_one, "slot {slot} of {nodes} nodes");
            }
        }
    }
}
