//! What the routes for scripts share.

use std::ops::Deref;
use std::sync::Arc;

use super::analytics::Analytics;
use super::profile::refetch::ProfileRefetch;
use crate::http::protect::rate_limit::RateLimiter;
use crate::http::protect::shares::Shares;
use crate::http::shared::Shared;

/// What the routes for scripts are made of.
#[derive(Clone)]
pub(crate) struct Browser {
    /// What other rooms use too.
    pub(crate) shared: Arc<Shared>,
    /// When `me` reads userinfo anew.
    pub(crate) profile_refetch: ProfileRefetch,
    /// Claims left out of `user`.
    pub(crate) claim_filter: Vec<String>,
    /// How often a session may have its profile read again.
    pub(crate) refetch_limit: Arc<RateLimiter>,
    /// Passes analytics on; none when off.
    pub(crate) analytics: Option<Analytics>,
    /// Who listens to their sessions.
    pub(crate) listening: Arc<Shares>,
    /// Calls that list or end sessions, by person.
    pub(crate) listing: Arc<Shares>,
}

impl Deref for Browser {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}
