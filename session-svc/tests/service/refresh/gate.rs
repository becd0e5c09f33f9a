//! A provider that answers when the test allows it, without a network, so that time can be virtual.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chassis::secret::{Reloading, Secret};
use oidc::TokenHint;
use oidc::{
    ExpectedRefreshedIdToken, GrantError, IdToken, IdTokenError, ProviderError, RefreshedTokens,
    RevocationResult,
};
use prometheus::Registry;
use session_svc::refresh::ports::WaitingCaller;
use session_svc::refresh::{LEASE, Measures, RefreshProvider, Refresher};
use session_svc::session::{
    AccessToken, Device, Lifetime, Scope, Session, SessionId, SessionTokens, SessionValues, StoredToken,
};
use session_svc::session_store::SessionStore;
use session_svc::store::KeyValueStore;
use session_svc::vault::{KeyRing, Vault};
use tokio::sync::watch;
use tokio::time::Instant;

use super::support::{KEY, START_MS};

/// More than any chain of tasks that wake one another.
const LOOKS: usize = 100;

/// Answers when allowed: with tokens, or as unreachable.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) open: Arc<watch::Sender<Option<bool>>>,
    pub(crate) grants: Arc<watch::Sender<usize>>,
    wait_limit: Duration,
}

impl Gate {
    /// Closed; callers wait for ever.
    pub(crate) fn closed() -> Self {
        Self::closed_to(Duration::MAX)
    }

    /// Closed; callers wait this long.
    pub(crate) fn closed_to(wait_limit: Duration) -> Self {
        Self {
            open: Arc::new(watch::Sender::new(None)),
            grants: Arc::new(watch::Sender::new(0)),
            wait_limit,
        }
    }

    pub(crate) async fn wait_until_asked(&self) {
        let mut grants = self.grants.subscribe();
        grants.wait_for(|grants| *grants == 1).await.unwrap();
    }
}

#[async_trait]
impl RefreshProvider for Gate {
    fn wait_limit(&self) -> Duration {
        self.wait_limit
    }

    async fn refresh(&self, _: &str, now: u64) -> Result<RefreshedTokens, GrantError> {
        self.grants.send_modify(|grants| *grants += 1);
        let mut open = self.open.subscribe();
        let works = open.wait_for(Option::is_some).await.unwrap().unwrap();
        if !works {
            let endpoint = "token_endpoint";
            return Err(GrantError::Transient(ProviderError::Timeout(endpoint)));
        }
        Ok(RefreshedTokens {
            access_token: "fresh".to_owned(),
            token_type: "Bearer".to_owned(),
            scope: None,
            expires_at: now + 3_600,
            lifetime_secs: 3_600,
            refresh_token: Some("rotated".to_owned()),
            id_token: None,
        })
    }

    async fn validate(
        &self,
        _: &str,
        _: &ExpectedRefreshedIdToken<'_>,
        _: u64,
    ) -> Result<IdToken, IdTokenError> {
        unreachable!("it gives no ID tokens")
    }

    async fn revoke(&self, _: &str, _: TokenHint, _: u64) -> Result<RevocationResult, ProviderError> {
        Ok(RevocationResult::NotOffered)
    }
}

/// The refresher for the sessions of a store.
pub(crate) fn refresher(store: Arc<dyn KeyValueStore>, gate: &Gate) -> (SessionStore, Refresher) {
    let keys = Reloading::new(KeyRing::parse(&[Secret::new(KEY.to_owned())]).unwrap());
    let lifetime = Lifetime {
        rolling_ms: 86_400_000,
        absolute_ms: 604_800_000,
        roll_interval_ms: 0,
    };
    let session_store = SessionStore::new(store, Arc::new(Vault::new(keys)), lifetime);
    let measures = Measures::new(&Registry::new()).unwrap();
    let refresher = Refresher::new(session_store.clone(), gate.clone(), LEASE, 65_536, measures);
    (session_store, refresher)
}

/// A caller whose call begins now.
pub(crate) fn waiting_caller() -> WaitingCaller<'static> {
    WaitingCaller {
        caller: "",
        since: Instant::now(),
    }
}

/// Lets every task run that needs no time.
pub(crate) async fn settle() {
    for _ in 0..LOOKS {
        tokio::task::yield_now().await;
    }
}

/// A session whose access token has just expired.
pub(crate) fn expired() -> Session {
    let device = Device::default();
    let values = SessionValues {
        issuer: "https://issuer.example".to_owned(),
        subject: "alice".to_owned(),
        tokens: SessionTokens {
            access: Some(AccessToken {
                value: StoredToken::new("old".to_owned()),
                token_type: "Bearer".to_owned(),
                expires_at_ms: START_MS,
                lifetime_ms: AccessToken::LONG,
            }),
            scope: Scope::parse("openid"),
            refresh: Some(StoredToken::new("refresh".to_owned())),
            generation: 1,
            ..Default::default()
        },
        authenticated_at_ms: Some(START_MS),
        created_at_ms: START_MS,
        rolled_at_ms: START_MS,
        created_on: device.clone(),
        last_seen_on: device,
        ..Default::default()
    };
    Session::new(SessionId::from_bytes([7; 16]).handle(), values)
}
