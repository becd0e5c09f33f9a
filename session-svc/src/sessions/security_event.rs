//! How a security event changes sessions.
//!
//! Invariants
//! - Sessions from sign-ins after the event stay, however late the event arrives.
//! - An event acts once over all replicas, and a failed call can be repeated. Acting twice at once changes
//!   nothing. Sessions created after its first action stay, even if that call failed.
//! - It acts before its call is answered, and reaches sessions that are just being created.
//! - An ending waits for no mark: a full store accepts removals, and no session is created in it.
//! - An event without matching sessions is not stored. Only its demand on future sessions is, per named user.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::end::REPLICAS_APART_MS;
use super::once::{SingleUse, SingleUseNote};
use super::{OfflineTokens, Sessions, SessionsError};
use crate::session::change::ChangeKind;
use crate::session::index::{self, IndexKey};
use crate::session::{Cause, Handle, Name, Session, SignInDemand};
use crate::session_store::ListedSession;
use crate::session_store::endings::MARK_KEPT_MS;
use crate::store::StoreError;

/// How far the transmitter's clock may differ from the store's, in milliseconds. Applied only if the
/// provider's own clock does not give the time of the sign-in.
const TRANSMITTER_APART_MS: u64 = 60_000;

/// An event and the action to take.
#[derive(Clone, Debug)]
pub(crate) struct EventOrder {
    /// Issuer of the transmitter that sent the event.
    pub(crate) transmitter: String,
    /// The `jti` of its token.
    pub(crate) token_id: String,
    /// The provider whose sessions are affected.
    pub(crate) provider: String,
    /// The affected sessions: any of these selectors may match.
    pub(crate) subjects: Vec<Selector>,
    /// When the event occurred, in milliseconds since the Unix epoch.
    pub(crate) occurred_at_ms: u64,
    /// The action to take.
    pub(crate) action: EventAction,
}

/// Selects sessions of a provider: all given fields must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    /// The person.
    pub(crate) subject: Option<String>,
    /// The person, by a verified email address in normalized form.
    pub(crate) email: Option<String>,
    /// The provider's session. With a named person, also matches sessions without a known `sid`.
    pub(crate) sid: Option<String>,
}

/// The action of an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventAction {
    /// Sessions end.
    End,
    /// Guarded routes reject them until the person signs in again, with this class (`acr`) if given.
    DemandSignIn(Option<String>),
    /// Replaces the claims in the event. The provider is asked for the others in the background. If the event
    /// has no claims and the provider cannot be asked, the person must sign in again.
    RefreshClaims(Map<String, Value>),
    /// Nothing.
    Note,
}

/// Progress of a call with an event.
struct EventProgress {
    /// Sessions it has changed or ended.
    done: HashSet<Handle>,
    /// When the event acted first, in any call; `None` until a matching session is found.
    first_ms: Option<u64>,
}

impl Selector {
    /// The list to search; `None` if the selector is empty.
    fn index_key<'a>(&'a self, issuer: &'a str) -> Option<IndexKey<'a>> {
        self.person(issuer).or_else(|| self.provider_session(issuer))
    }

    /// The lists that mark future sessions. For a person with a provider session: that session's list, and
    /// the person's sessions without a `sid`.
    fn future_session_lists(&self, issuer: &str) -> Vec<Name> {
        let person = self.person(issuer).map(|person| person.index());
        match self.provider_session(issuer) {
            Some(named) => {
                let unnamed = person.map(index::without_sid).into_iter();
                unnamed.chain([named.index()]).collect()
            }
            None => person.into_iter().collect(),
        }
    }

    fn person<'a>(&'a self, issuer: &'a str) -> Option<IndexKey<'a>> {
        let subject = self.subject.as_ref();
        let by_email = || self.email.as_ref().map(|email| IndexKey::Email(issuer, email));
        subject
            .map(|subject| IndexKey::Person(issuer, subject))
            .or_else(by_email)
    }

    fn provider_session<'a>(&'a self, issuer: &'a str) -> Option<IndexKey<'a>> {
        let sid = self.sid.as_ref();
        sid.map(|sid| IndexKey::ProviderSession(issuer, sid))
    }

    /// Whether a session of the list matches: its `sid` must match too if the selector names one.
    fn selects(&self, session: &Session) -> bool {
        let has_sid = |sid: &String| {
            let mut sids = session.sids().peekable();
            sids.peek().is_none() || sids.any(|known| known == sid)
        };
        self.sid.as_ref().is_none_or(has_sid)
    }
}

impl EventOrder {
    /// Whether a session of the selector's list is affected.
    fn concerns(&self, selector: &Selector, one: &ListedSession) -> bool {
        let (created_at_ms, indexes) = match one {
            ListedSession::Session(session) => {
                return selector.selects(session) && self.is_after_sign_in(session);
            }
            // Only its lists are known.
            ListedSession::Unreadable {
                created_at_ms,
                indexes,
                ..
            } => (*created_at_ms, indexes),
        };
        // A demand also ends an unreadable session, because it cannot be stored there.
        let ends = matches!(self.action, EventAction::End | EventAction::DemandSignIn(_));
        let is_of_list = |sid: &String| {
            indexes.is_empty() || indexes.contains(&index::by_provider_sid(&self.provider, sid))
        };
        ends && selector.sid.as_ref().is_none_or(is_of_list)
            && created_at_ms <= self.occurred_at_ms.saturating_add(TRANSMITTER_APART_MS)
    }

