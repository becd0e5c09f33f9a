//! One stream of events, reopened whenever it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use tokio::time::{Instant, sleep_until};

use super::WatchItem;
use super::freshness::Freshness;
use crate::client::call;
use crate::client::call::OpenedStream;
use crate::client::connection::ReplicaConnection;
use crate::client::endpoint::{EndpointId, ReplicaChoice, ReplicaEndpoint};
use crate::client::failure::SessionError;
use crate::client::pool::Pool;
use crate::v1::session_event::Kind;
use crate::v1::{ErrorReason, SessionEvent, WatchSessionsRequest};

/// Pause before a stream is reopened; doubles with every attempt that brings nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The state of the stream.
enum WatchState {
    /// To be opened at this time or later.
    Closed(Instant),
    /// Open.
    Open(Box<OpenWatch>),
    /// Ended, and not reopened.
    Over,
}

struct OpenWatch {
    stream: OpenedStream<SessionEvent>,
    replica: Arc<ReplicaEndpoint>,
    freshness: Freshness,
}

struct ReplicaWatch {
    pool: Arc<Pool>,
    /// The replica to watch. `None` means any replica, the next one in turn for each attempt.
    only: Option<EndpointId>,
    /// The request; every event updates its resume token.
    request: WatchSessionsRequest,
    state: WatchState,
    items: VecDeque<WatchItem>,
    /// Whether a stream was open before. Events since then are missed unless there is a resume token.
    was_open: bool,
    /// Attempts in a row that brought nothing.
    attempts: u32,
    /// The reason of the last delivered `Lost`; `None` while connected.
    lost: Option<ErrorReason>,
}

/// Watches on the given replica, or on any reachable one if none is given.
pub(in crate::client) fn watch(
    pool: Arc<Pool>,
    only: Option<EndpointId>,
    request: WatchSessionsRequest,
) -> BoxStream<'static, WatchItem> {
    let watch = ReplicaWatch {
        pool,
        only,
        request,
        state: WatchState::Closed(Instant::now()),
        items: VecDeque::new(),
        was_open: false,
        attempts: 0,
        lost: None,
    };
    unfold(watch, |mut watch| async move {
        watch.next().await.map(|item| (item, watch))
    })
    .boxed()
}

impl ReplicaWatch {
    async fn next(&mut self) -> Option<WatchItem> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            match &mut self.state {
                WatchState::Over => return None,
                WatchState::Closed(not_before) => {
                    sleep_until(*not_before).await;
                    match self.open().await {
                        Ok(open) => self.start_watch(open),
                        Err(error) => self.lose(error),
                    }
                }
                WatchState::Open(open) => {
                    let (question_at, late_at) = (open.freshness.question_at, open.freshness.late_at());
                    tokio::select! {
                        biased;
                        () = sleep_until(question_at) => open.freshness.send_question(None),
                        message = open.stream.events.message() => match message {
                            Ok(Some(event)) => {
                                open.freshness.record_arrival();
                                let current = open.freshness.heartbeat(event.number);
                                self.receive(event, current);
                            }
                            Ok(None) => {
                                // Only a replica that is shutting down ends a watch by itself.
                                open.stream.connection.state.go_away();
                                self.lose(SessionError::unreachable());
                            }
                            Err(status) => {
                                if call::is_transport(&status) {
                                    open.replica.record_failure();
                                }
                                self.lose(status.into());
                            }
                        },
                        // Nothing arrived for longer than a stream may be silent.
                        () = sleep_until(open.freshness.silent_at()) => {
                            open.stream.connection.state.go_away();
                            open.replica.record_failure();
                            self.lose(SessionError::silent());
                        }
                        // The state of the stream is too old.
                        () = until(late_at) => {
                            open.freshness.mark_late();
                            self.report_lost(SessionError::silent());
                        }
                    }
                }
            }
        }
    }

    async fn open(&self) -> Result<OpenWatch, SessionError> {
        let until = Instant::now() + self.pool.settings.deadline;
        let picked = tokio::time::timeout_at(until, self.pick())
            .await
            .map_err(|_elapsed| SessionError::late())??;
        let (mut freshness, questions) =
            Freshness::new(self.pool.settings.watch_silence, self.request.clone());
        let follow = |connection: Arc<ReplicaConnection>, request| async move {
            connection.service().follow_sessions(request).await
        };
        let stream = call::stream(&self.pool, &picked, until, questions, follow).await?;
        freshness.record_arrival();
        Ok(OpenWatch {
            stream,
            replica: picked.replica,
            freshness,
        })
    }

    async fn pick(&self) -> Result<ReplicaChoice, SessionError> {
        match &self.only {
            Some(id) => {
                let replica = self.pool.replica(id).ok_or_else(SessionError::unreachable)?;
                Ok(replica.connect().await?)
            }
            None => Ok(self.pool.pick().await?),
        }
    }

    fn start_watch(&mut self, open: OpenWatch) {
        if self.was_open && self.request.resume_token.is_empty() {
            self.items.push_back(WatchItem::Missed);
        }
        self.was_open = true;
        self.state = WatchState::Open(Box::new(open));
    }

    /// Delivers an event, and the moment up to which the stream is now current, if there is one.
    fn receive(&mut self, event: SessionEvent, current: Option<(Instant, bool)>) {
        if !event.resume_token.is_empty() {
            self.request.resume_token.clone_from(&event.resume_token);
        }
        match event.kind() {
            Kind::Missed => self.items.push_back(WatchItem::Missed),
            Kind::Heartbeat => {
                if let Some((_, true)) = current {
                    self.attempts = 0;
                    self.lost = None;
                    self.items.push_back(WatchItem::Connected);
                }
                self.items.push_back(WatchItem::Event(event));
            }
            Kind::Unspecified
            | Kind::Created
            | Kind::Rolled
            | Kind::Refreshed
            | Kind::Changed
            | Kind::Ended => {
                self.items.push_back(WatchItem::Event(event));
            }
        }
        if let Some((moment, _)) = current {
            self.items.push_back(WatchItem::Current(moment.into_std()));
        }
    }

    fn lose(&mut self, error: SessionError) {
        // A retry of a malformed request cannot succeed.
        let over = error.reason == ErrorReason::ErrInvalidArgument;
        let pause = PAUSE_MAX.min(PAUSE * 2_u32.pow(self.attempts.min(8)));
        self.attempts = self.attempts.saturating_add(1);
        self.state = if over {
            WatchState::Over
        } else {
            WatchState::Closed(Instant::now() + call::backoff(pause))
        };
        self.report_lost(error);
    }

    fn report_lost(&mut self, error: SessionError) {
        if self.lost.replace(error.reason) != Some(error.reason) {
            self.items.push_back(WatchItem::Lost(error));
        }
    }
}

/// Waits until `then`; without an instant, for ever.
async fn until(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}
