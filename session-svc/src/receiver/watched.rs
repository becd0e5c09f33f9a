//! What a service does about its transmitters by itself: it fetches the events of those that do not push, and tells how their streams stand.
//!
//! Invariant: it holds nothing up and ends nothing. A stream that does not work is a condition of readiness that keeps no traffic away.

use std::sync::Arc;
use std::time::Duration;

use chassis::readiness::Condition;
use oidc::StreamStatus;
use prometheus::{GaugeVec, Opts, Registry};
use tokio_util::sync::CancellationToken;

use super::listened::{Listened, SignalReceiver};
use super::polling::{PollTiming, Polling};
use super::received::Received;
use super::settings::DeliveryMethod;
use super::stream_record::StreamRecord;
use crate::sessions::Sessions;

/// How often it is looked how streams stand.
const LOOK_PAUSE: Duration = Duration::from_secs(5);

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// How the streams stand, as metrics.
#[derive(Clone, Debug)]
pub struct StreamGauges {
    status: GaugeVec,
    heard: GaugeVec,
}

/// The words for how a stream stands: that there is none, or its status.
const STATUSES: [&str; 4] = ["none", "enabled", "paused", "disabled"];

impl StreamGauges {
    /// Makes the metrics and registers them.
    ///
    /// # Errors
    /// They are registered already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let status = GaugeVec::new(
            Opts::new(
                "security_event_stream_status",
                "How the stream of each transmitter stands: 1 for its status, 0 for the others.",
            ),
            &["transmitter", "status"],
        )?;
        let heard = GaugeVec::new(
            Opts::new(
                "security_event_stream_heard_timestamp_seconds",
                "When something came on the stream of each transmitter, give or take a minute.",
            ),
            &["transmitter"],
        )?;
        registry.register(Box::new(status.clone()))?;
        registry.register(Box::new(heard.clone()))?;
        Ok(Self { status, heard })
    }

    #[expect(clippy::cast_precision_loss, reason = "a time in seconds")]
    fn set(&self, id: &str, stream: Option<&StreamRecord>) {
        let stands = status(stream);
        for word in STATUSES {
            let is_so = f64::from(u8::from(word == stands));
            self.status.with_label_values(&[id, word]).set(is_so);
        }
        if let Some(at_ms) = stream.and_then(|stream| stream.last_event_at_ms) {
            let secs = (at_ms / SECOND_MS) as f64;
            self.heard.with_label_values(&[id]).set(secs);
        }
    }
}

fn status(stream: Option<&StreamRecord>) -> &'static str {
    match stream.map(|stream| stream.status) {
        None => "none",
        Some(StreamStatus::Enabled) => "enabled",
        Some(StreamStatus::Paused) => "paused",
        Some(StreamStatus::Disabled) => "disabled",
    }
}

impl SignalReceiver {
    /// Fetches events and follows files until the service stops.
    pub(crate) fn listen(&self, sessions: &Sessions, shutdown: &CancellationToken) {
        for (at, listened) in self.transmitters().iter().enumerate() {
            listened.follow();
            if listened.configured.delivery != DeliveryMethod::Poll {
                continue;
            }
            let polling = Polling {
                transmitter_id: listened.configured.id.clone(),
                transmitter: listened.stream.transmitter.clone(),
                keeper: self.keeper().clone(),
                timing: PollTiming::default(),
            };
            let (receiver, sessions) = (self.clone(), Arc::new(sessions.clone()));
            let receive = move |_id, token: String| {
                let (receiver, sessions) = (receiver.clone(), Arc::clone(&sessions));
                async move { receiver.fetched(&sessions, at, &token).await }
            };
            tokio::spawn(polling.run(receive, shutdown.clone()));
        }
    }

    /// Takes an event that was fetched from the transmitter at this place of the list.
    async fn fetched(&self, sessions: &Sessions, at: usize, token: &str) -> Received {
        match self.transmitters().get(at) {
            Some(listened) => self
                .receive_polled(sessions, listened, token)
                .await
                .unwrap_or(Received::Undecided),
            None => Received::Undecided,
        }
    }

    /// Tells how streams stand, until the service stops.
    pub(crate) async fn watch(self, gauges: StreamGauges, condition: Condition, shutdown: CancellationToken) {
        loop {
            self.look(&gauges, &condition).await;
            tokio::select! {
                () = tokio::time::sleep(LOOK_PAUSE) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    async fn look(&self, gauges: &StreamGauges, condition: &Condition) {
        let mut amiss = Vec::new();
        for listened in self.transmitters() {
            let id = listened.configured.id.as_str();
            match self.stream_of(listened).await {
                Ok(stream) => {
                    gauges.set(id, stream.as_ref());
                    amiss
                        .extend(problem(listened, stream.as_ref()).map(|problem| format!("{id}: {problem}")));
                }
                Err(_) => amiss.push(format!("{id}: what is known of its stream cannot be read")),
            }
        }
        if amiss.is_empty() {
            condition.met();
        } else {
            condition.unmet(amiss.join("; "));
        }
    }
}

/// What is wrong with a stream, in words of ours. One that is not ours to manage was made by hand, and nothing is known of it.
fn problem(listened: &Listened, stream: Option<&StreamRecord>) -> Option<&'static str> {
    let is_managed = listened.configured.credentials.is_some() || stream.is_some();
    match stream {
        _ if !is_managed => None,
        None => Some("it has no stream: create one with `session-svc signals create`"),
        Some(stream) if stream.status != StreamStatus::Enabled => Some("its stream is paused or disabled"),
        Some(stream) if stream.verified_at_ms.is_none() => {
            Some("its stream was never verified: `session-svc signals verify` shows whether events arrive")
        }
        Some(_) => None,
    }
}
