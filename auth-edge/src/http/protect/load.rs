//! How much is worked on at once, in all and for one visitor: what is more is refused with `Retry-After`, before it costs
//! anything.
//!
//! A request counts among all until its answer begins. Requests whose body has not come yet are counted apart: they cannot
//! take the permits of those that are worked on. For its visitor a request counts for as long as it holds something
//! elsewhere: a stream of HTTP/2, an upstream's connection, a WebSocket. Deliberately absent: queues; somebody who waits in
//! one for long has given up when their turn comes.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use axum::body::Body;
use axum::response::Response;
use http_body::Body as _;

use super::visitors::{RequestPhase, VisitorShare, VisitorSlot, Visitors};
use crate::http::errors::{HttpError, Limit};
use crate::http::mapped_body::map_polls;
use crate::sessions::cookies::SessionId;

/// Who has more going on than one visitor may is welcome again as soon as some of it has ended, in seconds.
const RETRY_AFTER_SECS: u64 = 1;

/// Its body has come.
const CAME: u8 = 1;
/// Its answer has begun.
const ANSWERED: u8 = 2;
/// It has ended.
const ENDED: u8 = 4;

/// Bounds the requests worked on at once, in all and for each visitor. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ConcurrencyLimit(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    /// How many there are of each kind; 0 is no limit.
    count: usize,
    working: AtomicUsize,
    waiting: AtomicUsize,
    visitors: Visitors,
}

/// A request that has been let in, until dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    limit: ConcurrencyLimit,
    visitor: VisitorSlot,
    /// How far a request with a body has come; without one it is worked on from the beginning.
    steps: Option<Arc<AtomicU8>>,
    is_answered: bool,
}

/// Tells when the body of a request has come.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    limit: ConcurrencyLimit,
    visitor: VisitorSlot,
    steps: Arc<AtomicU8>,
}

impl ConcurrencyLimit {
    /// So many of each kind (0 is no limit), and so many for one visitor.
    #[must_use]
    pub(crate) fn new(count: usize, share: VisitorShare) -> Self {
        Self(Arc::new(Counts {
            count,
            working: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            visitors: Visitors::new(share),
        }))
    }

    /// Lets a request in; `has_body` if it has one that has not come yet.
    ///
    /// # Errors
    /// The visitor has their share, or all permits are in use.
    pub(crate) fn enter(
        &self,
        address: IpAddr,
        session: impl FnOnce() -> Option<SessionId>,
        has_body: bool,
    ) -> Result<Admitted, HttpError> {
        let kind = if has_body {
            RequestPhase::Waiting
        } else {
            RequestPhase::Working
        };
        let visitor = self.0.visitors.enter(address, session, kind);
        let visitor = visitor.ok_or(HttpError::RateLimited {
            retry_after_secs: RETRY_AFTER_SECS,
            limit: Limit::VisitorShare,
        })?;
        let admitted = Admitted {
            limit: self.clone(),
            visitor,
            steps: has_body.then(Arc::default),
            is_answered: false,
        };
        let before = self.count(kind).fetch_add(1, Ordering::Relaxed);
        if self.0.count == 0 || before < self.0.count {
            Ok(admitted)
        } else {
            Err(HttpError::Overloaded(Limit::Requests))
        }
    }

    fn count(&self, kind: RequestPhase) -> &AtomicUsize {
        match kind {
            RequestPhase::Working => &self.0.working,
            RequestPhase::Waiting => &self.0.waiting,
        }
    }
}

fn kind(steps: u8) -> RequestPhase {
    if steps & CAME == 0 {
        RequestPhase::Waiting
    } else {
        RequestPhase::Working
    }
}

impl Admitted {
    /// What tells when the body has come; none without a body.
    #[must_use]
    pub(crate) fn arrival(&self) -> Option<Arrival> {
        Some(Arrival {
            limit: self.limit.clone(),
            visitor: self.visitor,
            steps: Arc::clone(self.steps.as_ref()?),
        })
    }

