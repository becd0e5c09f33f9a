//! A provider's sessions, live, and the failed sign-ins at this replica.
//!
//! Invariant: the rule admits the operator's session before each message, and at least once in [`CHECK_INTERVAL`].

use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{BoxStream, Stream, StreamExt as _, try_unfold};
use session_proto::client::SessionError;
use session_proto::v1::activity::What;
use session_proto::v1::session_event::Kind;
use session_proto::v1::{Activity, ErrorReason, SignInFailures, WatchActivityRequest};
use session_proto::{error, timestamp};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tonic::Status;

use super::admission::Admission;
use super::status::unanswered;
use crate::http::protect::shares::Share;

/// Proxies close connections that are silent for half a minute or more.
const FAILURES_INTERVAL: Duration = Duration::from_secs(15);

/// How long a stream without messages outlasts its right.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Three of the service's longest pauses between heartbeats (`SessionEvent.heartbeat_interval`).
const SILENCE_MAX: Duration = Duration::from_secs(30);

type Activities = Pin<Box<dyn Stream<Item = Result<Activity, Status>> + Send>>;

struct ActivityWatch {
    admission: Admission,
    issuer: String,
    received: BoxStream<'static, Result<Activity, SessionError>>,
    failures: Interval,
    checks: Interval,
    received_at: Instant,
    _share: Share,
}

/// Opens the stream.
///
/// # Errors
/// The session service rejected the call or is unreachable.
pub(super) async fn stream(
    admission: Admission,
    request: WatchActivityRequest,
    share: Share,
) -> Result<Activities, Status> {
    let issuer = request.issuer.clone();
    let client = &admission.browser.sessions.client;
    let received = client.watch_activity(request).await.map_err(unanswered)?.boxed();
    let watch = ActivityWatch {
        admission,
        issuer,
        received,
        failures: every(FAILURES_INTERVAL),
        checks: every(CHECK_INTERVAL),
        received_at: Instant::now(),
        _share: share,
    };
    let next = |mut watch: ActivityWatch| async move {
        let message = watch.next_message().await?;
        Ok::<_, Status>(Some((message, watch)))
    };
    Ok(try_unfold(watch, next).boxed())
}

impl ActivityWatch {
    async fn next_message(&mut self) -> Result<Activity, Status> {
        loop {
            let message = tokio::select! {
                _ = self.checks.tick() => None,
                _ = self.failures.tick() => Some(self.failed_sign_ins()),
                received = self.received.next() => match received {
                    Some(Ok(activity)) => {
                        self.received_at = Instant::now();
                        // The edge's own messages show that the stream is alive.
                        (!is_heartbeat(&activity)).then_some(activity)
                    }
                    Some(Err(failure)) => return Err(unanswered(failure)),
                    None => return Err(report_silence()),
                },
                () = sleep_until(self.received_at + SILENCE_MAX) => return Err(report_silence()),
            };
            self.admission.check_again(&self.issuer).await?;
            if let Some(message) = message {
                return Ok(message);
            }
        }
    }

    fn failed_sign_ins(&self) -> Activity {
        let browser = &self.admission.browser;
        let provider = browser.providers.of_session(&self.issuer);
        let by_error = provider.map(|provider| browser.metrics.failed_sign_ins(&provider.id));
        Activity {
            what: Some(What::Failures(SignInFailures {
                by_error: by_error.unwrap_or_default(),
                since: Some(timestamp::from_ms(browser.counts_since_ms)),
            })),
        }
    }
}

fn is_heartbeat(activity: &Activity) -> bool {
    matches!(&activity.what, Some(What::Event(event)) if event.kind() == Kind::Heartbeat)
}

fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn report_silence() -> Status {
    let problem = "the session service sends nothing more";
    error::status(ErrorReason::ErrSessionServiceUnavailable, problem, [])
}
