//! The cookies of pending sign-ins: names, finds, adds, evicts and clears them.
//!
//! Invariants
//! - Together they stay under [`MAX_TOTAL_BYTES`]: the oldest is evicted first, and two always fit.
//! - A cookie that cannot be opened counts as the oldest. The next sign-in clears it.
//! - A callback finds exactly the sign-in that its state names, and touches no other.
//!
//! [`reminders`] for the next sign-in have the same name prefix.

pub(crate) mod reminders;

use axum::http::{HeaderMap, HeaderValue};
use chassis::random::NoRandomness;
use oidc::ResponseMode;

use crate::providers::sites::Sites;
use crate::sessions::cookies;
use crate::sessions::keys::DerivedKeys;
use crate::sign_in::transaction::{Transaction, id_of_state, open_return_to};
use crate::values::refusal::RefusalReason;
use crate::values::return_to::ReturnTo;

/// Most bytes of the names and values of all transaction cookies: every browser and proxy accepts them.
const MAX_TOTAL_BYTES: usize = 4000;
/// Most cookies cleared in one answer, so that a hostile request cannot inflate its headers.
const MAX_CLEARED: usize = 64;

/// Writes and reads transaction cookies.
#[derive(Clone)]
pub(crate) struct PendingSignIns {
    keys: DerivedKeys,
    sites: Sites,
    prefix: String,
    duration_secs: u64,
    secure: bool,
    partitioned: bool,
}

impl PendingSignIns {
    /// Names the cookies as the prefix rules demand: `__Host-` on https.
    #[must_use]
    pub(crate) fn new(keys: DerivedKeys, sites: Sites, base_name: &str, duration_secs: u64) -> Self {
        let secure = sites.main().base_url.scheme() == "https";
        let host_prefix = if secure { "__Host-" } else { "" };
        let prefix = format!("{host_prefix}{base_name}_login_");
        Self {
            keys,
            sites,
            prefix,
            duration_secs,
            secure,
            partitioned: false,
        }
    }

    /// The same cookies, one jar for each site that embeds the product if `partitioned`.
    #[must_use]
    pub(crate) fn partitioned(self, partitioned: bool) -> Self {
        Self { partitioned, ..self }
    }

