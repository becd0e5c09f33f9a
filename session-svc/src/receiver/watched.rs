//! How the streams of transmitters stand, for metrics and readiness.
//!
//! Invariant: it holds nothing up and ends nothing. A stream that does not work is a condition of readiness that keeps no traffic away.

use std::time::Duration;

use chassis::readiness::Condition;
use oidc::StreamStatus;
use prometheus::{GaugeVec, Opts, Registry};
use tokio_util::sync::CancellationToken;

use super::settings::DeliveryMethod;
use super::signal_receiver::{HeardTransmitter, SignalReceiver};
use super::stream_record::StreamRecord;

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

/// The word for a stream that is not there.
const NO_STREAM: &str = "none";

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
        let stands = stream.map_or(NO_STREAM, |stream| stream.status.name());
        let statuses = StreamStatus::ALL.map(StreamStatus::name);
        for word in statuses.into_iter().chain([NO_STREAM]) {
            let is_so = f64::from(u8::from(word == stands));
            self.status.with_label_values(&[id, word]).set(is_so);
        }
        if let Some(at_ms) = stream.and_then(|stream| stream.last_event_at_ms) {
            let secs = (at_ms / SECOND_MS) as f64;
            self.heard.with_label_values(&[id]).set(secs);
        }
    }
}

impl SignalReceiver {
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
        for heard in self.transmitters() {
            let id = heard.id();
            match self.stream_of(heard).await {
                Ok(stream) => {
                    gauges.set(id, stream.as_ref());
                    amiss.extend(problem(heard, stream.as_ref()).map(|problem| format!("{id}: {problem}")));
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
fn problem(heard: &HeardTransmitter, stream: Option<&StreamRecord>) -> Option<&'static str> {
    let is_managed = heard.configured.credentials.is_some() || stream.is_some();
    match stream {
        _ if !is_managed => None,
        None => Some("it has no stream: create one with `session-svc signals create`"),
        Some(stream) if stream.poll_url.is_some() != (heard.configured.delivery == DeliveryMethod::Poll) => {
            Some(
                "its stream is delivered in another way than its table says: delete it with `session-svc signals delete`, and create one anew",
            )
        }
        Some(stream) if stream.status != StreamStatus::Enabled => Some("its stream is paused or disabled"),
        Some(stream) if stream.verified_at_ms.is_none() => {
            Some("its stream was never verified: `session-svc signals verify` shows whether events arrive")
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::settings::parse;

    fn heard(delivery: &str, lines: &str) -> HeardTransmitter {
        let file = parse(&format!(
            "[[transmitter]]\nid = \"idp\"\nissuer = \"https://tr.example\"\naudience = \"a\"\ndelivery = \"{delivery}\"\n{lines}"
        ));
        HeardTransmitter::new(&file.unwrap().transmitters[0]).unwrap()
    }

    fn stream() -> StreamRecord {
        StreamRecord {
            issuer: "https://tr.example".to_owned(),
            stream_id: "stream-1".to_owned(),
            audience: vec!["a".to_owned()],
            poll_url: None,
            push_authorization: None,
            status: StreamStatus::Enabled,
            verifications: Vec::new(),
            verified_at_ms: Some(1),
            last_event_at_ms: None,
        }
    }

    #[test]
    fn what_is_wrong_with_a_stream_is_told_and_of_one_that_is_not_managed_here_nothing_is_known() {
        let unverified = StreamRecord {
            verified_at_ms: None,
            ..stream()
        };
        let paused = StreamRecord {
            status: StreamStatus::Paused,
            ..stream()
        };
        let polled = StreamRecord {
            poll_url: Some("https://tr.example/poll".parse().unwrap()),
            ..stream()
        };
        let by_hand = heard("push", "");
        for (heard, stream, told) in [
            (&by_hand, None, None),
            (&by_hand, Some(&stream()), None),
            (&by_hand, Some(&unverified), Some("never verified")),
            (&by_hand, Some(&paused), Some("paused")),
            (&by_hand, Some(&polled), Some("in another way")),
            (&heard("poll", ""), Some(&stream()), Some("in another way")),
            (&heard("poll", ""), Some(&polled), None),
        ] {
            let problem = problem(heard, stream);
            assert_eq!(problem.is_some(), told.is_some(), "{problem:?}");
            assert!(
                problem.unwrap_or_default().contains(told.unwrap_or_default()),
                "{problem:?}"
            );
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a-token").unwrap();
        let managed = heard("push", &format!("token_file = {:?}", file.path()));
        assert!(problem(&managed, None).unwrap().contains("signals create"));
    }
}
