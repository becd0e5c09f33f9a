//! The gateway's state.

use std::ops::Deref;
use std::sync::Arc;

use chassis::serve::Stopping;

use super::assertion::Assertions;
use super::bearer::memory::BearerTokens;
use super::claim_headers::OmittedHeaderLog;
use super::decision::Decisions;
use super::proxy::state::Proxy;
use crate::http::shared::Shared;
use crate::kept_form::KeptForms;
use crate::route_table::Routes;
use crate::route_table::upstream_headers::UpstreamHeaders;
use crate::sign_in::pending::PendingSignIns;

/// The state that all guards and upstreams share.
#[derive(Clone)]
pub(crate) struct Gateway {
    /// State shared with the other parts of the edge.
    pub(crate) shared: Arc<Shared>,
    /// Path of the login route.
    pub(crate) login_path: String,
    /// Whether browsers reach the edge by https.
    pub(crate) https: bool,
    /// Whether forward auth returns the access token.
    pub(crate) check_authorization: bool,
    /// The longest head of a forward-auth answer over HTTP, in bytes.
    pub(crate) check_head_bytes: usize,
    /// The identity headers of checks without a rule.
    pub(crate) check_headers: UpstreamHeaders,
    /// The guard and the upstream of each path.
    pub(crate) routes: Routes,
    /// Forwards requests to upstreams.
    pub(crate) proxy: Arc<Proxy>,
    /// How far the edge has stopped.
    pub(crate) stopping: Stopping,
    /// Signs the identity for upstreams, if keys are configured.
    pub(crate) assertions: Option<Assertions>,
    /// Left-out identity headers that were logged recently.
    pub(crate) omitted_header_log: OmittedHeaderLog,
    /// Verifies access tokens of API clients.
    pub(crate) bearer: Arc<BearerTokens>,
    /// Answers of decision points.
    pub(crate) decisions: Arc<Decisions>,
    /// Cookies of pending sign-ins.
    pub(crate) pending: PendingSignIns,
    /// Keeps forms during a sign-in.
    pub(crate) kept_forms: Arc<KeptForms>,
}

impl Deref for Gateway {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Gateway {
    /// Whether a cookie of this name belongs to the edge.
    pub(super) fn owns_cookie(&self, name: &str) -> bool {
        self.cookies.owns(name) || self.pending.owns(name) || self.kept_forms.people.owns(name)
    }
}
