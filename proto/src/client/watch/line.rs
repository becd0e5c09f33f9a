//! One stream of events, opened again whenever it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::WatchItem;
use super::hearing::Hearing;
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
    /// Open.
    Open(Box<Open>),
    /// Never to be opened again.
    Over,
}

struct Open {
    stream: Opened<SessionEvent>,
    peer: Arc<Peer>,
    hearing: Hearing,
}

/// What an open stream brings.
enum Turn {
    Told(Result<Option<SessionEvent>, Status>),
    /// Nothing, for longer than it may be silent.
    Silent,
    /// Nothing that is young enough.
    Late,
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
                        Ok(open) => self.opened(open),
                        Err(error) => self.lose(error),
                    }
                }
                State::Open(open) => match open.turn().await {
                    Turn::Told(Ok(Some(event))) => {
                        open.hearing.arrives();
                        let is_beat = event.kind() == Kind::Heartbeat;
                        if let Some(Ok(interval)) = event.heartbeat_interval.map(Duration::try_from) {
                            open.hearing.beats_every(interval);
                        }
                        let told = is_beat.then(|| open.hearing.hears(event.number)).flatten();
                        self.hear(event, told);
                    }
                    Turn::Told(Ok(None)) => {
                        // Only a replica that is on its way out ends a watch by itself.
                        open.stream.connection.go();
                        self.lose(SessionError::unreachable());
                    }
                    Turn::Told(Err(status)) => {
                        if call::is_transport(&status) {
                            open.peer.failed();
                        }
                        self.lose(status.into());
                    }
                    Turn::Silent => {
                        open.peer.failed();
                        self.lose(SessionError::silent());
                    }
                    Turn::Late => {
                        open.hearing.is_late();
                        self.tell_lost(SessionError::silent());
                    }
                },
            }
        }
    }

    /// Opens the stream, as one that can be asked if the replica knows how.
    async fn open(&self) -> Result<Open, SessionError> {
        let until = Instant::now() + self.terms.deadline;
        let picked = tokio::time::timeout_at(until, self.pick())
            .await
            .map_err(|_elapsed| SessionError::late())??;
        let oldest = self.terms.watch_silence;
        let (mut hearing, questions) = Hearing::asking(oldest, self.request.clone());
        let follow = |channel, request| async move { service(channel).follow_sessions(request).await };
        let opened = match call::stream(&self.pool, &picked, until, questions, follow).await {
            Err(error) if error.reason == ErrorReason::ErrUnimplemented => {
                hearing = Hearing::of_arrivals(oldest);
                let watch = |channel, request| async move { service(channel).watch_sessions(request).await };
                call::stream(&self.pool, &picked, until, self.request.clone(), watch).await
            }
            opened => opened,
        };
        hearing.arrives();
        Ok(Open {
            stream: opened?,
            peer: picked.peer,
            hearing,
        })
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

    fn opened(&mut self, open: Open) {
        if self.was_open && self.request.resume_token.is_empty() {
            self.told.push_back(WatchItem::Missed);
        }
        self.was_open = true;
        self.state = State::Open(Box::new(open));
    }

    /// Tells an event, and how far the stream is told by it, if it says so.
    fn hear(&mut self, event: SessionEvent, told: Option<(Instant, bool)>) {
        if !event.resume_token.is_empty() {
            self.request.resume_token.clone_from(&event.resume_token);
        }
        match event.kind() {
            Kind::Missed => self.told.push_back(WatchItem::Missed),
            Kind::Heartbeat => {
                if let Some((_, true)) = told {
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
        if let Some((moment, _)) = told {
            self.told.push_back(WatchItem::Current(moment.into_std()));
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
        self.tell_lost(error);
    }

    fn tell_lost(&mut self, error: SessionError) {
        if self.lost.replace(error.reason) != Some(error.reason) {
            self.told.push_back(WatchItem::Lost(error));
        }
    }
}

impl Open {
    /// Asks how far the stream is told when that is due, until it brings something.
    async fn turn(&mut self) -> Turn {
        loop {
            let (ask_at, late_at) = (self.hearing.ask_at(), self.hearing.late_at());
            tokio::select! {
                biased;
                () = until(ask_at) => self.hearing.ask(None),
                told = self.stream.events.message() => return Turn::Told(told),
                () = sleep_until(self.hearing.silent_at()) => return Turn::Silent,
                () = until(late_at) => return Turn::Late,
            }
        }
    }
}

/// Then; without an instant, never.
async fn until(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}