    /// Posted answers are cross-site POSTs, for which browsers send only `SameSite=None; Secure` cookies. Frames of
    /// other sites get only such cookies too.
    fn attributes(&self, mode: ResponseMode) -> &'static str {
        match (mode, self.secure) {
            _ if self.partitioned => "; Path=/; HttpOnly; Secure; SameSite=None; Partitioned",
            (ResponseMode::FormPost, _) => "; Path=/; HttpOnly; Secure; SameSite=None",
            (ResponseMode::Query, true) => "; Path=/; HttpOnly; Secure; SameSite=Lax",
            (ResponseMode::Query, false) => "; Path=/; HttpOnly; SameSite=Lax",
        }
    }

    /// Whether a cookie of this name is one of ours.
    #[must_use]
    pub(crate) fn owns(&self, name: &str) -> bool {
        name.starts_with(&self.prefix)
    }

    /// The `Set-Cookie` values that add a transaction with this response mode: first those that clear older
    /// transactions, then its own.
    pub(crate) fn add(
        &self,
        headers: &HeaderMap,
        transaction: &Transaction,
        mode: ResponseMode,
        now_ms: u64,
    ) -> Result<Vec<HeaderValue>, NoRandomness> {
        let name = self.name_of(&transaction.state);
        let value = transaction.seal(&self.keys, &name)?;
        let mut room = MAX_TOTAL_BYTES.saturating_sub(name.len() + value.len() + 1);
        let mut set = Vec::new();
        let mut kept: Vec<(u64, &str, usize)> = Vec::new();
        for (name, value) in cookies::pairs(headers).filter(|(name, _)| self.may_clear(name)) {
            match Transaction::open(&self.keys, name, value) {
                Some(found) if !found.expired(now_ms, self.duration_secs) => {
                    kept.push((found.record.started_at_ms, name, name.len() + value.len()));
                }
                _ => set.push(name),
            }
        }
        kept.sort_by_key(|(started_at_ms, ..)| std::cmp::Reverse(*started_at_ms));
        for (_, name, bytes) in kept {
            match room.checked_sub(bytes) {
                // A cookie that does not fit evicts all older ones: eviction is by age.
                None => {
                    room = 0;
                    set.push(name);
                }
                Some(left) => room = left,
            }
        }
        let mut all: Vec<HeaderValue> = set
            .into_iter()
            .take(MAX_CLEARED)
            .filter_map(|name| self.clear_named(name, mode))
            .collect();
        let attributes = self.attributes(mode);
        all.extend(cookies::set_cookie(&name, &value, attributes, self.duration_secs));
        Ok(all)
    }

    /// The transaction that a state names: present once, sealed by us, unexpired, its state equal.
    ///
    /// # Errors
    /// The reason, and the return address of an expired transaction, which a retry may use.
    pub(crate) fn find(
        &self,
        headers: &HeaderMap,
        state: &str,
        now_ms: u64,
    ) -> Result<Transaction, (RefusalReason, Option<ReturnTo>)> {
        let name = self.name_of(state);
        let base_url = &self.sites.of(headers).base_url;
        let found = cookies::only_value(headers, &name)
            .and_then(|value| Transaction::open(&self.keys, &name, value))
            .and_then(|mut found| found.accept_state(&self.keys, base_url, state).then_some(found))
            .ok_or((RefusalReason::UnknownTransaction, None))?;
        if found.expired(now_ms, self.duration_secs) {
            return Err((RefusalReason::ExpiredTransaction, found.return_to));
        }
        Ok(found)
    }

    /// The destination in the state of a sign-in whose transaction is gone. The edge uses it only to continue
    /// or to retry: any browser may send it.
    #[must_use]
    pub(crate) fn hint(&self, headers: &HeaderMap, state: &str) -> Option<ReturnTo> {
        let site = self.sites.of(headers);
        let hint = open_return_to(&self.keys, &site.base_url, state)?;
        site.return_to(hint.as_str())
    }

    /// The `Set-Cookie` value that clears the transaction of this state.
    #[must_use]
    pub(crate) fn clear(&self, state: &str, mode: ResponseMode) -> Option<HeaderValue> {
        self.clear_named(&self.name_of(state), mode)
    }

    fn name_of(&self, state: &str) -> String {
        format!("{}{}", self.prefix, id_of_state(state))
    }

    /// The `Set-Cookie` values that clear the request's pending sign-ins and reminders, except
    /// `Reminder::Left`. At sign-out, no data of the user remains.
    #[must_use]
    pub(crate) fn clear_all(&self, headers: &HeaderMap, mode: ResponseMode) -> Vec<HeaderValue> {
        let ours = cookies::pairs(headers).filter(|(name, _)| self.may_clear(name));
        let ours = ours.take(MAX_CLEARED);
        ours.filter_map(|(name, _)| self.clear_named(name, mode))
            .collect()
    }

    fn clear_named(&self, name: &str, mode: ResponseMode) -> Option<HeaderValue> {
        cookies::set_cookie(name, "", self.attributes(mode), 0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::http::header;
    use chassis::secret::Secret;
    use url::Url;

    use super::*;
    use crate::sign_in::transaction::SignInPlace;
    use crate::values::allowed_parameters::{MAX_ACR_VALUES_BYTES, MAX_ORGANIZATION_BYTES};

    fn base() -> Url {
        Url::parse("https://app.example/").unwrap()
    }

    pub(super) fn pending(secret: &str) -> PendingSignIns {
        PendingSignIns::new(
            DerivedKeys::new(&[Secret::new(secret.to_owned())]),
            Sites::only(&base(), "/api/auth/login"),
            "session",
            3600,
        )
    }

    fn begin(now_ms: u64) -> Transaction {
        begin_to(&pending("secret"), None, now_ms)
    }

    fn begin_to(pending: &PendingSignIns, return_to: Option<ReturnTo>, now_ms: u64) -> Transaction {
        let keys = &pending.keys;
        Transaction::begin(
            keys,
            "https://idp.example",
            return_to,
            SignInPlace::Window,
            now_ms,
        )
        .unwrap()
    }

    #[derive(Default)]
    pub(super) struct Jar(BTreeMap<String, String>);

    impl Jar {
        pub(super) fn take(&mut self, set: &[HeaderValue]) {
            for cookie in set {
                let text = cookie.to_str().unwrap();
                let (pair, attributes) = text.split_once(';').unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                if attributes.contains("Max-Age=0") {
                    self.0.remove(name);
                } else {
                    self.0.insert(name.to_owned(), value.to_owned());
                }
            }
        }

        pub(super) fn headers(&self) -> HeaderMap {
            let line = self
                .0
                .iter()
                .map(|(n, v)| format!("{n}={v}"))
                .collect::<Vec<_>>()
                .join("; ");
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::try_from(line).unwrap());
            headers
        }

        pub(super) fn bytes(&self) -> usize {
            self.0.iter().map(|(n, v)| n.len() + v.len()).sum()
        }
    }

    pub(super) fn start(
        pending: &PendingSignIns,
        jar: &mut Jar,
        return_to: &str,
        now_ms: u64,
    ) -> Transaction {
        let transaction = begin_to(pending, ReturnTo::parse(&base(), return_to), now_ms);
        jar.take(
            &pending
                .add(&jar.headers(), &transaction, ResponseMode::Query, now_ms)
                .unwrap(),
        );
        transaction
    }

    // conformance: B-011
    #[test]
    fn a_hundred_abandoned_sign_ins_stay_under_the_limit_and_the_oldest_goes_first() {
        let (pending, mut jar) = (pending("secret"), Jar::default());
        let all: Vec<_> = (0..100)
            .map(|n| start(&pending, &mut jar, "/a", 1_000 + n))
            .collect();
        assert!(jar.bytes() < MAX_TOTAL_BYTES, "{} bytes", jar.bytes());
        assert!(jar.0.len() >= 20);
        let newest = all.iter().rev().take(jar.0.len());
        for transaction in newest {
            assert!(pending.find(&jar.headers(), &transaction.state, 2_000).is_ok());
        }
        assert!(pending.find(&jar.headers(), &all[0].state, 2_000).is_err());
    }

    #[test]
    fn no_script_reads_a_pending_sign_in_and_no_plain_connection_carries_it() {
        let set = |mode| {
            let pending = pending("secret");
            let set = pending.add(&HeaderMap::new(), &begin(0), mode, 0).unwrap();
            set[0].to_str().unwrap().split_once("; ").unwrap().1.to_owned()
        };
        assert_eq!(
            set(ResponseMode::Query),
            "Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=3600"
        );
        assert_eq!(
            set(ResponseMode::FormPost),
            "Path=/; HttpOnly; Secure; SameSite=None; Max-Age=3600"
        );
    }

    #[test]
    fn two_with_the_longest_of_everything_always_fit() {
        let (pending, mut jar) = (pending("secret"), Jar::default());
        let path = format!("/{}", "a".repeat(1024 - base().as_str().len()));
        let mut add = |now_ms: u64| {
            let mut transaction = begin_to(&pending, ReturnTo::parse(&base(), &path), now_ms);
            transaction.record.max_age = Some(u64::MAX - 1);
            transaction.record.session = Some("a".repeat(32));
            transaction.record.organization = Some("o".repeat(MAX_ORGANIZATION_BYTES));
            transaction.record.acr_values = Some("a".repeat(MAX_ACR_VALUES_BYTES));
            jar.take(
                &pending
                    .add(&jar.headers(), &transaction, ResponseMode::Query, now_ms)
                    .unwrap(),
            );
            transaction.state
        };
        let (first, second) = (add(1), add(2));
        assert!(jar.bytes() < MAX_TOTAL_BYTES, "{} bytes", jar.bytes());
        assert!(pending.find(&jar.headers(), &first, 3).is_ok());
        assert!(pending.find(&jar.headers(), &second, 3).is_ok());
    }

    #[test]
    fn ten_restored_tabs_and_more_keep_their_addresses_however_long_they_are() {
        for (tabs, bytes) in [(10, 400), (5, 900), (20, 990)] {
            let (pending, mut jar) = (pending("secret"), Jar::default());
            let path = |tab: u64| format!("/{tab}?q={}", "a".repeat(bytes));
            let begun: Vec<_> = (0..tabs)
                .map(|tab| start(&pending, &mut jar, &path(tab), 1_000 + tab))
                .collect();
            assert!(jar.bytes() < MAX_TOTAL_BYTES, "{} bytes", jar.bytes());
            for (tab, begun) in (0..).zip(&begun) {
                let found = pending.find(&jar.headers(), &begun.state, 2_000).unwrap();
                let address = found.return_to.unwrap();
                assert!(address.as_str().ends_with(&path(tab)), "{address:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_opened_or_has_expired_is_cleaned_up_by_the_next_sign_in() {
        let (ours, mut jar) = (pending("secret"), Jar::default());
        start(&pending("another secret"), &mut jar, "/a", 1_000);
        start(&ours, &mut jar, "/a", 1_000);
        jar.0
            .insert("__Host-session_login_junk".to_owned(), "junk".to_owned());
        let fresh = start(&ours, &mut jar, "/a", 1_000 + 3_600_000);
        assert_eq!(jar.0.len(), 1);
        assert!(ours.find(&jar.headers(), &fresh.state, 1_000 + 3_600_000).is_ok());
    }

    #[test]
    fn a_hostile_number_of_cookies_does_not_blow_up_the_answer() {
        let pending = pending("secret");
        let line = (0..500)
            .map(|n| format!("__Host-session_login_{n}=x"))
            .collect::<Vec<_>>()
            .join("; ");
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::try_from(line).unwrap());
        let set = pending
            .add(&headers, &begin(1), ResponseMode::FormPost, 1)
            .unwrap();
        assert_eq!(set.len(), MAX_CLEARED + 1);
    }

    #[test]
    fn a_state_finds_only_its_own_transaction_and_only_when_it_came_once() {
        let (pending, mut jar) = (pending("secret"), Jar::default());
        let transaction = start(&pending, &mut jar, "/a", 1_000);
        assert!(matches!(
            pending.find(&jar.headers(), "another", 2_000),
            Err((RefusalReason::UnknownTransaction, None))
        ));
        assert!(matches!(
            pending.find(&HeaderMap::new(), &transaction.state, 2_000),
            Err((RefusalReason::UnknownTransaction, None))
        ));
        let mut doubled = jar.headers();
        doubled.append(header::COOKIE, jar.headers().get(header::COOKIE).unwrap().clone());
        assert!(matches!(
            pending.find(&doubled, &transaction.state, 2_000),
            Err((RefusalReason::UnknownTransaction, None))
        ));
        let late = pending.find(&jar.headers(), &transaction.state, 1_000 + 3_600_000);
        assert!(matches!(late, Err((RefusalReason::ExpiredTransaction, _))));
    }

    #[test]
    fn form_post_needs_none_and_secure_on_these_cookies() {
        let keys = DerivedKeys::new(&[Secret::new("secret".to_owned())]);
        let base = Url::parse("http://localhost:3000/").unwrap();
        let pending = PendingSignIns::new(keys, Sites::only(&base, "/login"), "session", 60);
        let set = pending
            .add(&HeaderMap::new(), &begin(1), ResponseMode::FormPost, 1)
            .unwrap();
        let text = set[0].to_str().unwrap();
        assert!(
            text.starts_with("session_login_") && text.contains("; Secure; SameSite=None"),
            "{text}"
        );
    }
}
