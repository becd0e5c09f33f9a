//! A key ring: all keys verify signatures and open sealed values; one of them signs and seals.
//!
//! Replicas receive a changed file at different times. A new key from a file therefore waits before it signs,
//! until every replica has it. A key that was in the ring when the process started signs at once.

/// Milliseconds that a key from a changed file waits before it signs and seals. The kubelet delivers a
/// changed Secret to every pod within 60 to 90 s. A replica reads its files every 5 s.
pub const NEW_KEY_WAIT_MS: u64 = 120_000;

/// Keys in the order of their list. The first key whose wait is over signs.
#[derive(Clone, Debug)]
pub struct Ring<K>(Vec<Member<K>>);

#[derive(Clone, Debug)]
struct Member<K> {
    key: K,
    signs_from_ms: u64,
}

impl<K> Ring<K> {
    /// The ring a process starts with.
    pub fn at_start(keys: impl IntoIterator<Item = K>) -> Self {
        let members = keys.into_iter().map(|key| Member {
            key,
            signs_from_ms: 0,
        });
        Self(members.collect())
    }

    /// The ring after its file changed, at `now_ms` of the monotonic clock. The wait of known keys does not restart.
    #[must_use]
    pub fn replaced_by(&self, new: Self, is_same: impl Fn(&K, &K) -> bool, now_ms: u64) -> Self {
        let members = new.0.into_iter().map(|Member { key, .. }| {
            let known = self.0.iter().find(|member| is_same(&member.key, &key));
            let signs_from_ms = known.map_or(now_ms.saturating_add(NEW_KEY_WAIT_MS), |known| {
                known.signs_from_ms
            });
            Member { key, signs_from_ms }
        });
        Self(members.collect())
    }

    /// The key that signs and seals at `now_ms`, and its place. If all keys are new, the first one signs.
    pub fn signing(&self, now_ms: u64) -> Option<(usize, &K)> {
        let place = self.0.iter().position(|member| member.signs_from_ms <= now_ms);
        let place = place.unwrap_or_default();
        Some((place, &self.0.get(place)?.key))
    }

    /// All keys. Each of them verifies and opens.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|member| &member.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(keys: &str) -> Ring<char> {
        Ring::at_start(keys.chars())
    }

    fn changed(before: &Ring<char>, keys: &str, now_ms: u64) -> Ring<char> {
        before.replaced_by(ring(keys), |one, other| one == other, now_ms)
    }

    fn signing(ring: &Ring<char>, now_ms: u64) -> char {
        *ring.signing(now_ms).unwrap().1
    }

    #[test]
    fn the_first_key_of_the_start_signs_at_once() {
        assert_eq!(signing(&ring("ab"), 0), 'a');
        assert!(ring("").signing(0).is_none());
    }

    #[test]
    fn a_new_first_key_verifies_at_once_and_signs_after_its_wait() {
        let after = changed(&ring("a"), "ba", 1_000);
        assert!(after.keys().any(|key| *key == 'b'));
        assert_eq!(signing(&after, 1_000), 'a');
        assert_eq!(signing(&after, 1_000 + NEW_KEY_WAIT_MS - 1), 'a');
        assert_eq!(signing(&after, 1_000 + NEW_KEY_WAIT_MS), 'b');
    }

    #[test]
    fn a_key_that_was_appended_before_signs_as_soon_as_it_moves_to_the_front() {
        let appended = changed(&ring("a"), "ab", 0);
        assert_eq!(signing(&appended, NEW_KEY_WAIT_MS), 'a');
        let moved = changed(&appended, "ba", NEW_KEY_WAIT_MS);
        assert_eq!(signing(&moved, NEW_KEY_WAIT_MS), 'b');
        let too_early = changed(&appended, "ba", 5_000);
        assert_eq!(signing(&too_early, 5_000), 'a');
        assert_eq!(signing(&too_early, NEW_KEY_WAIT_MS), 'b');
    }

    #[test]
    fn the_same_list_once_more_and_another_new_key_change_no_wait() {
        let first = changed(&ring("a"), "ba", 0);
        let again = changed(&first, "ba", 60_000);
        assert_eq!(signing(&again, NEW_KEY_WAIT_MS), 'b');
        let third = changed(&again, "cba", 90_000);
        assert_eq!(signing(&third, 90_000), 'a');
        assert_eq!(signing(&third, NEW_KEY_WAIT_MS), 'b');
        assert_eq!(signing(&third, 90_000 + NEW_KEY_WAIT_MS), 'c');
    }

    #[test]
    fn a_stolen_key_that_is_taken_out_signs_no_more() {
        let replaced = changed(&ring("a"), "b", 1_000);
        assert_eq!(signing(&replaced, 1_000), 'b');
        let dropped = changed(&changed(&ring("ab"), "cab", 0), "cb", 1_000);
        assert_eq!(signing(&dropped, 1_000), 'b');
    }
}
