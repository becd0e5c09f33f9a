//! What more than one room of the edge uses: the sessions, the providers, the addresses, the clock, the pages.
//!
//! A room's state holds it and gives it by `Deref`. Each worker has one of its own, so that no other core counts its references.

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

/// What more than one room uses.
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
    /// The addresses browsers know the product by.
    pub(crate) sites: Sites,
    /// Whose `X-Forwarded-*` headers are believed.
    pub(crate) trusted_proxies: TrustedProxies,
    /// Wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// The edge's metrics.
    pub(crate) metrics: Metrics,
    /// The edge's own pages.
    pub(crate) pages: Pages,
}
