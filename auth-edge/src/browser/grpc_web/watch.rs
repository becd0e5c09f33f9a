//! A person's sessions, live: the session service's events, plus the edge's own heartbeat.
//!
//! Built on [`SessionClient::watch`](session_proto::client::SessionClient::watch), which resumes a broken
//! stream, so the page does not notice when a replica goes away. The stream ends after this browser's session
//! has ended or expired, and when the session service is unreachable for [`UNHEARD_MAX`]. The page then opens
//! another stream and reads its data again.
//!
//! Invariant: a stream never outlasts the session that opened it. The edge looks up what no event reports: an
//! end before the stream was connected, an end among missed events, and expiry.

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

use super::caller::failed;
use crate::browser::Browser;
use crate::http::protect::shares::Share;
use crate::sessions::CurrentSession;
use crate::sessions::cookies::SessionId;

/// Proxies close connections that are silent for half a minute or more.
const BEAT: Duration = Duration::from_secs(15);

/// A restarted replica, or another one, answers within this time.
const UNHEARD_MAX: Duration = Duration::from_secs(15);

type Events = Pin<Box<dyn Stream<Item = Result<SessionEvent, Status>> + Send>>;

struct BrowserWatch {
    items: BoxStream<'static, WatchItem>,
    beat: Interval,
    browser: Arc<Browser>,
    /// The handle and the id of this browser's session.
    own: String,
    id: SessionId,
    /// The next time to check that the session still exists.
    look_at_ms: u64,
    _share: Share,
    /// Where the page can resume: after the last event of the service, heartbeats included.
    resume_token: String,
    /// Since when the session service is silent.
    unheard_since: Option<Instant>,
    ended: bool,
}

/// Opens the stream.
///
/// # Errors
/// The session service rejected the call or is unreachable, or the session has ended.
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
            None => return Err(watch_lost()),
        }
    }
    // The page can resume from its first event, but not past an event that it has not received yet.
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
    // The first heartbeat goes out at once: the page learns that it is connected.
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
    /// Checks that the session still exists.
    async fn look(&mut self) -> Result<(), SessionError> {
        let session = self.browser.sessions.get(&self.id).await?;
        self.look_at_ms = session.expires_at.as_ref().map_or(0, timestamp::to_ms);
        Ok(())
    }

    /// The page's next event, or the error that ends the stream.
    async fn next_event(&mut self) -> Result<SessionEvent, SessionError> {
        loop {
            // The service sends several heartbeats a second, so this check runs as often.
            if self.browser.clock.now_ms() >= self.look_at_ms {
                self.look().await?;
            }
            let given_up = self.unheard_since.map(|since| sleep_until(since + UNHEARD_MAX));
            let item = tokio::select! {
                Some(()) = OptionFuture::from(given_up) => return Err(watch_lost()),
                _ = self.beat.tick(), if self.unheard_since.is_none() => return Ok(self.event(Kind::Heartbeat)),
                item = self.items.next() => item,
            };
            match item {
                Some(WatchItem::Connected) => self.unheard_since = None,
                Some(WatchItem::Event(event)) => {
                    if !event.resume_token.is_empty() {
                        self.resume_token.clone_from(&event.resume_token);
                    }
                    // The service's own heartbeats only show that it is reachable.
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
                // `Current` only reports progress; the other items concern single replicas.
                Some(WatchItem::Current(_) | WatchItem::Found | WatchItem::Gone) => {}
                None => return Err(watch_lost()),
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

fn watch_lost() -> SessionError {
    SessionError {
        reason: session_proto::v1::ErrorReason::ErrSessionServiceUnavailable,
        message: "cannot receive from the session service".to_owned(),
        metadata: std::collections::HashMap::new(),
    }
}
