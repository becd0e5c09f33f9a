//! The edge's settings: one table per topic, read and validated together.
//!
//! Invariants
//! - Every wrong setting is reported at once.
//! - Only features that exist have settings.
//!
//! The help texts are the manual.

mod addresses;
mod analytics;
mod cookies;
#[cfg(test)]
mod files_tests;
mod hosts;
mod look;
mod paths;
mod providers;
mod read;
mod route_warnings;
mod session_service;
mod tables;
mod upstreams;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use chassis::secret::Secret;
use ipnet::IpNet;
use provider_settings::{ConfiguredProvider, ConfiguredProviders};
use url::Url;

use crate::browser::analytics::AnalyticsSettings;
use crate::browser::profile::refetch::ProfileRefetch;
use crate::gateway::UpstreamSettings;
use crate::http::pages::look::Look;
use crate::providers::sites;
use crate::providers::sites::Sites;
use crate::route_table::RouteTable;
use crate::route_table::file::RouteFileContext;
use crate::sessions::cookie_rotation::CookieRotation;
use crate::sessions::cookies::CookieSettings;
use crate::sessions::device_binding::DeviceBoundSettings;
use crate::sign_in::SignInSettings;

pub(crate) use cookies::secrets_are_usable;
pub use read::read;
pub use session_service::SessionServiceSettings;
pub use tables::{ADDRESSES, ANALYTICS, COOKIES, GATEWAY, PAGES, SERVICE, SIGN_IN, SIGN_OUT};
pub(crate) use upstreams::{AssertionSettings, STREAMS_MAX};

/// All settings of the edge, the route table of its file included.
#[derive(Clone, Debug)]
pub struct EdgeSettings {
    /// Where to listen.
    pub(crate) listen: SocketAddr,
    /// Where Envoy's gRPC authorization is answered; `None` if it is off.
    pub(crate) ext_authz_listen: Option<SocketAddr>,
    /// Certificate and key for TLS on both addresses.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    /// The product's address as browsers see it.
    pub(crate) base_url: Url,
    /// Further hosts, each with a port if it differs from the base URL's.
    pub(crate) hosts: Vec<String>,
    /// Secrets: the first signs and seals, all verify.
    pub secrets: Vec<Secret<String>>,
    /// The file that contains the secrets, to follow its changes.
    pub(crate) secrets_file: Option<PathBuf>,
    /// The address of the session service, and its TLS files.
    pub session_service: SessionServiceSettings,
    /// How long a session is cached; zero turns the cache off.
    pub(crate) session_cache: Duration,
    /// The route table's file.
    pub(crate) routes_file: Option<PathBuf>,
    /// The route table at start; empty without a file.
    pub(crate) routes: RouteTable,
    /// The settings that the route table depends on.
    pub(crate) around_routes: RouteFileContext,
    /// Keys of assertions for upstreams.
    pub(crate) assertions: Option<AssertionSettings>,
    /// How the edge proxies requests.
    pub(crate) upstreams: UpstreamSettings,
    /// Most requests in progress at once, and as many more whose bodies are still arriving.
    pub max_concurrent_requests: usize,
    /// The longest pause within a request's body.
    pub body_silence: Duration,
    /// The session cookie.
    pub(crate) cookie: CookieSettings,
    /// Origins that may embed the product in a frame; empty if none may.
    pub(crate) frame_ancestors: Vec<String>,
    /// Which sessions are bound to a device; `None` if browsers cannot bind any.
    pub device_bound: Option<DeviceBoundSettings>,
    /// When the session cookie rotates; `None` for never.
    pub cookie_rotation: Option<CookieRotation>,
    /// Sign-in and sign-out.
    pub(crate) sign_in: SignInSettings,
    /// When `me` reads userinfo again.
    pub(crate) profile_refetch: ProfileRefetch,
    /// Networks whose `X-Forwarded-*` headers the edge trusts.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Whether the access-token route exists.
    pub(crate) access_token_endpoint: bool,
    /// Whether forward auth answers contain the access token.
    pub(crate) check_authorization: bool,
    /// The longest head of forward auth answers over HTTP, in bytes.
    pub(crate) check_head_bytes: usize,
    /// Limit of logins, callbacks and front-channel logouts, each per minute and address; 0 is off.
    pub(crate) rate_limit_login: u64,
    /// How the edge's own pages look.
    pub(crate) look: Look,
    /// Whether the edge also answers the addresses of oauth2-proxy.
    pub(crate) aliases: bool,
    /// Product analytics; `None` if off.
    pub(crate) analytics: Option<AnalyticsSettings>,
    /// The providers.
    pub providers: ConfiguredProviders,
}

impl EdgeSettings {
    /// The path of a provider's callback. Each of several providers has its own, which identifies its answers.
    #[must_use]
    pub(crate) fn callback_path(&self, provider: &ConfiguredProvider) -> String {
        providers::callback_path(&self.providers, provider, self.aliases)
    }

    /// The addresses of the product, including the hosts of single providers.
    #[must_use]
    pub(crate) fn sites(&self) -> Sites {
        sites(
            &self.providers,
            &self.base_url,
            &self.hosts,
            (&self.sign_in.login_path, self.around_routes.own_paths.clone()),
        )
    }

    /// Whether browsers use https.
    #[must_use]
    pub(crate) fn https(&self) -> bool {
        self.base_url.scheme() == "https"
    }
}
