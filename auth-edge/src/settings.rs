//! The edge's settings: one table per topic, read and judged in one go.
//!
//! Invariants: every wrong setting is named at once; what is not built has no setting. The help texts are the manual.

mod addresses;
mod cookies;
mod providers;
mod read;
mod tables;
mod upstreams;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use chassis::files::Snapshot;
use chassis::secret::Secret;
use ipnet::IpNet;
use provider_settings::{Provider, Providers};
use url::Url;

use crate::browser::analytics::AnalyticsSettings;
use crate::sessions::cookies::{CookieSettings, SameSite};
use crate::route_table::RouteTable;

pub use cookies::secrets_are_usable;
pub use read::read;
pub use tables::SERVICE;
pub use upstreams::{AssertionSettings, ProtectionSettings, UpstreamSettings, read_routes, routes};

/// What the provider is told when somebody signs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderLogout {
    /// RP-initiated logout at the discovered `end_session_endpoint`.
    Oidc,
    /// Auth0's `/v2/logout`.
    Auth0,
    /// Nothing.
    Off,
}

/// When `me` reads userinfo anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileRefetch {
    /// Never.
    Never,
    /// When asked by `?refetch=true`.
    OnRequest,
    /// Each time.
    Always,
}

/// Settings of the sign-in half and of the process; the gateway's own table is in its file.
#[derive(Clone, Debug)]
pub struct EdgeSettings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where Envoy asks by gRPC, if it does.
    pub ext_authz_listen: Option<SocketAddr>,
    /// Certificate and key for TLS on those addresses.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The product's address as browsers see it.
    pub base_url: Url,
    /// Secrets: the first signs and seals, all verify.
    pub secrets: Vec<Secret<String>>,
    /// The file the secrets came from as it was then, to follow its changes.
    pub secrets_file: Option<Snapshot>,
    /// Addresses of the session service.
    pub session_service: Vec<String>,
    /// Authority that the session service's certificate has to come from.
    pub session_service_ca: Option<PathBuf>,
    /// Our certificate and key towards the session service.
    pub session_service_identity: Option<(PathBuf, PathBuf)>,
    /// How long a session is remembered, if at all.
    pub session_cache: Option<Duration>,
    /// The route table's file.
    pub routes_file: Option<PathBuf>,
    /// The route table as it was at the start; empty without a file.
    pub routes: RouteTable,
    /// Keys and claims of assertions for upstreams.
    pub assertions: Option<AssertionSettings>,
    /// How requests are passed on.
    pub upstreams: UpstreamSettings,
    /// What requests are held to.
    pub protection: ProtectionSettings,
    /// The session cookie.
    pub cookie: CookieSettings,
    /// Path of the login route.
    pub login_path: String,
    /// Path of the callback route.
    pub callback_path: String,
    /// Query parameters of the login route that reach the provider.
    pub login_parameters: Vec<String>,
    /// Where a visitor lands after sign-out.
    pub post_logout_redirect: Url,
    /// Further places a sign-out may lead to.
    pub logout_return_to_allowed: Vec<Url>,
    /// What the provider is told at sign-out.
    pub provider_logout: ProviderLogout,
    /// When `me` reads userinfo anew.
    pub profile_refetch: ProfileRefetch,
    /// Whether sign-in reads userinfo.
    pub userinfo_at_login: bool,
    /// Whether sessions keep the ID token.
    pub store_id_token: bool,
    /// Claims left out of `user`.
    pub claim_filter: Vec<String>,
    /// How long a sign-in may take, in seconds.
    pub transaction_duration_secs: u64,
    /// Networks whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether the access-token route exists.
    pub access_token_endpoint: bool,
    /// Whether the front-channel logout route exists.
    pub frontchannel_logout: bool,
    /// Whether forward auth hands out the access token.
    pub check_authorization: bool,
    /// Logins, callbacks and front-channel logouts, each per minute and address; 0 is off.
    pub rate_limit_login: u64,
    /// Product analytics; none when off.
    pub analytics: Option<AnalyticsSettings>,
    /// The providers.
    pub providers: Providers,
}

impl EdgeSettings {
    /// The path of a provider's callback: its own where there are several, so that an answer tells whose it is.
    #[must_use]
    pub fn callback_path(&self, provider: &Provider) -> String {
        providers::callback_path(&self.providers, provider, &self.callback_path)
    }

    /// Where signing in begins and comes back to: no route can be there.
    #[must_use]
    pub fn own_paths(&self) -> Vec<String> {
        providers::own_paths(&self.providers, &self.login_path, &self.callback_path)
    }

    /// Whether browsers leave the session cookie out of every request that a page of another site causes.
    #[must_use]
    pub fn strict_cookie(&self) -> bool {
        self.cookie.same_site == SameSite::Strict
    }

    /// Whether browsers reach the edge by https.
    #[must_use]
    pub fn https(&self) -> bool {
        self.base_url.scheme() == "https"
    }
}
