//! What scripts in a browser ask for: who is signed in, where, and what ends.

pub mod access_token;
pub mod analytics;
pub mod client_keys;
pub mod grpc_web;
pub mod profile;
pub mod status;

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::Clock;

use self::analytics::Analytics;
use self::grpc_web::PerPerson;
use self::profile::{ProfileRefetch, Refetches};
use crate::http::device::Devices;
use crate::providers::Providers;
use crate::providers::sites::Sites;
use crate::sessions::Sessions;
use crate::sessions::cookies::SessionCookies;
use crate::sessions::keys::Keys;

/// What the routes for scripts are made of.
#[derive(Clone)]
pub struct Browser {
    /// When `me` reads userinfo anew.
    pub profile_refetch: ProfileRefetch,
    /// Claims left out of `user`.
    pub claim_filter: Vec<String>,
    /// How long a message may let us wait.
    pub message_timeout: Duration,
    /// Keys derived from the secrets.
    pub keys: Keys,
    /// The session cookie.
    pub cookies: SessionCookies,
    /// The session service.
    pub sessions: Sessions,
    /// The identity providers.
    pub providers: Arc<Providers>,
    /// The addresses browsers know the product by.
    pub sites: Sites,
    /// Tells browsers.
    pub devices: Devices,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Profiles that are read anew.
    pub refetches: Arc<Refetches>,
    /// The way to the analytics server; none when off.
    pub analytics: Option<Analytics>,
    /// Who listens to their sessions.
    pub listening: Arc<PerPerson>,
    /// Calls that list or end sessions, by person.
    pub listing: Arc<PerPerson>,
}
