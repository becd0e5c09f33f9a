//! A person's sessions, live: the session service's events with a heartbeat of our own.
//!
//! The stream ends after this browser's session has ended, and when the session service cannot be heard any more: the
//! page opens another one and reads again what it shows.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use session_proto::client::SessionError;
use session_proto::v1::session_event::Kind;
use session_proto::v1::{Session, SessionEvent, WatchSessionsRequest};
use session_proto::{error, timestamp};
use tokio::time::{Instant, interval_at, timeout};
use tonic::{Status, Streaming};

use crate::edge::Edge;

/// Proxies close connections that are silent for half a minute or more.
const BEAT: Duration = Duration::from_secs(15);

/// The session service beats several times a second: silence for so long means it is gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);

type Events = Pin<Box<dyn Stream<Item = Result<SessionEvent, Status>> + Send>>;

struct Watch {
    events: Streaming<SessionEvent>,
    beat: tokio::time::Interval,
    edge: Edge,
    /// The handle of this browser's session.
    own: String,
    ended: bool,
}

/// Opens the stream.
pub(super) async fn stream(
    edge: &Edge,
    mine: &Session,
    resume_token: String,
) -> Result<Events, SessionError> {
    let request = WatchSessionsRequest {
        issuer: mine.issuer.clone(),
        subject: mine.subject.clone(),
        resume_token,
        ..Default::default()
    };
    let events = edge.sessions.client().watch_sessions(request).await?;
    let beat = interval_at(Instant::now() + BEAT, BEAT);
    let watch = Watch {
        events,
        beat,
        edge: edge.clone(),
        own: mine.handle.clone(),
        ended: false,
    };
    // The first beat at once: the page learns that it is connected before anything happens.
    let first = watch.heartbeat();
    Ok(stream::iter([Ok(first)])
        .chain(stream::unfold(watch, next))
        .boxed())
}

async fn next(mut watch: Watch) -> Option<(Result<SessionEvent, Status>, Watch)> {
    if watch.ended {
        return None;
    }
    let outcome = loop {
        tokio::select! {
            _ = watch.beat.tick() => break Ok(watch.heartbeat()),
            heard = timeout(SILENCE_MAX, watch.events.message()) => match heard {
                // The service's own beats only tell that it is there.
                Ok(Ok(Some(event))) if event.kind() == Kind::Heartbeat => {}
                Ok(Ok(Some(event))) => break Ok(event),
                Ok(Ok(None) | Err(_)) | Err(_) => break Err(()),
            },
        }
    };
    match outcome {
        Ok(event) => {
            watch.ended = event.kind() == Kind::Ended && event.handle == watch.own;
            Some((Ok(event), watch))
        }
        Err(()) => {
            watch.ended = true;
            let reason = session_proto::v1::ErrorReason::ErrSessionServiceUnavailable;
            Some((
                Err(error::status(reason, "the session service cannot be heard", [])),
                watch,
            ))
        }
    }
}

impl Watch {
    fn heartbeat(&self) -> SessionEvent {
        SessionEvent {
            kind: Kind::Heartbeat.into(),
            at: Some(timestamp::from_ms(self.edge.clock.now_ms())),
            ..SessionEvent::default()
        }
    }
}
