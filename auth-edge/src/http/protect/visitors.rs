//! How much of what there is one visitor may have at once.
//!
//! A visitor is an address, or a /64 network of IPv6. Beyond half of what an address may have, whoever is signed in is
//! counted by session instead: a company behind one address shares half of it, and each of its people has a share of their
//! own. The signature of the cookie proves a session, which costs no call; and up to that half it is not even looked at.
//!
//! Counts live in a table of fixed size, found by a keyed hash that differs in every process: two visitors that meet in one
//! slot share it. Deliberately absent: sharing between replicas, queues, and rates (`rate_limit`).

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use chassis::serve::network;

use crate::sessions::cookies::SessionId;

/// How many slots there are: 128 KiB, four for each request that may be worked on at once by default.
const SLOTS: usize = 16_384;

/// One address may have a quarter of what there is, so that it takes four of them to fill the edge.
const ADDRESS_PART: usize = 4;

/// One session may have a twentieth: at the shipped 512 requests 25, more than the six connections of a browser's HTTP/1.1.
const SESSION_PART: usize = 20;

/// The part of an address's share within which no cookie is verified.
const UNASKED: u32 = 2;

/// Requests of every visitor.
#[derive(Debug)]
pub(super) struct Visitors {
    slots: Box<[VisitorCounts]>,
    hasher: RandomState,
    share: VisitorShare,
}

/// How many requests of one visitor there may be, of each kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitorShare {
    /// Of an address.
    pub(crate) of_address: u32,
    /// Of a session.
    pub(crate) of_session: u32,
}

impl VisitorShare {
    /// The shares of `requests` at once, each at least one; without a limit (0) there is none for visitors.
    #[must_use]
    pub(crate) fn of(requests: usize) -> Self {
        let part = |part: usize| match requests {
            0 => u32::MAX,
            _ => u32::try_from(requests / part).unwrap_or(u32::MAX).max(1),
        };
        Self {
            of_address: part(ADDRESS_PART),
            of_session: part(SESSION_PART),
        }
    }
}

/// The connections that one address may have, of so many at once.
#[must_use]
pub(crate) fn connections_of_address(connections: usize) -> usize {
    (connections / ADDRESS_PART).max(1)
}

#[derive(Debug, Default)]
struct VisitorCounts {
    working: AtomicU32,
    waiting: AtomicU32,
}

/// Where a visitor is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisitorSlot(usize);

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPhase {
    /// All of it has come.
    Working,
    /// Its body has not.
    Waiting,
}

/// What a slot is found by.
#[derive(Hash)]
enum VisitorKey {
    Address(u128),
    Session([u8; 16]),
}

impl Visitors {
    /// Nobody is there yet.
    pub(super) fn new(share: VisitorShare) -> Self {
        Self {
            slots: (0..SLOTS).map(|_| VisitorCounts::default()).collect(),
            hasher: RandomState::new(),
            share,
        }
    }

    /// Counts a request of an address, or of the session `session` finds; none where they have their share.
    pub(super) fn enter(
        &self,
        address: IpAddr,
        session: impl FnOnce() -> Option<SessionId>,
        kind: RequestPhase,
    ) -> Option<VisitorSlot> {
        let of_address = self.slot(&VisitorKey::Address(network(address).to_bits()));
        let limit = self.share.of_address;
        let before = self.count(of_address, kind).fetch_add(1, Ordering::Relaxed);
        if before < limit.div_ceil(UNASKED) {
            return Some(of_address);
        }
        let Some(session) = session() else {
            return (before < limit).then_some(of_address).or_else(|| {
                self.leave(of_address, kind);
                None
            });
        };
        self.leave(of_address, kind);
        let of_session = self.slot(&VisitorKey::Session(session.to_bytes()));
        let before = self.count(of_session, kind).fetch_add(1, Ordering::Relaxed);
        if before < self.share.of_session {
            return Some(of_session);
        }
        self.leave(of_session, kind);
        None
    }

    /// The body of a visitor's request has come.
    pub(super) fn came(&self, visitor: VisitorSlot) {
        self.count(visitor, RequestPhase::Working)
            .fetch_add(1, Ordering::Relaxed);
        self.leave(visitor, RequestPhase::Waiting);
    }

    /// One more request of a visitor who has been let in.
    pub(super) fn again(&self, visitor: VisitorSlot) {
        self.count(visitor, RequestPhase::Working)
            .fetch_add(1, Ordering::Relaxed);
    }