    /// The answer begins: from now on the request counts for its visitor alone.
    pub(crate) fn answered(&mut self) {
        if !std::mem::replace(&mut self.is_answered, true) {
            let before = self.step(ANSWERED);
            self.limit.count(kind(before)).fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The same visitor, once more, for what outlives the request.
    #[must_use]
    pub(crate) fn again(&self) -> Self {
        self.limit.0.visitors.again(self.visitor);
        Self {
            limit: self.limit.clone(),
            visitor: self.visitor,
            steps: None,
            is_answered: true,
        }
    }

    /// The answer, which keeps its request counted until it has been sent or given up.
    #[must_use]
    pub(crate) fn until_sent(self, answer: Response) -> Response {
        if answer.body().is_end_stream() {
            return answer;
        }
        answer.map(|body| {
            Body::new(map_polls(body, move |_, frame, _| {
                let _until_sent = &self;
                frame
            }))
        })
    }

    /// How far it had come before this step.
    fn step(&self, step: u8) -> u8 {
        match &self.steps {
            Some(steps) => steps.fetch_or(step, Ordering::Relaxed),
            None => CAME,
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.answered();
        let before = self.step(ENDED);
        self.limit.0.visitors.leave(self.visitor, kind(before));
    }
}

impl Arrival {
    /// The body has come, or will not.
    pub(crate) fn came(&self) {
        let before = self.steps.fetch_or(CAME, Ordering::Relaxed);
        if before & CAME != 0 {
            return;
        }
        if before & ANSWERED == 0 {
            self.limit.0.working.fetch_add(1, Ordering::Relaxed);
            self.limit.0.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        if before & ENDED == 0 {
            self.limit.0.visitors.came(self.visitor);
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    const MANY: VisitorShare = VisitorShare {
        of_address: 100,
        of_session: 100,
    };

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn clones_share_their_places_and_a_refusal_takes_none() {
        let limit = ConcurrencyLimit::new(2, MANY);
        let others = limit.clone();
        let enter = |limit: &ConcurrencyLimit| limit.enter(ip(1), || None, false);
        let (one, other) = (enter(&limit).unwrap(), enter(&others).unwrap());
        for _ in 0..3 {
            assert!(matches!(enter(&limit), Err(HttpError::Overloaded(_))));
        }
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
    fn bodies_that_do_not_come_take_no_place_of_what_is_worked_on() {
        let limit = ConcurrencyLimit::new(1, MANY);
        let waiting = limit.enter(ip(1), || None, true).unwrap();
        assert!(limit.enter(ip(1), || None, true).is_err());
        let working = limit.enter(ip(1), || None, false).unwrap();
        drop(working);
        let arrival = waiting.arrival().unwrap();
        arrival.came();
        arrival.came();
        assert!(limit.enter(ip(1), || None, false).is_err(), "now it is worked on");
        drop(limit.enter(ip(1), || None, true).unwrap());
        drop(waiting);
        arrival.came();
        drop(limit.enter(ip(1), || None, false).unwrap());
        drop(limit.enter(ip(1), || None, true).unwrap());
    }

    #[test]
    fn a_visitor_has_their_share_until_the_answer_is_sent() {
        let share = VisitorShare {
            of_address: 1,
            of_session: 1,
        };
        let limit = ConcurrencyLimit::new(10, share);
        let mut request = limit.enter(ip(1), || None, true).unwrap();
        let arrival = request.arrival().unwrap();
        request.answered();
        arrival.came();
        let answer = request.until_sent("an answer".into_response());
        let refused = limit.enter(ip(1), || None, false);
        assert!(matches!(refused, Err(HttpError::RateLimited { .. })));
        drop(limit.enter(ip(2), || None, false).unwrap());
        drop(answer);
        let request = limit.enter(ip(1), || None, false).unwrap();
        let socket = request.again();
        drop(request);
        assert!(limit.enter(ip(1), || None, false).is_err());
        drop(socket);
        assert!(limit.enter(ip(1), || None, false).is_ok());
        assert_eq!(limit.0.working.load(Ordering::Relaxed), 0);
        assert_eq!(limit.0.waiting.load(Ordering::Relaxed), 0);
    }
}
