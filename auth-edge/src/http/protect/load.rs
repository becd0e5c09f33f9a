//! Bounds concurrent requests, in all and per visitor. The edge rejects a request above a limit with
//! `Retry-After`, before it costs anything.
//!
//! A visitor is an address or an IPv6 /64 network. Above half of an address's share, a signed-in user counts by
//! session. People behind one company address share the first half, and then each has a share of their own. The
//! cookie's signature proves the session without a call; the edge does not verify it in the first half.
//!
//! Among all requests, a request counts until its answer begins. For its visitor, it counts while it occupies
//! an HTTP/2 stream, an upstream connection or a WebSocket. Not supported: queues, since a visitor who waits
//! long has given up when the turn comes.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use chassis::serve::network;
use http_body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::{Share, Shares};
use crate::http::errors::{HttpError, Limit};
use crate::http::mapped_body::map_polls;
use crate::sessions::cookies::SessionId;

/// Seconds until a visitor above the share may retry: a place is free as soon as one request ends.
const RETRY_AFTER_SECS: u64 = 1;

/// One address may have a quarter of all requests, so that filling the edge takes four addresses.
const ADDRESS_PART: usize = 4;

/// One session may have a twentieth: 25 of 512 requests (with 128 MiB). A browser opens six HTTP/1.1 connections.
const SESSION_PART: usize = 20;

/// Up to half of an address's share, the edge verifies no cookie.
const UNASKED: u32 = 2;

/// The concurrent requests of one visitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientShares {
    /// For an address.
    pub(crate) of_address: u32,
    /// For a session.
    pub(crate) of_session: u32,
}

impl ClientShares {
    /// The shares of `requests` concurrent requests, each at least 1; 0 is no limit.
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

/// The connections that one address may have, if the edge accepts `connections` in all.
#[must_use]
pub(crate) fn connections_of_address(connections: usize) -> usize {
    (connections / ADDRESS_PART).max(1)
}

/// Bounds concurrent requests, in all and for each visitor. Clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct ConcurrencyLimit {
    permits: Arc<Semaphore>,
    visitors: Arc<Shares>,
    share: ClientShares,
}

/// A request that the edge works on.
#[derive(Debug)]
pub(crate) struct AdmissionPermit {
    /// The request's place among all, until dropped.
    pub(crate) permit: OwnedSemaphorePermit,
    /// The place in its visitor's share.
    pub(crate) visitor: Share,
}

impl ConcurrencyLimit {
    /// Allows `count` requests in all (0 is no limit) and `share` for each visitor.
    #[must_use]
    pub(crate) fn new(count: usize, share: ClientShares) -> Self {
        let count = if count == 0 { Semaphore::MAX_PERMITS } else { count };
        Self {
            permits: Arc::new(Semaphore::new(count)),
            visitors: Shares::new(),
            share,
        }
    }

    /// Admits a request, counted for the address or for the session that `session` finds.
    ///
    /// # Errors
    /// The visitor's share is used up, or all permits are in use.
    pub(crate) fn enter(
        &self,
        address: IpAddr,
        session: impl FnOnce() -> Option<SessionId>,
    ) -> Result<AdmissionPermit, HttpError> {
        let (visitors, share) = (&self.visitors, self.share);
        let address = network(address);
        let unasked = visitors.enter(address, share.of_address.div_ceil(UNASKED));
        let visitor = unasked.or_else(|| match session() {
            Some(session) => visitors.enter(session.to_bytes(), share.of_session),
            None => visitors.enter(address, share.of_address),
        });
        let visitor = visitor.ok_or(HttpError::RateLimited {
            retry_after_secs: RETRY_AFTER_SECS,
            limit: Limit::VisitorShare,
        })?;
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_all_in_use| HttpError::Overloaded(Limit::Requests))?;
        Ok(AdmissionPermit { permit, visitor })
    }
}

