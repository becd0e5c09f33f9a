//! What a receiver fetches and acknowledges (RFC 8936).
//!
//! Invariants: an event is there until it is acknowledged or refused, whichever replica is asked; an acknowledgement reaches the notes of
//! its own receiver alone.
//!
//! Deliberately absent: hiding for a while what was fetched and not acknowledged: it comes with the next request.

use std::collections::HashMap;
use std::time::Duration;

use chassis::random::NoRandomness;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Context;
use super::measures::SignalOutcome;
use super::note::{SignalNote, name_of};
use super::queue::Queue;
use super::reading::{Read, read};
use super::receiver::Receiver;
use crate::keeper::{KeeperError, SealError};
use crate::session::Name;
use crate::store::StoreError;

/// Events of one answer at most, however many are asked for.
const EVENTS_MAX: usize = 200;

/// Events signed before others get their turn: a signature by RSA takes a millisecond.
const SIGNED_AT_ONCE: usize = 4;

/// How long a request waits for an event.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// How often it looks meanwhile: other replicas note events too.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// A request (RFC 8936, section 2.2).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PollRequest {
    max_events: Option<u64>,
    return_immediately: bool,
    ack: Vec<String>,
    set_errs: HashMap<String, SetError>,
}

/// Why an event was refused (RFC 8936, section 2.4.4).
#[derive(Debug, Deserialize)]
pub(super) struct SetError {
    err: String,
}

/// Longest code that is logged; those there are have twenty letters.
const CODE_BYTES_MAX: usize = 64;

impl SetError {
    /// The code, if it is one.
    fn code(&self) -> &str {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if self.err.len() <= CODE_BYTES_MAX && self.err.bytes().all(is_word) {
            &self.err
        } else {
            "other"
        }
    }
}

/// Removals in flight at once for one request.
const AT_ONCE: usize = 16;

/// Acknowledgements and refusals of one request at most.
pub(super) const ANSWERED_MAX: usize = 1_000;

impl PollRequest {
    /// Whether it is within what one request may hold.
    pub(super) fn is_bounded(&self) -> bool {
        self.ack.len() + self.set_errs.len() <= ANSWERED_MAX
    }
}

/// Takes what a receiver has acknowledged, and gives it what waits; `may_wait` unless too many of its requests do.
pub(super) async fn poll(
    context: &Context,
    receiver: &Receiver,
    queue: &Mutex<Queue>,
    request: PollRequest,
    may_wait: bool,
) -> Result<Value, KeeperError> {
    take_answers(context, receiver, &request).await?;
    let most = request.max_events.map_or(EVENTS_MAX, |most| {
        usize::try_from(most).unwrap_or(EVENTS_MAX).min(EVENTS_MAX)
    });
    let until = Instant::now() + WAIT_MAX;
    let mut wakes = context.outbox.wakes();
    loop {
        let (sets, is_more) = if context.streams.read(receiver).await?.is_told() {
            waiting(context, receiver, queue, most).await?
        } else {
            (Map::new(), false)
        };
        let waits = sets.is_empty() && most > 0 && may_wait && !request.return_immediately;
        if !waits || Instant::now() >= until {
            return Ok(json!({"sets": sets, "moreAvailable": is_more}));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_PAUSE) => {}
            _ = wakes.changed() => {}
            () = tokio::time::sleep_until(until) => {}
            () = context.shutdown.cancelled() => return Ok(json!({"sets": {}})),
        }
    }
}

/// Takes what was acknowledged and what was refused.
async fn take_answers(
    context: &Context,
    receiver: &Receiver,
    request: &PollRequest,
) -> Result<(), KeeperError> {
    for error in request.set_errs.values() {
        tracing::warn!(
            receiver = receiver.id,
            code = error.code(),
            "a receiver refused an event: it is not told again"
        );
    }
    let mut names = Vec::new();
    for jti in &request.ack {
        names.push((name_of(receiver, jti), SignalOutcome::Delivered));
    }
    for jti in request.set_errs.keys() {
        names.push((name_of(receiver, jti), SignalOutcome::Refused));
    }
    let taken = stream::iter(names)
        .map(|(name, outcome)| answered(context, receiver, name, outcome))
        .buffer_unordered(AT_ONCE);
    taken.try_collect().await
}

/// The oldest events, and whether there are more.
async fn waiting(
    context: &Context,
    receiver: &Receiver,
    queue: &Mutex<Queue>,
    most: usize,
) -> Result<(Map<String, Value>, bool), KeeperError> {
    let mut queue = queue.lock().await;
    queue.look(context.keeper.store()).await?;
    let since_ms = context.streams.known(receiver).since_ms;
    let now_ms = context.keeper.now_ms();
    let mut sets = Map::new();
    let (mut page, mut is_more) = (queue.oldest(most.max(1)), false);
    while let Some(last) = page.last().copied() {
        for (entry, read) in read(context, receiver, &page).await? {
            match read {
                Read::Ready(_) if entry.noted_at_ms < since_ms => {}
                Read::Ready(_) if sets.len() >= most => is_more = true,
                Read::Ready(note) => {
                    let token = context.receivers.token(receiver, &note, now_ms);
                    let token = token.map_err(|_| SealError::NoRandomness(NoRandomness))?;
                    sets.insert(note.jti, json!(token));
                    if sets.len().is_multiple_of(SIGNED_AT_ONCE) {
                        tokio::task::yield_now().await;
                    }
                }
                Read::Waits => {}
                Read::Gone => queue.forget(&entry),
            }
        }
        if is_more {
            break;
        }
        page = queue.behind(last, most.max(1));
    }
    Ok((sets, is_more))
}

/// Removes the note of an event that was acknowledged or refused; one that is not there was so before.
async fn answered(
    context: &Context,
    receiver: &Receiver,
    name: Name,
    outcome: SignalOutcome,
) -> Result<(), KeeperError> {
    match context.keeper.store().remove(name, Vec::new()).await {
        Ok(Some(record)) => {
            let note = SignalNote::open(&record, &context.keeper).unwrap_or_default();
            context.measures.signal(&receiver.id, &note.event, outcome);
            Ok(())
        }
        Ok(None) | Err(StoreError::Corrupt) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
