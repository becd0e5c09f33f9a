//! Reminders: cookies for the browser's next sign-in. A silent sign-in found no user, or a session does not
//! meet the route's requirements although its sign-in requested them: the next sign-in would loop. Or the
//! user signed out here only, so the provider has to ask.
//!
//! A sign-in requests all that its route requires of a sign-in ([`crate::sign_in::login_parameters`]). If its
//! session still does not meet this, the browser stores a key for this session and these requirements
//! ([`Requirements::unmet_key`](crate::route_table::requirements::Requirements::unmet_key)). A guard that
//! receives the key rejects the request instead of redirecting to the sign-in.
//!
//! Invariants
//! - A reminder grants no access. It prevents a redirect to the provider, or has the provider ask.
//! - The next sign-in clears reminders. [`Reminder::Left`] stays until a sign-in there succeeds.
//!
//! Deliberately absent: a seal. A forged reminder affects only the browser that sends it.

use axum::http::{HeaderMap, HeaderValue};
use oidc::ResponseMode;

use super::PendingSignIns;
use crate::route_table::requirements::Requirements;
use crate::sessions::CachedSession;
use crate::sessions::cookies::{self, SessionId};
use crate::sign_in::SignIn;
use crate::sign_in::transaction::Transaction;
use crate::values::refusal::RefusalReason;
use crate::values::return_to::ReturnTo;

/// Last part of the cookie's name after a silent sign-in. Every ID of a state is longer.
const SILENT: &str = "silent";
/// How long the browser remembers that a silent sign-in found no user, in seconds. Longer than a page and its
/// redirects load, shorter than a user needs to sign in elsewhere and return.
const SILENT_SECS: u64 = 60;
/// Last part of the cookie's name for unmet requirements.
const UNMET: &str = "lacking";
/// How long the browser remembers unmet requirements, in seconds. Longer than a user reads the page about them and
/// retries, shorter than an operator needs to change the provider.
const UNMET_SECS: u64 = 300;

/// Prefix of the name's last part after a sign-out only here; the provider's ID follows. No state ID has a dot.
const LEFT: &str = "left.";
/// How long the provider has to ask after a sign-out here only, in seconds: as long as its sessions last.
const LEFT_SECS: u64 = 30 * 24 * 3600;

