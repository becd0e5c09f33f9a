//! State that several modules of the edge share: sessions, providers, addresses, clock, pages.
//!
//! A module's state derefs to it. Each worker has its own copy, so that cores do not share reference counts.

use std::sync::Arc;

use chassis::clock::Clock;

use crate::http::observe::Metrics;
use crate::http::pages::Pages;
use crate::providers::IdentityProviders;
use crate::providers::sites::Sites;
use crate::sessions::SessionRepository;
use crate::sessions::cookies::SessionCookies;
use crate::sessions::keys::DerivedKeys;
use crate::values::forwarded::TrustedProxies;

/// State that several modules of the edge share.
#[derive(Clone)]
pub(crate) struct Shared {
    /// Keys derived from the secrets.
    pub(crate) keys: DerivedKeys,
    /// The session cookie.
    pub(crate) cookies: SessionCookies,
    /// The session service.
    pub(crate) sessions: SessionRepository,
    /// The identity providers.
    pub(crate) providers: Arc<IdentityProviders>,
    /// The addresses at which browsers reach the product.
    pub(crate) sites: Sites,
    /// The proxies whose `X-Forwarded-*` headers the edge trusts.
    pub(crate) trusted_proxies: TrustedProxies,
    /// Wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// The edge's metrics.
    pub(crate) metrics: Metrics,
    /// The edge's own pages.
    pub(crate) pages: Pages,
}