    /// Whether the event came after the session's sign-in. Uses the provider's clock, which is the event's,
    /// if it gives the sign-in time; else the store's clock, and a doubtful case counts as after.
    fn is_after_sign_in(&self, session: &Session) -> bool {
        match session.authenticated_at_ms {
            Some(at_ms) if self.is_of_provider() => at_ms <= self.occurred_at_ms,
            Some(at_ms) => at_ms <= self.occurred_at_ms.saturating_add(TRANSMITTER_APART_MS),
            None => session.created_at_ms <= self.occurred_at_ms.saturating_add(TRANSMITTER_APART_MS),
        }
    }

    /// Whether the provider reports its own sessions, by the clock of their sign-ins.
    fn is_of_provider(&self) -> bool {
        self.transmitter == self.provider
    }

    /// The demand as of `now_ms`: a fast clock other than the provider's cannot demand a future sign-in.
    fn demand(&self, acr: Option<&String>, now_ms: u64) -> SignInDemand {
        let since_ms = if self.is_of_provider() {
            self.occurred_at_ms
        } else {
            self.occurred_at_ms.min(now_ms)
        };
        SignInDemand {
            since_ms,
            acr: acr.cloned(),
        }
    }

    /// The name of the note that the event has acted.
    fn name(&self) -> Name {
        let (transmitter, id) = (self.transmitter.as_bytes(), self.token_id.as_bytes());
        index::hashed(&[b"security event", transmitter, id])
    }
}

impl Sessions {
    /// Applies an event; returns how many sessions it changed or ended, or `None` if it acted before.
    pub(crate) async fn apply_event(&self, order: &EventOrder) -> Result<Option<u32>, SessionsError> {
        if order.action == EventAction::Note {
            return Ok(Some(0));
        }
        let known = self.once_note(order.name()).await?;
        if known.as_ref().is_some_and(|known| !known.used_by.is_empty()) {
            return Ok(None);
        }
        let is_full = match self.mark_future_sessions(order).await {
            // Act first: changes to existing sessions always fit.
            Err(SessionsError::Store(StoreError::Full)) => true,
            reached => {
                reached?;
                false
            }
        };
        let mut progress = EventProgress {
            done: HashSet::new(),
            first_ms: known.map(|known| known.arrived_at_ms),
        };
        for selector in &order.subjects {
            self.apply_to(order, selector, &mut progress).await?;
        }
        if is_full && order.action != EventAction::End {
            return Err(SessionsError::Store(StoreError::Full));
        }
        if let (Some(first_ms), false) = (progress.first_ms, progress.done.is_empty()) {
            self.remember_event(order, first_ms).await?;
        }
        Ok(Some(u32::try_from(progress.done.len()).unwrap_or(u32::MAX)))
    }

    /// Marks sessions that are just being created. A demand also marks all that begin without a new sign-in.
    async fn mark_future_sessions(&self, order: &EventOrder) -> Result<(), SessionsError> {
        let now_ms = self.now_ms();
        let ended_at_ms = order
            .occurred_at_ms
            .saturating_add(TRANSMITTER_APART_MS)
            .min(now_ms);
        let is_recent = ended_at_ms.saturating_add(MARK_KEPT_MS) > now_ms;
        for selector in &order.subjects {
            let subject = selector.subject.as_deref();
            for list in selector.future_session_lists(&order.provider) {
                match &order.action {
                    EventAction::End if is_recent => {
                        self.session_store.mark_ended(list, subject, ended_at_ms).await?;
                    }
                    EventAction::DemandSignIn(acr) => {
                        let demand = order.demand(acr.as_ref(), now_ms);
                        self.session_store.demand_sign_in(list, &demand).await?;
                    }
                    EventAction::End | EventAction::RefreshClaims(_) | EventAction::Note => {}
                }
            }
        }
        Ok(())
    }

    async fn apply_to(
        &self,
        order: &EventOrder,
        selector: &Selector,
        progress: &mut EventProgress,
    ) -> Result<(), SessionsError> {
        let Some(index_key) = selector.index_key(&order.provider) else {
            return Ok(());
        };
        let ends = order.action == EventAction::End;
        let mut pages = self.ending_pages(index_key);
        while let Some((_permit, page)) = pages.next().await? {
            let mut handles = Vec::new();
            for one in page {
                let handle = one.handle();
                if !order.concerns(selector, &one) || progress.done.contains(&handle) {
                    continue;
                }
                let first_ms = match progress.first_ms {
                    Some(first_ms) => first_ms,
                    None => *progress.first_ms.insert(self.first_acted(order).await?),
                };
                if one.created_at_ms() > first_ms.saturating_add(REPLICAS_APART_MS) {
                    continue;
                }
                handles.push(handle);
                if self.act(order, one).await? {
                    progress.done.insert(handle);
                }
            }
            if ends {
                pages.confirm(&handles).await?;
            }
        }
        Ok(())
    }

