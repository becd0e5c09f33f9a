//! What a session is: pure values and the rules between them.
//!
//! Invariants
//! - Nothing here reads a clock or does IO. The numbers of fields are those of the stored form (`vault::wire`).
//! - Times are milliseconds since the Unix epoch by the store's clock.
//! - A secret session ID exists only in a request and its response; a session holds its public handle alone.
//!
//! Deliberately absent: a list of versions a session has had, and anything about browsers but what they sent.

pub(crate) mod access;
pub(crate) mod api_token;
pub(crate) mod binding;
pub(crate) mod cause;
pub mod change;
pub(crate) mod claims;
pub(crate) mod cookie_generation;
pub(crate) mod device;
pub(crate) mod id;
pub(crate) mod id_token;
pub mod index;
pub(crate) mod lifetime;
mod name;
pub(crate) mod revocable;
pub(crate) mod sign_in_demand;
pub(crate) mod tokens;

use std::collections::BTreeMap;

use chassis::secret::Secret;

use self::claims::{Object, SUBJECT};

pub use api_token::{ApiTarget, ApiToken, ApiTokenSource, ApiTokens};
pub use binding::{DeviceBinding, DeviceKey};
pub use cause::Cause;
pub use claims::Claims;
pub use cookie_generation::{CookieGeneration, GenerationId, Judged, ShownGeneration};
pub use device::Device;
pub use id::{Handle, SessionId};
pub use lifetime::Lifetime;
pub use name::Name;
pub use revocable::{RevocableToken, TokenKind};
pub use sign_in_demand::SignInDemand;
pub use tokens::{AccessToken, PendingAnswer, Scope, SessionTokens, StoredToken};

/// Whether the session still does everything a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The person is signed in.
    Active,
    /// The provider refused to refresh the tokens: whatever needs one sends the person to sign in.
    NeedsSignIn,
}

/// A signed-in person on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Public name, derived one-way from the secret ID.
    pub handle: Handle,
    /// Issuer identifier of the provider, byte-exact.
    pub issuer: String,
    /// The person at that issuer.
    pub subject: String,
    /// Claims about the person.
    pub user: Claims,
    /// Whatever callers remember with the session.
    pub attributes: Claims,
    /// What the provider's token endpoint gave.
    pub tokens: SessionTokens,
    /// The provider's own session.
    pub provider_sid: Option<String>,
    /// Sessions of the provider it belonged to before, the latest first; at most [`EARLIER_SIDS`].
    pub earlier_sids: Vec<String>,
    /// When the person proved who they are; `None` if the provider did not say. Never guessed from anything else.
    pub authenticated_at_ms: Option<u64>,
    /// When the session began.
    pub created_at_ms: u64,
    /// When the session was last extended by use.
    pub rolled_at_ms: u64,
    /// The session never lives beyond this instant.
    pub not_after_ms: Option<u64>,
    /// Where the session was created.
    pub created_on: Device,
    /// Where the session was last used.
    pub last_seen_on: Device,
    /// The device it is bound to, if it is.
    pub binding: Option<DeviceBinding>,
    /// Which generation of its cookie counts, if it has rotated.
    pub cookie_generation: Option<CookieGeneration>,
    /// When another session of the person ended by theft, if that is news.
    pub theft_at_ms: Option<u64>,
    /// A sign-in that the person owes before the session is good for anything guarded.
    pub sign_in_demand: Option<SignInDemand>,
    /// Claims that security events have told, by name: when the event was that has told each last, in milliseconds since the Unix epoch, by
    /// the clock of whoever told of it.
    pub claims_told: BTreeMap<String, u64>,
    /// Whether the session still does everything.
    pub state: SessionState,
    /// Grows by one with every write; the first is 1.
    pub version: u64,
    /// What a newer release wrote with it and this one does not know, which is written back as it came. It may be a token of a later kind.
    pub carried: Secret<Vec<u8>>,
}

/// How many of the provider's earlier sessions a session is still found by: a logout that arrives while a refresh
/// brings another `sid` names the one before; more are kept by no provider that means them.
pub(crate) const EARLIER_SIDS: usize = 3;

impl Session {
    /// Takes over claims that a security event of `at_ms` has told, but for who it is about and for those that a later one has; false if
    /// nothing is news.
    ///
    /// # Errors
    /// Its claims cannot be read.
    pub(crate) fn tell_claims(&mut self, told: &Object, at_ms: u64) -> Result<bool, serde_json::Error> {
        let counts = |name: &String| {
            name != SUBJECT && self.claims_told.get(name).is_none_or(|last_ms| *last_ms <= at_ms)
        };
        let news: Object = told
            .iter()
            .filter(|(name, _)| counts(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let user = self.user.with(&news)?;
        let is_changed = user != self.user;
        self.user = user;
        let mut is_news = is_changed;
        for (name, _) in news {
            // Also where the claim was so already: an earlier event that comes late must not change it.
            is_news |= self.claims_told.insert(name, at_ms) != Some(at_ms);
        }
        Ok(is_news)
    }

    /// Moves to the provider's session of this `sid`, as a refreshed ID token says.
    pub(crate) fn move_to_sid(&mut self, sid: &str) {
        if self.provider_sid.as_deref() == Some(sid) {
            return;
        }
        self.earlier_sids.retain(|earlier| earlier != sid);
        if let Some(before) = self.provider_sid.replace(sid.to_owned()) {
            self.earlier_sids.insert(0, before);
            self.earlier_sids.truncate(EARLIER_SIDS);
        }
    }

    /// Every session of the provider it is found by.
    pub(crate) fn sids(&self) -> impl Iterator<Item = &str> {
        self.provider_sid
            .iter()
            .chain(&self.earlier_sids)
            .map(String::as_str)
    }

    /// When the session ends if it is not used, by the durations given.
    pub(crate) fn expires_at_ms(&self, lifetime: &Lifetime) -> u64 {
        lifetime.expires_at_ms(self.created_at_ms, self.rolled_at_ms, self.not_after_ms)
    }

    /// When the session ends however much it is used, by the durations given.
    pub(crate) fn absolute_expires_at_ms(&self, lifetime: &Lifetime) -> u64 {
        lifetime.absolute_expires_at_ms(self.created_at_ms, self.not_after_ms)
    }

    /// Whether the session is valid: strictly before its end.
    pub(crate) fn is_valid(&self, lifetime: &Lifetime, now_ms: u64) -> bool {
        now_ms < self.expires_at_ms(lifetime)
    }
}
