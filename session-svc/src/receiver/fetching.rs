//! Fetches the events of those transmitters that do not push them, for as long as a service runs.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::polling::{EventReceiver, PollTiming, Polling};
use super::received::Received;
use super::settings::DeliveryMethod;
use super::signal_receiver::{HeardTransmitter, SignalReceiver};
use crate::sessions::Sessions;

/// Takes the events of one transmitter.
struct FetchedEvents {
    receiver: SignalReceiver,
    transmitter: Arc<HeardTransmitter>,
    sessions: Sessions,
}

impl EventReceiver for FetchedEvents {
    async fn take(&self, token: &str) -> Received {
        let Self {
            receiver,
            transmitter,
            sessions,
        } = self;
        let received = receiver.receive_polled(sessions, transmitter, token).await;
        received.unwrap_or(Received::Undecided)
    }
}

impl SignalReceiver {
    /// Fetches events and follows files until the service stops. Gives the tasks that fetch: they finish the event under way and tell what
    /// they have taken.
    pub(crate) fn listen(&self, sessions: &Sessions, shutdown: &CancellationToken) -> TaskTracker {
        let fetching = TaskTracker::new();
        for heard in self.transmitters() {
            heard.follow();
            if heard.configured.delivery != DeliveryMethod::Poll {
                continue;
            }
            let polling = Polling {
                transmitter_id: heard.id().to_owned(),
                transmitter: heard.ready.transmitter.clone(),
                keeper: self.keeper().clone(),
                timing: PollTiming::default(),
                receiver: FetchedEvents {
                    receiver: self.clone(),
                    transmitter: Arc::clone(heard),
                    sessions: sessions.clone(),
                },
            };
            fetching.spawn(polling.run(shutdown.clone()));
        }
        fetching
    }
}
