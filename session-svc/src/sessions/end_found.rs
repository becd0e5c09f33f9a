//! Ending the sessions of an operator's filter.
//!
//! Invariants
//! - It ends no session of another issuer, and never the excepted one.
//! - A call ends a bounded number. Between calls the service keeps nothing: what ended is in no list any more.
//! - Failed notices delay and fail no ending.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::end::{EndAll, EndingTime, OfflineTokens};
use super::permits::permit;
use super::{Sessions, SessionsError};
use crate::session::{Cause, FilterBy, Handle, SessionFilter};
use crate::session_store::{ListedSession, Removal};
use crate::store::StoreError;

/// The most sessions that one call examines in order to end them.
const ENDED_MAX: usize = 2_000;

/// How long one call ends sessions: below the shortest deadline of a caller.
const ENDING_TIME: Duration = Duration::from_secs(2);

/// An operator's order to end sessions.
#[derive(Clone, Debug)]
pub(crate) struct FoundEnding {
    /// Which sessions.
    pub(crate) filter: SessionFilter,
    /// A session to leave alone.
    pub(crate) except: Option<Handle>,
    /// What each person reads at the next sign-in.
    pub(crate) message: Option<String>,
}

impl Sessions {
    /// Ends sessions of a filter. Returns how many, and whether none is left.
    pub(crate) async fn end_found(&self, order: &FoundEnding) -> Result<(u32, bool), SessionsError> {
        let filter = &order.filter;
        if matches!(
            filter.by,
            FilterBy::Email(_) | FilterBy::Address(_) | FilterBy::Name(_)
        ) {
            return Err(SessionsError::Invalid {
                field: "filter",
                problem: "has to name a handle, a subject, a provider_sid or everyone",
            });
        }
        self.check_filter(filter)?;
        let Some(mut scan) = self.scan(filter, None) else {
            let found = self.find_by_handle(filter).await?;
            let count = self.end_part(order, found.into_iter().collect()).await?;
            return Ok((count, true));
        };
        let marked = self.mark_found(order).await?;
        let (mut count, until) = (0_u32, Instant::now() + ENDING_TIME);
        loop {
            let _permit = permit(&self.endings).await?;
            let Some(part) = scan.next().await? else { break };
            count = count.saturating_add(self.end_part(order, part).await?);
            if !scan.is_over && (scan.examined >= ENDED_MAX || Instant::now() >= until) {
                break;
            }
        }
        if count == 0 {
            // An ending of an earlier call may still be unconfirmed.
            self.confirm(&[]).await?;
        }
        if let Some((all, ending)) = marked {
            self.mark_later(&all, ending);
        }
        Ok((count, scan.is_over))
    }

    /// Leaves the mark for sessions that are just being created. Returns it if a full store rejected it. Without
    /// a mark if only later sessions end: it would end earlier ones too.
    async fn mark_found(&self, order: &FoundEnding) -> Result<Option<(EndAll, EndingTime)>, SessionsError> {
        let filter = &order.filter;
        if filter.created_after_ms > 0 {
            return Ok(None);
        }
        let (subject, provider_sid) = match &filter.by {
            FilterBy::Subject(subject) => (Some(subject.clone()), None),
            FilterBy::ProviderSid(sid) => (None, Some(sid.clone())),
            _ => (None, None),
        };
        let all = EndAll {
            issuer: filter.issuer.clone(),
            subject,
            provider_sid,
            everyone: matches!(filter.by, FilterBy::Everyone),
            except: order.except,
            cause: Cause::Operator,
            offline_tokens: OfflineTokens::Revoke,
            existing_only: false,
            once: None,
            order_age_ms: None,
            answer_by: None,
        };
        let ending = EndingTime {
            at_ms: self.now_ms().min(filter.created_before_ms.saturating_sub(1)),
            ends_since: false,
        };
        match self.leave_mark(&all, ending).await {
            Ok(()) => Ok(None),
            Err(SessionsError::Store(StoreError::Full)) => Ok(Some((all, ending))),
            Err(error) => Err(error),
        }
    }

    /// Ends these sessions at the same time, each to its end, and confirms it.
    async fn end_part(
        &self,
        order: &FoundEnding,
        mut part: Vec<ListedSession>,
    ) -> Result<u32, SessionsError> {
        part.retain(|one| Some(one.handle()) != order.except);
        let ended = join_all(part.iter().map(|one| self.end_one(order, one))).await;
        let ended: Vec<Removal> = ended.into_iter().collect::<Result<_, _>>()?;
        let handles: Vec<Handle> = part.iter().map(ListedSession::handle).collect();
        if !handles.is_empty() {
            self.confirm(&handles).await?;
        }
        let count = ended.iter().filter(|removed| removed.is_ended()).count();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    async fn end_one(&self, order: &FoundEnding, one: &ListedSession) -> Result<Removal, SessionsError> {
        if let (Some(text), Some(session)) = (&order.message, one.session()) {
            // Before the ending: the person may sign in right after it.
            self.session_store.leave_operator_notice(session, text).await;
        }
        self.end_seen(one, None, Cause::Operator, OfflineTokens::Revoke)
            .await
    }
}
