//! A person's sessions, live: the session service's events with a heartbeat of our own.
//!
//! Built on [`SessionClient::watch`](session_proto::client::SessionClient::watch), which opens the stream again where it
//! ended, so that a replica that goes away is no affair of the page's. The stream ends after this browser's session has
//! ended or expired, and when the session service cannot be heard for a while: the page opens another one and reads again
//! what it shows.
//!
//! Invariant: nobody hears of a person's sessions for longer than their own session lasts. What no event tells of is looked
//! up: an ending before the stream was heard, one among what was missed, and expiry.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use session_proto::client::{SessionError, WatchItem};
use session_proto::timestamp;
use session_proto::v1::session_event::Kind;
use session_proto::v1::{SessionEvent, WatchSessionsRequest};
use tokio::time::{Instant, Interval, interval_at, sleep_until};
use tonic::Status;

use super::service::failed;
use crate::browser::Browser;
use crate::http::protect::shares::Share;
use crate::sessions::CurrentSession;
use crate::sessions::cookies::SessionId;

/// Proxies close connections that are silent for half a minute or more.
const BEAT: Duration = Duration::from_secs(15);

/// A restarted replica, or another one, is heard within this.
const UNHEARD_MAX: Duration = Duration::from_secs(15);

type Events = Pin<Box<dyn Stream<Item = Result<SessionEvent, Status>> + Send>>;

struct BrowserWatch {
    items: BoxStream<'static, WatchItem>,
    beat: Interval,
    browser: Arc<Browser>,
    /// The handle of this browser's session, and its secret name.
    own: String,
    id: SessionId,
    /// From then on it has to be looked up whether the session is still there.
    look_at_ms: u64,
    _share: Share,
    /// Where the page can go on: after the last event of the service, its heartbeats included.
    resume_token: String,
    /// Since when nothing is heard.
    unheard_since: Option<Instant>,
    ended: bool,
}

/// Opens the stream.
///
/// # Errors
/// The session service refused, or cannot be reached; the session is not there any more.
pub(super) async fn stream(
    browser: &Arc<Browser>,
    current: CurrentSession,
    share: Share,
    resume_token: String,
) -> Result<Events, SessionError> {
    let mine = &current.session;
    let request = WatchSessionsRequest {
        issuer: mine.issuer.clone(),
        subject: mine.subject.clone(),
        resume_token: resume_token.clone(),
        ..Default::default()
    };
    let mut items = browser.sessions.client.watch(request).boxed();
    let mut items_so_far = Vec::new();
    while !matches!(items_so_far.last(), Some(WatchItem::Event(_))) {
        match items.next().await {
            Some(WatchItem::Lost(error)) => return Err(error),
            Some(item) => items_so_far.push(item),
            None => return Err(unheard()),
        }
    }
    // From the first moment on the page can come back for what it missed; but not past what it has not been sent yet.
    let resume_token = match items_so_far.as_slice() {
        [WatchItem::Connected, WatchItem::Event(beat)] if beat.kind() == Kind::Heartbeat => {
            beat.resume_token.clone()
        }
        _ => resume_token,
    };
    let mut watch = BrowserWatch {
        items: stream::iter(items_so_far).chain(items).boxed(),
        beat: interval_at(Instant::now() + BEAT, BEAT),
        browser: browser.clone(),
        own: mine.handle.clone(),
        id: current.id,
        look_at_ms: 0,
        _share: share,
        resume_token,
        unheard_since: None,
        ended: false,
    };
    watch.look().await?;
    // The first beat at once: the page learns that it is connected before anything happens.
    let first = watch.event(Kind::Heartbeat);
    Ok(stream::iter([Ok(first)])
        .chain(stream::unfold(watch, next))
        .boxed())
}

async fn next(mut watch: BrowserWatch) -> Option<(Result<SessionEvent, Status>, BrowserWatch)> {
    if watch.ended {
        return None;
    }
    let event = watch.next_event().await;
    watch.ended = match &event {
        Ok(event) => event.kind() == Kind::Ended && event.handle == watch.own,
        Err(_) => true,
    };
    Some((event.map_err(failed), watch))
}

impl BrowserWatch {
    /// Looks up whether the session is still there.
    async fn look(&mut self) -> Result<(), SessionError> {
        let session = self.browser.sessions.get(&self.id).await?;
        self.look_at_ms = session.expires_at.as_ref().map_or(0, timestamp::to_ms);
        Ok(())
    }

    /// The page's next event, or why there are no more.
    async fn next_event(&mut self) -> Result<SessionEvent, SessionError> {
        loop {
            // The service beats several times a second, so that the time is looked at as often.
            if self.browser.clock.now_ms() >= self.look_at_ms {
                self.look().await?;
            }
            let given_up = self.unheard_since.map(|since| sleep_until(since + UNHEARD_MAX));
            let item = tokio::select! {
                Some(()) = OptionFuture::from(given_up) => return Err(unheard()),
                _ = self.beat.tick(), if self.unheard_since.is_none() => return Ok(self.event(Kind::Heartbeat)),
                item = self.items.next() => item,
            };
            match item {
                Some(WatchItem::Connected) => self.unheard_since = None,
                Some(WatchItem::Event(event)) => {
                    if !event.resume_token.is_empty() {
                        self.resume_token.clone_from(&event.resume_token);
                    }
                    // The service's own beats only tell that it is there.
                    if event.kind() != Kind::Heartbeat {
                        return Ok(event);
                    }
                }
                Some(WatchItem::Missed) => {
                    self.look_at_ms = 0;
                    return Ok(self.event(Kind::Missed));
                }
                Some(WatchItem::Lost(error)) if error.is_unavailable() => {
                    self.unheard_since.get_or_insert_with(Instant::now);
                }
                Some(WatchItem::Lost(error)) => return Err(error),
                // How far the stream has come; the others are of single replicas only.
                Some(WatchItem::Current(_) | WatchItem::Found | WatchItem::Gone) => {}
                None => return Err(unheard()),
            }
        }
    }

    fn event(&self, kind: Kind) -> SessionEvent {
        SessionEvent {
            kind: kind.into(),
            at: Some(timestamp::from_ms(self.browser.clock.now_ms())),
            resume_token: self.resume_token.clone(),
            ..SessionEvent::default()
        }
    }
}

fn unheard() -> SessionError {
    SessionError {
        reason: session_proto::v1::ErrorReason::ErrSessionServiceUnavailable,
        message: "the session service cannot be heard".to_owned(),
        metadata: std::collections::HashMap::new(),
    }
}
