//! The requests to a scripted server, by endpoint: tests read them and wait for them.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use tokio::sync::watch;

use crate::Recorded;

/// How long a test waits for something before it fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// How many requests of each endpoint the log keeps.
const KEPT: usize = 100;

#[derive(Default)]
struct Requests {
    count: usize,
    last: VecDeque<Recorded>,
}

/// The requests of every endpoint.
pub(crate) struct RequestLog<E>(HashMap<E, watch::Sender<Requests>>);

impl<E: Copy + Debug + Eq + Hash> RequestLog<E> {
    /// An empty log for these endpoints.
    pub(crate) fn of(endpoints: impl IntoIterator<Item = E>) -> Self {
        let none = |endpoint| (endpoint, watch::Sender::default());
        Self(endpoints.into_iter().map(none).collect())
    }

    pub(crate) fn record(&self, endpoint: E, request: Recorded) {
        self.0[&endpoint].send_modify(|requests| {
            requests.count += 1;
            requests.last.push_back(request);
            if requests.last.len() > KEPT {
                requests.last.pop_front();
            }
        });
    }

    /// How many requests the endpoint received.
    pub(crate) fn count(&self, endpoint: E) -> usize {
        self.0[&endpoint].borrow().count
    }

    /// The last requests, oldest first.
    pub(crate) fn last(&self, endpoint: E) -> Vec<Recorded> {
        self.0[&endpoint].borrow().last.iter().cloned().collect()
    }

    /// Waits until the endpoint has received `count` requests; panics after [`DEADLINE`].
    pub(crate) async fn wait_for(&self, endpoint: E, count: usize) {
        let mut requests = self.0[&endpoint].subscribe();
        let enough = requests.wait_for(|requests| requests.count >= count);
        let reached = tokio::time::timeout(DEADLINE, enough).await.is_ok();
        assert!(
            reached,
            "{endpoint:?} got {} calls, not {count}",
            self.count(endpoint)
        );
    }
}
