//! One stream of events, opened again whenever it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use tokio::time::{Instant, sleep_until, timeout};

use super::WatchItem;
use crate::client::call::Opened;
use crate::client::endpoint::{EndpointId, Peer};
use crate::client::pool::{Picked, Pool};
use crate::client::{SessionError, Terms, call, service};
use crate::v1::session_event::Kind;
use crate::v1::{ErrorReason, SessionEvent, WatchSessionsRequest};

/// Pause before a stream that ended is opened again; doubles with every attempt that tells nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Which replica a line leads to.
enum End {
    /// Any; another one each time.
    Any,
    /// This one.
    One(EndpointId),
}

/// The state of the stream.
enum State {
    /// To be opened, not before then.
    Closed(Instant),
    /// Open; whether its first heartbeat has come.
    Open {
        stream: Box<Opened<SessionEvent>>,
        peer: Arc<Peer>,
        complete: bool,
    },
    /// Never to be opened again.
    Over,
}

struct Line {
    pool: Arc<Pool>,
    terms: Terms,
    end: End,
    /// Its resume token moves on with every event.
    request: WatchSessionsRequest,
    state: State,
    told: VecDeque<WatchItem>,
    /// Whether a stream was open before: what happened since is missing unless there is a resume token.
    was_open: bool,
    /// Attempts in a row that told nothing.
    attempts: u32,
    /// Why it is lost, as last told; none while it is heard.
    lost: Option<ErrorReason>,
}

/// Watches on one replica at a time, whichever can be reached.
pub(in crate::client) fn any(
    pool: Arc<Pool>,
    terms: Terms,
    request: WatchSessionsRequest,
) -> BoxStream<'static, WatchItem> {
    line(pool, terms, End::Any, request)
}

/// Watches on the replica given.
pub(super) fn one(
    pool: Arc<Pool>,
    terms: Terms,
    id: EndpointId,
    request: WatchSessionsRequest,
) -> BoxStream<'static, WatchItem> {
    line(pool, terms, End::One(id), request)
}

fn line(
    pool: Arc<Pool>,
    terms: Terms,
    end: End,
    request: WatchSessionsRequest,
) -> BoxStream<'static, WatchItem> {
    let line = Line {
        pool,
        terms,
        end,
        request,
        state: State::Closed(Instant::now()),
        told: VecDeque::new(),
        was_open: false,
        attempts: 0,
        lost: None,
    };
    unfold(line, |mut line| async move {
        line.next().await.map(|item| (item, line))
    })
    .boxed()
}

impl Line {
    async fn next(&mut self) -> Option<WatchItem> {
        loop {
            if let Some(item) = self.told.pop_front() {
                return Some(item);
            }
            match &mut self.state {
                State::Over => return None,
                State::Closed(not_before) => {
                    sleep_until(*not_before).await;
                    match self.open().await {
                        Ok((peer, stream)) => self.opened(peer, stream),
                        Err(error) => self.lose(error),
                    }
                }
                State::Open { stream, peer, .. } => {
                    match timeout(self.terms.watch_silence, stream.events.message()).await {
                        Ok(Ok(Some(event))) => self.hear(event),
                        Ok(Ok(None)) => {
                            // Only a replica that is on its way out ends a watch by itself.
                            stream.connection.go();
                            self.lose(SessionError::unreachable());
                        }
                        Ok(Err(status)) => {
                            if call::is_transport(&status) {
                                peer.failed();
                            }
                            self.lose(status.into());
                        }
                        Err(_elapsed) => {
                            peer.failed();
                            self.lose(SessionError::silent());
                        }
                    }
                }
            }
        }
    }

    async fn open(&self) -> Result<(Arc<Peer>, Opened<SessionEvent>), SessionError> {
        let until = Instant::now() + self.terms.deadline;
        let picked = tokio::time::timeout_at(until, self.pick())
            .await
            .map_err(|_elapsed| SessionError::late())??;
        let request = self.request.clone();
        let open = |channel, request| async move { service(channel).watch_sessions(request).await };
        let opened = call::stream(&self.pool, &picked, until, request, open).await?;
        Ok((picked.peer, opened))
    }

    async fn pick(&self) -> Result<Picked, SessionError> {
        match &self.end {
            End::One(id) => {
                let peer = self.pool.peer(id).ok_or_else(SessionError::unreachable)?;
                let connection = peer.connect().await?;
                Ok(Picked { peer, connection })
            }
            End::Any => Ok(self.pool.pick().await?),
        }
    }

    fn opened(&mut self, peer: Arc<Peer>, stream: Opened<SessionEvent>) {
        if self.was_open && self.request.resume_token.is_empty() {
            self.told.push_back(WatchItem::Missed);
        }
        self.was_open = true;
        self.state = State::Open {
            stream: Box::new(stream),
            peer,
            complete: false,
        };
    }

    fn hear(&mut self, event: SessionEvent) {
        if !event.resume_token.is_empty() {
            self.request.resume_token.clone_from(&event.resume_token);
        }
        match event.kind() {
            Kind::Missed => self.told.push_back(WatchItem::Missed),
            Kind::Heartbeat => {
                if let State::Open { complete, .. } = &mut self.state
                    && !std::mem::replace(complete, true)
                {
                    self.attempts = 0;
                    self.lost = None;
                    self.told.push_back(WatchItem::Connected);
                }
                self.told.push_back(WatchItem::Event(event));
            }
            Kind::Unspecified
            | Kind::Created
            | Kind::Rolled
            | Kind::Refreshed
            | Kind::Changed
            | Kind::Ended => {
                self.told.push_back(WatchItem::Event(event));
            }
        }
    }

    fn lose(&mut self, error: SessionError) {
        // A request that is malformed today is malformed tomorrow.
        let over = error.reason == ErrorReason::ErrInvalidArgument;
        let pause = PAUSE_MAX.min(PAUSE * 2_u32.pow(self.attempts.min(8)));
        self.attempts = self.attempts.saturating_add(1);
        self.state = if over {
            State::Over
        } else {
            State::Closed(Instant::now() + call::backoff(pause))
        };
        if self.lost.replace(error.reason) != Some(error.reason) {
            self.told.push_back(WatchItem::Lost(error));
        }
    }
}
