//! Reminders: cookies by which a browser remembers what the next sign-in has to know. A silent one found nobody, or its session
//! does not meet what a route requires although the sign-in was requested for it: another one would go round in circles. Or
//! the person signed out here alone: the provider, where they are still signed in, has to ask them.
//!
//! A sign-in that leads to a route requests all the route requires of one ([`crate::sign_in::login_parameters`]). What its
//! session does not meet all the same is remembered under a key that holds for this session and these requirements alone
//! ([`Requirements::unmet_key`](crate::route_table::requirements::Requirements::unmet_key)); a guard that meets the key
//! refuses instead of sending the visitor to sign in.
//!
//! Invariants
//! - A reminder grants nothing. It keeps a visitor from being sent to the provider, or has the provider ask.
//! - The next sign-in that begins takes reminders away. That the provider has to ask stays until a sign-in there succeeds.
//!
//! Deliberately absent: a seal, since who forges a reminder stops nobody but themselves.

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

/// Last part of the cookie's name after a silent sign-in: no ID of a state is that short.
const SILENT: &str = "silent";
/// How long a silent sign-in that found nobody is remembered, in seconds: longer than a page and its redirects take to load,
/// shorter than somebody needs to sign in elsewhere and come back.
const SILENT_SECS: u64 = 60;
/// Last part of the cookie's name for requirements that stay unmet.
const UNMET: &str = "lacking";
/// How long unmet requirements are remembered, in seconds: longer than somebody reads the page that says so and tries again,
/// shorter than a provider takes to be set up otherwise.
const UNMET_SECS: u64 = 300;

/// Begins the last part of the cookie's name after a sign-out here alone; the provider's ID follows. No ID of a state has a dot.
const LEFT: &str = "left.";
/// How long the provider has to ask after a sign-out here alone, in seconds: as long as providers keep people signed in.
const LEFT_SECS: u64 = 30 * 24 * 3600;

/// What a browser remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reminder<'a> {
    /// A silent sign-in at this provider found nobody a moment ago.
    Silent(&'a str),
    /// A sign-in was requested for the requirements of this key, and its session does not meet them.
    Unmet(&'a str),
    /// The person signed out here and may still be signed in at this provider.
    Left(&'a str),
}

impl<'a> Reminder<'a> {
    /// The last part of its cookie's name, its value, and the seconds it lasts.
    fn cookie(self) -> (String, &'a str, u64) {
        match self {
            Self::Silent(provider) => (SILENT.to_owned(), provider, SILENT_SECS),
            Self::Unmet(key) => (UNMET.to_owned(), key, UNMET_SECS),
            Self::Left(provider) => (format!("{LEFT}{provider}"), "1", LEFT_SECS),
        }
    }
}

impl PendingSignIns {
    /// The `Set-Cookie` value that has the browser remember this.
    #[must_use]
    pub(crate) fn remember(&self, reminder: Reminder<'_>) -> Option<HeaderValue> {
        let (name, value, secs) = reminder.cookie();
        let name = format!("{}{name}", self.prefix);
        cookies::set_cookie(&name, value, self.attributes(ResponseMode::Query), secs)
    }

    /// Whether the browser remembers this.
    #[must_use]
    pub(crate) fn is_reminded(&self, headers: &HeaderMap, reminder: Reminder<'_>) -> bool {
        let (name, value, _) = reminder.cookie();
        cookies::only_value(headers, &format!("{}{name}", self.prefix)) == Some(value)
    }

    /// The `Set-Cookie` value that ends [`Reminder::Left`], if the browser has something to forget.
    #[must_use]
    pub(crate) fn clear_left(&self, headers: &HeaderMap, provider: &str) -> Option<HeaderValue> {
        let name = format!("{}{LEFT}{provider}", self.prefix);
        cookies::only_value(headers, &name)?;
        self.clear_named(&name, ResponseMode::Query)
    }

    /// Whether a cookie of this name may be taken away when a sign-in begins, and at a sign-out.
    pub(super) fn may_clear(&self, name: &str) -> bool {
        name.strip_prefix(&self.prefix)
            .is_some_and(|rest| !rest.starts_with(LEFT))
    }
}

impl SignIn {
    /// The key of what the session of a sign-in that leads here does not meet although the sign-in was requested for it;
    /// `None` if it meets all, or misses what no sign-in brings. `proved_anew` says whether the person was to prove anew who they are.
    #[must_use]
    pub(in crate::sign_in) fn unmet_after_sign_in(
        &self,
        id: &SessionId,
        session: &CachedSession,
        return_to: &ReturnTo,
        proved_anew: bool,
    ) -> Option<String> {
        // Where no route of ours is, a check without a rule demands what the session owes.
        let route = self.routes.load().route_of(return_to);
        let none = Requirements::default();
        let requirements = route.as_deref().map_or(&none, |route| &route.requirements);
        let missing = requirements
            .check_all(session, self.clock.now_ms(), &self.providers)
            .err()?;
        // What a session owes is known to its own sign-in if the one before it owed the same.
        let owes_news = session.sign_in_demand.is_some() && !proved_anew;
        let requirements = requirements.with_what_is_owed(Some(session));
        (missing.is_of_sign_in() && !owes_news).then(|| requirements.unmet_key(id))
    }

    /// The key of what the session that stays after a refused sign-in will not meet: the provider left out the `auth_time` that was
    /// requested, or confirmed none of the classes requested.
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
            // As a session demands it that owes a sign-in.
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