    /// A request of a visitor has ended.
    pub(super) fn leave(&self, visitor: VisitorSlot, kind: RequestPhase) {
        self.count(visitor, kind).fetch_sub(1, Ordering::Relaxed);
    }

    fn slot(&self, key: &impl Hash) -> VisitorSlot {
        VisitorSlot(usize::try_from(self.hasher.hash_one(key)).unwrap_or_default() % SLOTS)
    }

    fn count(&self, VisitorSlot(at): VisitorSlot, kind: RequestPhase) -> &AtomicU32 {
        let slot = &self.slots[at];
        match kind {
            RequestPhase::Working => &slot.working,
            RequestPhase::Waiting => &slot.waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SHARE: VisitorShare = VisitorShare {
        of_address: 4,
        of_session: 2,
    };

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn session(number: u8) -> impl FnOnce() -> Option<SessionId> {
        move || Some(SessionId::from_bytes([number; 16]))
    }

    #[test]
    fn an_address_may_have_a_quarter_and_a_session_a_twentieth() {
        for (requests, shares) in [
            (512, (128, 25)),
            (8, (2, 1)),
            (1, (1, 1)),
            (0, (u32::MAX, u32::MAX)),
        ] {
            let share = VisitorShare::of(requests);
            assert_eq!((share.of_address, share.of_session), shares, "{requests}");
        }
        assert_eq!(connections_of_address(700), 175);
        assert_eq!(connections_of_address(3), 1);
    }

    #[test]
    fn an_address_has_its_share_and_no_more_and_others_have_theirs() {
        let visitors = Visitors::new(SHARE);
        let enter = |address: &str| visitors.enter(ip(address), || None, RequestPhase::Working);
        let entered: Vec<_> = (0..4).map(|_| enter("192.0.2.1").unwrap()).collect();
        for _ in 0..3 {
            assert!(enter("192.0.2.1").is_none(), "and refusals are not counted");
        }
        assert!(enter("192.0.2.2").is_some());
        assert!(enter("2001:db8::1").is_some());
        visitors.leave(entered[0], RequestPhase::Working);
        assert!(enter("192.0.2.1").is_some());
        assert!(enter("192.0.2.1").is_none());
        let waiting = visitors
            .enter(ip("192.0.2.1"), || None, RequestPhase::Waiting)
            .unwrap();
        visitors.came(waiting);
        visitors.leave(waiting, RequestPhase::Working);
        assert!(enter("192.0.2.1").is_none());
    }

    #[test]
    fn a_network_of_ipv6_is_one_visitor() {
        let visitors = Visitors::new(SHARE);
        for last in 0..4 {
            assert!(
                visitors
                    .enter(ip(&format!("2001:db8::{last}")), || None, RequestPhase::Working)
                    .is_some()
            );
        }
        assert!(
            visitors
                .enter(ip("2001:db8::ffff"), || None, RequestPhase::Working)
                .is_none()
        );
    }

    #[test]
    fn beyond_half_of_an_address_people_who_are_signed_in_have_their_own_share() {
        let visitors = Visitors::new(SHARE);
        let office = ip("192.0.2.1");
        for _ in 0..2 {
            assert!(
                visitors
                    .enter(office, || unreachable!("not asked"), RequestPhase::Working)
                    .is_some()
            );
        }
        // The table is hashed differently each time: people who meet in a slot are left out here.
        let mut slots = BTreeSet::from([visitors.slot(&VisitorKey::Address(network(office).to_bits())).0]);
        let alone = |person: &u8| slots.insert(visitors.slot(&VisitorKey::Session([*person; 16])).0);
        let people: Vec<u8> = (1..=u8::MAX).filter(alone).take(50).collect();
        assert_eq!(people.len(), 50);
        for &person in &people {
            assert!(
                visitors
                    .enter(office, session(person), RequestPhase::Working)
                    .is_some()
            );
            assert!(
                visitors
                    .enter(office, session(person), RequestPhase::Working)
                    .is_some()
            );
        }
        assert!(
            visitors
                .enter(office, session(people[0]), RequestPhase::Working)
                .is_none()
        );
        // Who is not signed in still has the other half.
        assert!(visitors.enter(office, || None, RequestPhase::Working).is_some());
        assert!(visitors.enter(office, || None, RequestPhase::Working).is_some());
        assert!(visitors.enter(office, || None, RequestPhase::Working).is_none());
    }
}
