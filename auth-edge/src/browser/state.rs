//! The state of the routes for scripts.

use std::ops::Deref;
use std::sync::Arc;

use super::analytics::Analytics;
use super::profile::refetch::ProfileRefetch;
use crate::http::protect::rate_limit::RateLimiter;
use crate::http::protect::shares::Shares;
use crate::http::shared::Shared;
use crate::route_table::Routes;

/// The state of the routes for scripts.
#[derive(Clone)]
pub(crate) struct Browser {
    /// State shared with the other parts of the edge.
    pub(crate) shared: Arc<Shared>,
    /// When `me` reads userinfo again.
    pub(crate) profile_refetch: ProfileRefetch,
    /// Claims left out of `user`.
    pub(crate) claim_filter: Vec<String>,
    /// How often a session may refetch its profile.
    pub(crate) refetch_limit: Arc<RateLimiter>,
    /// Forwards analytics; `None` if analytics is off.
    pub(crate) analytics: Option<Analytics>,
    /// Open session streams, by person.
    pub(crate) listening: Arc<Shares>,
    /// Calls that list or end sessions, by person.
    pub(crate) listing: Arc<Shares>,
    /// The rule for operators is part of the route table.
    pub(crate) routes: Routes,
    /// Since when this replica counts failed sign-ins, in milliseconds since the Unix epoch.
    pub(crate) counts_since_ms: u64,
}

impl Deref for Browser {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}