/// A fact that a browser stores for its next sign-in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reminder<'a> {
    /// A recent silent sign-in at this provider found no user.
    Silent(&'a str),
    /// A sign-in requested the requirements of this key, and its session does not meet them.
    Unmet(&'a str),
    /// The user signed out here and may still be signed in at this provider.
    Left(&'a str),
}

impl<'a> Reminder<'a> {
    /// The last part of the cookie's name, its value, and its lifetime in seconds.
    fn cookie(self) -> (String, &'a str, u64) {
        match self {
            Self::Silent(provider) => (SILENT.to_owned(), provider, SILENT_SECS),
            Self::Unmet(key) => (UNMET.to_owned(), key, UNMET_SECS),
            Self::Left(provider) => (format!("{LEFT}{provider}"), "1", LEFT_SECS),
        }
    }
}

impl PendingSignIns {
    /// The `Set-Cookie` value that stores this reminder in the browser.
    #[must_use]
    pub(crate) fn remember(&self, reminder: Reminder<'_>) -> Option<HeaderValue> {
        let (name, value, secs) = reminder.cookie();
        let name = format!("{}{name}", self.prefix);
        cookies::set_cookie(&name, value, self.attributes(ResponseMode::Query), secs)
    }

    /// Whether the browser has this reminder.
    #[must_use]
    pub(crate) fn is_reminded(&self, headers: &HeaderMap, reminder: Reminder<'_>) -> bool {
        let (name, value, _) = reminder.cookie();
        cookies::only_value(headers, &format!("{}{name}", self.prefix)) == Some(value)
    }

    /// The `Set-Cookie` value that clears [`Reminder::Left`], if the browser has it.
    #[must_use]
    pub(crate) fn clear_left(&self, headers: &HeaderMap, provider: &str) -> Option<HeaderValue> {
        let name = format!("{}{LEFT}{provider}", self.prefix);
        cookies::only_value(headers, &name)?;
        self.clear_named(&name, ResponseMode::Query)
    }

    /// Whether the start of a sign-in and a sign-out may clear a cookie of this name.
    pub(super) fn may_clear(&self, name: &str) -> bool {
        name.strip_prefix(&self.prefix)
            .is_some_and(|rest| !rest.starts_with(LEFT))
    }
}

impl SignIn {
    /// The key of requirements that the session does not meet although its sign-in requested them. `None` if
    /// it meets all, or if no sign-in can help. `proved_anew`: the sign-in requested a new authentication.
    #[must_use]
    pub(in crate::sign_in) fn unmet_after_sign_in(
        &self,
        id: &SessionId,
        session: &CachedSession,
        return_to: &ReturnTo,
        proved_anew: bool,
    ) -> Option<String> {
        // Without a route (a forward-auth check without a rule), only the session's `sign_in_demand` applies.
        let route = self.routes.load().route_of(return_to);
        let none = Requirements::default();
        let requirements = route.as_deref().map_or(&none, |route| &route.requirements);
        let missing = requirements
            .check_all(session, self.clock.now_ms(), &self.providers)
            .err()?;
        // The sign-in requested what the demand requires only if the earlier session had the same demand.
        let demand_is_unanswered = session.sign_in_demand.is_some() && !proved_anew;
        let requirements = requirements.with_sign_in_demand(Some(session));
        (missing.is_of_sign_in() && !demand_is_unanswered).then(|| requirements.unmet_key(id))
    }

    /// The key of requirements that the remaining session will not meet after a rejected sign-in. The provider left
    /// out the requested `auth_time`, or confirmed none of the requested classes.
    #[must_use]
    pub(in crate::sign_in) fn unmet_after_refusal(
        &self,
        id: &SessionId,
        transaction: &Transaction,
        reason: RefusalReason,
    ) -> Option<String> {
        let route = self.routes.load().route_of(transaction.return_to.as_ref()?);
        let mut requirements = route.map_or_else(Requirements::default, |route| route.requirements.clone());
        if transaction.record.max_age == Some(0) {
            // The same as for a session with a `sign_in_demand`.
            requirements.max_age_secs = Some(0);
            let classes = transaction
                .record
                .acr_values
                .iter()
                .flat_map(|all| all.split(' '));
            requirements.acr = classes.map(str::to_owned).collect();
        }
        let is_required = match reason {
            RefusalReason::TokenNoAuthTime => requirements.max_age_secs.is_some(),
            RefusalReason::TokenAcr => !requirements.acr.is_empty(),
            _ => false,
        };
        is_required.then(|| requirements.unmet_key(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_in::pending::tests::{Jar, pending, start};

    #[test]
    fn a_reminder_lasts_until_the_next_sign_in_begins() {
        let (pending, mut jar) = (pending("secret"), Jar::default());
        assert!(!pending.is_reminded(&jar.headers(), Reminder::Silent("a")));
        assert!(!pending.is_reminded(&jar.headers(), Reminder::Unmet("x")));
        jar.take(&[
            pending.remember(Reminder::Silent("a")).unwrap(),
            pending.remember(Reminder::Unmet("x")).unwrap(),
        ]);
        assert!(pending.is_reminded(&jar.headers(), Reminder::Silent("a")));
        assert!(
            !pending.is_reminded(&jar.headers(), Reminder::Silent("b")),
            "another provider may be asked"
        );
        assert!(pending.is_reminded(&jar.headers(), Reminder::Unmet("x")));
        assert!(
            !pending.is_reminded(&jar.headers(), Reminder::Unmet("y")),
            "another demand may be made"
        );
        start(&pending, &mut jar, "/a", 1_000);
        assert!(!pending.is_reminded(&jar.headers(), Reminder::Silent("a")));
        assert!(!pending.is_reminded(&jar.headers(), Reminder::Unmet("x")));
    }

    #[test]
    fn that_the_provider_has_to_ask_outlives_what_begins_and_another_sign_out() {
        let (pending, mut jar) = (pending("secret"), Jar::default());
        jar.take(&[pending.remember(Reminder::Left("a")).unwrap()]);
        start(&pending, &mut jar, "/a", 1_000);
        let cleared = pending.clear_all(&jar.headers(), ResponseMode::Query);
        jar.take(&cleared);
        assert!(pending.is_reminded(&jar.headers(), Reminder::Left("a")));
        assert!(
            !pending.is_reminded(&jar.headers(), Reminder::Left("b")),
            "another provider need not ask"
        );
        assert!(pending.clear_left(&jar.headers(), "b").is_none());
        jar.take(&[pending.clear_left(&jar.headers(), "a").unwrap()]);
        assert_eq!(jar.bytes(), 0);
    }

    #[test]
    fn a_sign_out_takes_all_away_as_it_was_set() {
        for mode in [ResponseMode::Query, ResponseMode::FormPost] {
            let (pending, mut jar) = (pending("secret"), Jar::default());
            start(&pending, &mut jar, "/a", 1_000);
            start(&pending, &mut jar, "/b", 1_000);
            jar.take(&[pending.remember(Reminder::Unmet("x")).unwrap()]);
            let cleared = pending.clear_all(&jar.headers(), mode);
            assert_eq!(cleared.len(), 3);
            for cookie in &cleared {
                assert!(
                    cookie
                        .to_str()
                        .unwrap()
                        .ends_with(&format!("{}; Max-Age=0", pending.attributes(mode)))
                );
            }
            jar.take(&cleared);
            assert_eq!(jar.bytes(), 0);
        }
    }
}
