//! What scripts in a browser ask for: who is signed in, where, and what ends.

pub(crate) mod access_token;
pub(crate) mod analytics;
pub(crate) mod client_keys;
pub(crate) mod grpc_web;
pub(crate) mod profile;
pub(crate) mod status;

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::Clock;
use chassis::metrics::LimitHits;

use self::analytics::Analytics;
use self::grpc_web::PerPerson;
use self::profile::ProfileRefetch;
use crate::http::device::Devices;
use crate::http::protect::rate_limit::RateLimiter;
use crate::providers::IdentityProviders;
use crate::providers::sites::Sites;
use crate::sessions::SessionRepository;
use crate::sessions::keys::DerivedKeys;

/// What the routes for scripts are made of.
#[derive(Clone)]
pub(crate) struct Browser {
    /// When `me` reads userinfo anew.
    pub(crate) profile_refetch: ProfileRefetch,
    /// Claims left out of `user`.
    pub(crate) claim_filter: Vec<String>,
    /// How long a message may let us wait.
    pub(crate) message_timeout: Duration,
    /// Keys derived from the secrets.
    pub(crate) keys: DerivedKeys,
    /// The session service.
    pub(crate) sessions: SessionRepository,
    /// The identity providers.
    pub(crate) providers: Arc<IdentityProviders>,
    /// The addresses browsers know the product by.
    pub(crate) sites: Sites,
    /// Tells browsers.
    pub(crate) devices: Devices,
    /// Wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// How often a session may have its profile read again.
    pub(crate) refetch_limit: Arc<RateLimiter>,
    /// Passes analytics on; none when off.
    pub(crate) analytics: Option<Analytics>,
    /// Who listens to their sessions.
    pub(crate) listening: Arc<PerPerson>,
    /// Calls that list or end sessions, by person.
    pub(crate) listing: Arc<PerPerson>,
    /// Counts limits that were hit.
    pub(crate) limits: LimitHits,
}
