//! What the gateway works with.

use std::ops::Deref;
use std::sync::Arc;

use chassis::serve::Stopping;

use super::assertion::Assertions;
use super::bearer::memory::BearerTokens;
use super::claim_headers::LeftOutHeaders;
use super::proxy::state::Proxy;
use crate::http::shared::Shared;
use crate::kept_form::KeptForms;
use crate::route_table::Routes;
use crate::sign_in::pending::PendingSignIns;

/// What lies behind the edge, and what leads there.
#[derive(Clone)]
pub(crate) struct Gateway {
    /// What other rooms use too.
    pub(crate) shared: Arc<Shared>,
    /// Path of the login route.
    pub(crate) login_path: String,
    /// Whether browsers reach the edge by https.
    pub(crate) https: bool,
    /// Whether forward auth hands out the access token.
    pub(crate) check_authorization: bool,
    /// The longest head of forward auth's answers by HTTP, in bytes.
    pub(crate) check_head_bytes: usize,
    /// Which path is guarded how, and where it leads.
    pub(crate) routes: Routes,
    /// Passes requests on to upstreams.
    pub(crate) proxy: Arc<Proxy>,
    /// How far the edge has stopped.
    pub(crate) stopping: Stopping,
    /// What tells upstreams who somebody is, if anything is signed for them.
    pub(crate) assertions: Option<Assertions>,
    /// Which headers for applications the log has told of as left out.
    pub(crate) left_out_headers: LeftOutHeaders,
    /// What judges access tokens of API clients.
    pub(crate) bearer: Arc<BearerTokens>,
    /// Cookies of pending sign-ins.
    pub(crate) pending: PendingSignIns,
    /// What forms are kept with.
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
