//! A session and its values.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use chassis::secret::Secret;
use prost::Message;

use super::claims::{Claims, Object, SUBJECT};
use super::{
    CookieGeneration, Device, DeviceBinding, Handle, Lifetime, OperatorNotice, SessionTokens, SignInDemand,
};

/// A signed-in person on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Public name, derived one-way from the secret ID.
    pub handle: Handle,
    /// Increases by one with every write; the first is 1.
    pub version: u64,
    /// Its values.
    pub values: SessionValues,
    /// Unknown fields of a newer release, written back unchanged. Secret: they may contain tokens.
    pub carried: Secret<Vec<u8>>,
}

impl Deref for Session {
    type Target = SessionValues;

    fn deref(&self) -> &SessionValues {
        &self.values
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut SessionValues {
        &mut self.values
    }
}

/// A session's values; also the main part of its stored form (`vault::wire`, which has the fields 6 and 15).
#[derive(Clone, PartialEq, Message)]
pub struct SessionValues {
    /// Issuer identifier of the provider, byte-exact.
    #[prost(string, tag = "1")]
    pub issuer: String,
    /// The person at that issuer.
    #[prost(string, tag = "2")]
    pub subject: String,
    /// Claims about the person.
    #[prost(message, required, tag = "3")]
    pub user: Claims,
    /// Attributes that callers store with the session.
    #[prost(message, required, tag = "4")]
    pub attributes: Claims,
    /// The tokens from the provider's token endpoint.
    #[prost(message, required, tag = "5")]
    pub tokens: SessionTokens,
    /// The provider's own session.
    #[prost(string, optional, tag = "7")]
    pub provider_sid: Option<String>,
    /// Earlier sessions of the provider, the latest first; at most [`EARLIER_SIDS`].
    #[prost(string, repeated, tag = "8")]
    pub earlier_sids: Vec<String>,
    /// When the person authenticated; `None` if the provider did not say. Never derived from other values.
    #[prost(uint64, optional, tag = "9")]
    pub authenticated_at_ms: Option<u64>,
    /// When the session began.
    #[prost(uint64, tag = "10")]
    pub created_at_ms: u64,
    /// When the session was last extended by use.
    #[prost(uint64, tag = "11")]
    pub rolled_at_ms: u64,
    /// The session expires at this time at the latest.
    #[prost(uint64, optional, tag = "12")]
    pub not_after_ms: Option<u64>,
    /// Where the session was created.
    #[prost(message, required, tag = "13")]
    pub created_on: Device,
    /// Where the session was last used.
    #[prost(message, required, tag = "14")]
    pub last_seen_on: Device,
    /// Whether the provider refused to refresh the tokens: a call that needs one requires a new sign-in.
    #[prost(bool, tag = "16")]
    pub needs_sign_in: bool,
    /// The device it is bound to, if any.
    #[prost(message, optional, tag = "17")]
    pub binding: Option<DeviceBinding>,
    /// The current generation of its cookie, if it has rotated.
    #[prost(message, optional, tag = "18")]
    pub cookie_generation: Option<CookieGeneration>,
    /// When another session of the person ended by theft, if the person does not know yet.
    #[prost(uint64, optional, tag = "19")]
    pub theft_at_ms: Option<u64>,
    /// The sign-in that guarded routes require before they accept the session.
    #[prost(message, optional, tag = "20")]
    pub sign_in_demand: Option<SignInDemand>,
    /// Claims set by security events: the time of the last event that set each name, in milliseconds since
    /// the Unix epoch, by the transmitter's clock.
    #[prost(btree_map = "string, uint64", tag = "21")]
    pub claims_told: BTreeMap<String, u64>,
    /// What an operator wrote for the person, if the person has not read it yet.
    #[prost(message, optional, tag = "22")]
    pub operator_notice: Option<OperatorNotice>,
}

/// How many earlier `sid` values still find a session. A logout that arrives during a refresh with a new
/// `sid` names the earlier one. Providers refer to no older ones.
const EARLIER_SIDS: usize = 3;

impl Session {
    /// The first version of a session.
    pub fn new(handle: Handle, values: SessionValues) -> Self {
        Self {
            handle,
            version: 1,
            values,
            carried: Secret::default(),
        }
    }

    /// Applies claims of a security event of `at_ms`, except `sub` and those that a later event has set;
    /// false if nothing changes.
    ///
    /// # Errors Its claims cannot be read.
    pub(crate) fn apply_claims(&mut self, claims: &Object, at_ms: u64) -> Result<bool, serde_json::Error> {
        let counts = |name: &String| {
            name != SUBJECT && self.claims_told.get(name).is_none_or(|last_ms| *last_ms <= at_ms)
        };
        let news: Object = claims
            .iter()
            .filter(|(name, _)| counts(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let user = self.user.with(&news)?;
        let is_changed = user != self.user;
        self.user = user;
        let mut is_news = is_changed;
        for (name, _) in news {
            // Also if the value is unchanged: a late message about an earlier event must not change it.
            is_news |= self.claims_told.insert(name, at_ms) != Some(at_ms);
        }
        Ok(is_news)
    }

    /// Moves to the provider's session of this `sid`, from a refreshed ID token.
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

    /// All `sid` values that find the session.
    pub(crate) fn sids(&self) -> impl Iterator<Item = &str> {
        self.provider_sid
            .iter()
            .chain(&self.earlier_sids)
            .map(String::as_str)
    }

    /// When the session expires if it is not used, by the given durations.
    pub(crate) fn expires_at_ms(&self, lifetime: &Lifetime) -> u64 {
        lifetime.expires_at_ms(self.created_at_ms, self.rolled_at_ms, self.not_after_ms)
    }

    /// When the session expires regardless of use, by the given durations.
    pub(crate) fn absolute_expires_at_ms(&self, lifetime: &Lifetime) -> u64 {
        lifetime.absolute_expires_at_ms(self.created_at_ms, self.not_after_ms)
    }

    /// Whether the session is valid: strictly before its end.
    pub(crate) fn is_valid(&self, lifetime: &Lifetime, now_ms: u64) -> bool {
        now_ms < self.expires_at_ms(lifetime)
    }
}