/// Keeps the visitor's place until the answer is sent or dropped.
#[must_use]
pub(crate) fn until_sent(answer: Response, visitor: Share) -> Response {
    if answer.body().is_end_stream() {
        return answer;
    }
    answer.map(|body| {
        Body::new(map_polls(body, move |_, frame| {
            let _until_sent = &visitor;
            frame
        }))
    })
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    const MANY: ClientShares = ClientShares {
        of_address: 100,
        of_session: 100,
    };

    const FEW: ClientShares = ClientShares {
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
            let share = ClientShares::of(requests);
            assert_eq!((share.of_address, share.of_session), shares, "{requests}");
        }
        assert_eq!(connections_of_address(700), 175);
        assert_eq!(connections_of_address(3), 1);
    }

    #[test]
    fn clones_share_their_places_and_a_refusal_takes_none() {
        let limit = ConcurrencyLimit::new(2, MANY);
        let others = limit.clone();
        let enter = |limit: &ConcurrencyLimit| limit.enter(ip("192.0.2.1"), || None);
        let (one, other) = (enter(&limit).unwrap(), enter(&others).unwrap());
        for _ in 0..3 {
            assert!(matches!(enter(&limit), Err(HttpError::Overloaded(_))));
        }
        assert_eq!(limit.visitors.count(), 2);
        drop(one);
        let again = enter(&others).unwrap();
        assert!(enter(&limit).is_err());
        drop((other, again));
        assert!(enter(&limit).is_ok());
        let endless = ConcurrencyLimit::new(0, MANY);
        let entered: Vec<_> = (0..10).map(|_| enter(&endless).unwrap()).collect();
        assert_eq!(entered.len(), 10);
    }

    #[test]
    fn a_visitor_has_their_share_until_the_answer_is_sent() {
        let share = ClientShares {
            of_address: 1,
            of_session: 1,
        };
        let limit = ConcurrencyLimit::new(1, share);
        let request = limit.enter(ip("192.0.2.1"), || None).unwrap();
        drop(request.permit);
        let socket = request.visitor.clone();
        let answer = until_sent("an answer".into_response(), request.visitor);
        let refused = limit.enter(ip("192.0.2.1"), || None);
        assert!(matches!(refused, Err(HttpError::RateLimited { .. })));
        drop(limit.enter(ip("192.0.2.2"), || None).unwrap());
        drop(answer);
        assert!(
            limit.enter(ip("192.0.2.1"), || None).is_err(),
            "a WebSocket goes on"
        );
        drop(socket);
        assert!(limit.enter(ip("192.0.2.1"), || None).is_ok());
    }

    #[test]
    fn an_address_has_its_share_and_no_more_and_others_have_theirs() {
        let limit = ConcurrencyLimit::new(0, FEW);
        let enter = |address: &str| limit.enter(ip(address), || None);
        let mut entered: Vec<_> = (0..4).map(|_| enter("192.0.2.1").unwrap()).collect();
        for _ in 0..3 {
            assert!(enter("192.0.2.1").is_err(), "and refusals are not counted");
        }
        assert!(enter("192.0.2.2").is_ok());
        assert!(enter("2001:db8::1").is_ok());
        entered.pop();
        entered.push(enter("192.0.2.1").unwrap());
        assert!(enter("192.0.2.1").is_err());
    }

    #[test]
    fn a_network_of_ipv6_is_one_visitor() {
        let limit = ConcurrencyLimit::new(0, FEW);
        let enter = |last: &str| limit.enter(ip(&format!("2001:db8::{last}")), || None);
        let entered: Vec<_> = (0..4).map(|last| enter(&last.to_string()).unwrap()).collect();
        assert!(enter("ffff").is_err());
        drop(entered);
    }

    #[test]
    fn beyond_half_of_an_address_people_who_are_signed_in_have_their_own_share() {
        let limit = ConcurrencyLimit::new(0, FEW);
        let office = ip("192.0.2.1");
        let mut entered = Vec::new();
        for _ in 0..2 {
            entered.push(limit.enter(office, || unreachable!("not asked")).unwrap());
        }
        for person in 1..=2 {
            entered.push(limit.enter(office, session(person)).unwrap());
            entered.push(limit.enter(office, session(person)).unwrap());
            assert!(limit.enter(office, session(person)).is_err());
        }
        // Visitors without a session still have the other half.
        entered.push(limit.enter(office, || None).unwrap());
        entered.push(limit.enter(office, || None).unwrap());
        assert!(limit.enter(office, || None).is_err());
    }
}
