//! A watch as its caller sees it: events while the caller may have them.
//!
//! Invariants: no event is told to a caller that lost the right to it; a watch that ends says why, unless the process
//! drains, in which case whoever watches goes on at another replica.

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use session_proto::v1::SessionEvent;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::call::Call;
use super::record::code_name;
use super::{resource, status};
use crate::callers::{Callers, Rpc, TurnedAway};
use crate::sessions::{SessionsError, Told, Watching};

/// What is sent.
pub(super) type Events = BoxStream<'static, Result<SessionEvent, Status>>;

struct Watch {
    events: Watching,
    call: Call,
    callers: Callers,
    draining: CancellationToken,
    ending: Ending,
}

/// Writes the record of a watch's end.
struct Ending {
    call: Call,
    began: Instant,
    code: Code,
}

/// The events of a watch, for one caller.
pub(super) fn events(events: Watching, call: Call, callers: Callers, draining: CancellationToken) -> Events {
    let ending = Ending {
        call: call.clone(),
        began: Instant::now(),
        // A caller that hangs up is told nothing.
        code: Code::Cancelled,
    };
    let watch = Watch {
        events,
        call,
        callers,
        draining,
        ending,
    };
    unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match watch.next().await {
            Some(Ok(event)) => Some((Ok(event), Some(watch))),
            Some(Err(status)) => {
                watch.ending.code = status.code();
                Some((Err(status), None))
            }
            None => {
                watch.ending.code = Code::Ok;
                None
            }
        }
    })
    .boxed()
}

impl Watch {
    async fn next(&mut self) -> Option<Result<SessionEvent, Status>> {
        let until = self.call.asked_until;
        let too_late = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let disbelieved = self.call.disbelieved.clone().unwrap_or_default();
        tokio::select! {
            biased;
            () = self.draining.cancelled() => None,
            () = disbelieved.cancelled() => Some(Err(status::turned_away(TurnedAway::Unknown))),
            () = too_late => Some(Err(status::too_late())),
            told = self.events.next() => Some(self.event(told?)),
        }
    }

    fn event(&self, told: Result<(Told, u64, String), SessionsError>) -> Result<SessionEvent, Status> {
        // A list of callers that changed counts before what happened is told.
        self.callers
            .allow(&self.call.caller, Rpc::WatchSessions)
            .map_err(status::turned_away)?;
        let (told, at_ms, resume_token) = told.map_err(|error| status::of(&error))?;
        Ok(resource::event(told, at_ms, resume_token))
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        tracing::info!(
            target: "audit",
            { rpc.method = Rpc::WatchSessions.full_name(),
            rpc.response.status_code = code_name(self.code),
            caller = self.call.caller.shown().unwrap_or_default(),
            network.peer.address = self.call.peer.map(|peer| tracing::field::display(peer.ip())),
            network.peer.port = self.call.peer.map(|peer| peer.port()),
            duration_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX) },
            "a watch ended"
        );
    }
}
