//! The state every handler takes: what the edge is made of, put together once.
//!
//! Deliberately absent: anything that cannot be lost. A restarted edge goes on where the last one stopped.

use std::ops::Deref;
use std::sync::Arc;

use axum::http::HeaderMap;
use chassis::address;
use chassis::clock::Clock;
use session_proto::client::SessionClient;
use session_proto::timestamp;
use session_proto::v1::Device;
use tokio::sync::Semaphore;

use crate::browser::analytics::Analytics;
use crate::sessions::cookies::SessionCookies;
use crate::gateway::Gateway;
use crate::browser::grpc_web::{self, PerPerson};
use crate::sessions::keys::Keys;
use crate::http::observe::Metrics;
use crate::browser::profile::Refetches;
use crate::http::protect::csrf::FormTokens;
use crate::values::forwarded::{TrustedProxies, UNKNOWN};
use crate::http::protect::load::Places;
use crate::http::protect::rate_limit::RateLimiter;
use crate::providers::{self, Providers};
use crate::sessions::{SessionCache, Sessions};
use crate::settings::EdgeSettings;
use crate::sign_in::background::MAX_BACKGROUND;
use crate::sign_in::pending::PendingSignIns;
use crate::sign_in::redeemed::Redeemed;
use crate::providers::sites::Sites;

/// Longest `User-Agent` kept, in bytes, as the session API says.
const MAX_USER_AGENT_BYTES: usize = 512;

/// The edge. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Edge(Arc<Share>);

/// What the clones of one scheduler count.
struct Share(Arc<Parts>);

/// What the edge is made of.
pub struct Parts {
    /// Settings, as read at the start.
    pub settings: EdgeSettings,
    /// Keys derived from the secrets.
    pub keys: Keys,
    /// The session cookie.
    pub cookies: SessionCookies,
    /// Cookies of pending sign-ins.
    pub pending: PendingSignIns,
    /// The session service.
    pub sessions: Sessions,
    /// The identity providers.
    pub providers: Providers,
    /// The addresses browsers know the product by.
    pub sites: Sites,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: TrustedProxies,
    /// Tokens of our own forms.
    pub form_tokens: FormTokens,
    /// Logins per address.
    pub login_limit: RateLimiter,
    /// Callbacks per address.
    pub callback_limit: RateLimiter,
    /// Back-channel logouts per address.
    pub back_channel_limit: RateLimiter,
    /// Front-channel logouts per address.
    pub front_channel_limit: RateLimiter,
    /// Profiles that are read anew.
    pub refetches: Refetches,
    /// Transactions whose code this process has redeemed.
    pub redeemed: Redeemed,
    /// Places for sessions that are ended in the background.
    pub background: Arc<Semaphore>,
    /// Metrics.
    pub metrics: Metrics,
    /// What lies behind the edge.
    pub gateway: Gateway,
    /// The way to the analytics server; none when off.
    pub analytics: Option<Analytics>,
    /// Places for requests that are worked on.
    pub places: Places,
    /// Who listens to their sessions.
    pub listening: Arc<PerPerson>,
    /// Calls that list or end sessions, by person.
    pub listing: Arc<PerPerson>,
}

impl Deref for Edge {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0.0
    }
}

/// What the edge needs besides its settings.
pub struct Surroundings {
    /// The session service.
    pub session_client: SessionClient,
    /// Sessions remembered, if any are to be.
    pub session_cache: Option<SessionCache>,
    /// The identity providers.
    pub providers: Providers,
    /// Keys derived from the secrets.
    pub keys: Keys,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Metrics.
    pub metrics: Metrics,
    /// What lies behind the edge.
    pub gateway: Gateway,
}

impl Edge {
    /// Puts the edge together. Does no IO.
    #[must_use]
    pub fn new(settings: EdgeSettings, surroundings: Surroundings) -> Self {
        let Surroundings {
            session_client,
            session_cache,
            providers,
            keys,
            clock,
            metrics,
            gateway,
        } = surroundings;
        let sites = providers::sites(&settings);
        let cookie = settings.cookie.clone();
        let cookies = SessionCookies::new(cookie, keys.clone()).on(sites.clone());
        let pending = PendingSignIns::new(
            keys.clone(),
            sites.clone(),
            &settings.cookie.name,
            settings.transaction_duration_secs,
        );
        let sessions = Sessions::new(session_client, cookies.clone(), Arc::clone(&clock), session_cache);
        let parts = Parts {
            trusted_proxies: TrustedProxies::new(settings.trusted_proxies.clone()),
            form_tokens: FormTokens::new(keys.clone()),
            login_limit: RateLimiter::new(settings.rate_limit_login),
            callback_limit: RateLimiter::new(settings.rate_limit_login),
            back_channel_limit: RateLimiter::new(BACK_CHANNEL_PER_MINUTE),
            front_channel_limit: RateLimiter::new(settings.rate_limit_login),
            refetches: Refetches::default(),
            redeemed: Redeemed::new(settings.transaction_duration_secs),
            background: Arc::new(Semaphore::new(MAX_BACKGROUND)),
            analytics: settings.analytics.clone().map(Analytics::new),
            places: Places::new(
                settings.protection.max_concurrent_requests,
                settings.protection.share,
            ),
            listening: PerPerson::new(grpc_web::LISTENING_MAX),
            listing: PerPerson::new(grpc_web::LISTING_MAX),
            settings,
            keys,
            cookies,
            pending,
            sessions,
            providers,
            sites,
            clock,
            metrics,
            gateway,
        };
        Self(Arc::new(Share(Arc::new(parts))))
    }

    /// The same edge, for a scheduler of its own: its clones are counted apart from the others'.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self(Arc::new(Share(Arc::clone(&self.0.0))))
    }

    /// The browser of a request, as sessions remember it.
    #[must_use]
    pub fn device(&self, headers: &HeaderMap, peer: std::net::IpAddr) -> Device {
        let agent = headers
            .get(axum::http::header::USER_AGENT)
            .map(|value| value.as_bytes())
            .unwrap_or_default();
        let address = self.trusted_proxies.client_address(peer, headers);
        Device {
            user_agent: shown(&agent[..agent.len().min(MAX_USER_AGENT_BYTES)]),
            address: if address == UNKNOWN {
                String::new()
            } else {
                address::text(address)
            },
            at: Some(timestamp::from_ms(self.clock.now_ms())),
        }
    }
}

/// What a browser calls itself, without control characters.
fn shown(agent: &[u8]) -> String {
    let text = String::from_utf8_lossy(agent);
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.into_owned();
    }
    // Cutting may have made a replacement character of a half one.
    let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    whole.chars().filter(|c| !c.is_control()).collect()
}

/// A provider that signs out a whole company may send many; somebody who guesses sends more.
const BACK_CHANNEL_PER_MINUTE: u64 = 6_000;