    /// When the event acted first: now, unless an earlier call got that far. Stored before any change,
    /// because the call may die after its changes. A full store does not block the event.
    async fn first_acted(&self, order: &EventOrder) -> Result<u64, SessionsError> {
        let (now_ms, kept_ms) = (self.now_ms(), self.lifetime().absolute_ms);
        let known = self.note_arrival(order.name(), now_ms, kept_ms).await?;
        Ok(known.map_or(now_ms, |known| known.arrived_at_ms))
    }

    /// Acts on one session; false if nothing changes.
    async fn act(&self, order: &EventOrder, one: ListedSession) -> Result<bool, SessionsError> {
        let session = match one {
            ListedSession::Session(session) if order.action != EventAction::End => *session,
            one => {
                let ended = self.end_seen(&one, None, Cause::SecurityEvent, OfflineTokens::Revoke);
                return Ok(ended.await?.is_ended());
            }
        };
        let acted = match &order.action {
            EventAction::DemandSignIn(acr) => {
                self.save_sign_in_demand(session, order.demand(acr.as_ref(), self.now_ms()))
                    .await
            }
            EventAction::RefreshClaims(claims) => self.refresh_claims(session, order, claims).await,
            EventAction::End | EventAction::Note => Ok(false),
        };
        match acted {
            // It has ended meanwhile.
            Err(SessionsError::Missing) => Ok(false),
            acted => acted,
        }
    }

    async fn save_sign_in_demand(
        &self,
        session: Session,
        demand: SignInDemand,
    ) -> Result<bool, SessionsError> {
        let edit = |session: &mut Session| session.add_sign_in_demand(&demand);
        let (_, wrote) = self
            .session_store
            .edit(session, ChangeKind::Changed, None, edit)
            .await?;
        Ok(wrote)
    }

    async fn refresh_claims(
        &self,
        session: Session,
        order: &EventOrder,
        claims: &Map<String, Value>,
    ) -> Result<bool, SessionsError> {
        let can_refresh = session.tokens.refresh.is_some() && !session.needs_sign_in;
        let (session, has_news) = if claims.is_empty() && can_refresh {
            self.expire_access_token(session).await?
        } else if claims.is_empty() {
            (session, false)
        } else {
            self.replace_claims(session, order, claims).await?
        };
        if has_news && can_refresh {
            self.refresher.refresh_later(session, "");
        } else if claims.is_empty() && !can_refresh {
            return self
                .save_sign_in_demand(session, order.demand(None, self.now_ms()))
                .await;
        }
        Ok(has_news)
    }

    /// Expires the access token, so that its next use refreshes it, which brings the claims.
    async fn expire_access_token(&self, session: Session) -> Result<(Session, bool), SessionsError> {
        let now_ms = self.now_ms();
        let edit = |session: &mut Session| {
            if let Some(access) = &mut session.tokens.access {
                access.expires_at_ms = access.expires_at_ms.min(now_ms);
            }
            true
        };
        self.session_store
            .edit(session, ChangeKind::Changed, None, edit)
            .await
    }

    /// Replaces claims that no later event has set. A session newer than the event already has newer claims.
    /// If the claims do not fit, the person must sign in again, which brings them as well.
    async fn replace_claims(
        &self,
        session: Session,
        order: &EventOrder,
        claims: &Map<String, Value>,
    ) -> Result<(Session, bool), SessionsError> {
        let at_ms = order.occurred_at_ms;
        let edit = |session: &mut Session| {
            if session.created_at_ms > at_ms.saturating_add(TRANSMITTER_APART_MS) {
                return false;
            }
            // Unreadable claims stay unchanged.
            session.apply_claims(claims, at_ms).unwrap_or(false)
        };
        let max_bytes = Some(self.limits.max_bytes);
        let edited = self
            .session_store
            .edit(session.clone(), ChangeKind::Changed, max_bytes, edit)
            .await;
        match edited {
            Err(SessionsError::TooLarge { .. }) => {
                let owes = self
                    .save_sign_in_demand(session.clone(), order.demand(None, self.now_ms()))
                    .await?;
                Ok((session, owes))
            }
            edited => edited,
        }
    }

    /// Remembers that an event has acted, for as long as any session lives that it could act on. A full store
    /// cannot remember it; the event has acted nevertheless.
    async fn remember_event(&self, order: &EventOrder, first_ms: u64) -> Result<(), SessionsError> {
        let done = SingleUse {
            name: order.name(),
            note: SingleUseNote {
                arrived_at_ms: first_ms,
                used_by: "event".to_owned(),
            },
            kept_ms: self.lifetime().absolute_ms,
        };
        match self.write_once(&done, true).await {
            Err(SessionsError::Store(StoreError::Full)) => {
                tracing::warn!("a security event is not remembered: the store is full");
                Ok(())
            }
            remembered => remembered,
        }
    }
}
