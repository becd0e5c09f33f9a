//! The state of the edge, built once. Does no IO; only the start and the table of routes use it.
//!
//! All of this state may be lost: a restarted edge continues where the previous one stopped.

use std::sync::Arc;

use axum::extract::FromRef;
use chassis::audit::RepeatedRecords;
use chassis::metrics::{SampledGauge, as_f64};
use chassis::serve::Stopping;
use prometheus::Registry;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::browser::analytics::Analytics;
use crate::browser::{Browser, profile};
use crate::gateway::assertion::Assertions;
use crate::gateway::bearer::BearerTokens;
use crate::gateway::claim_headers::OmittedHeaderLog;
use crate::gateway::decision::Decisions;
use crate::gateway::{Gateway, Proxy};
use crate::http::layer::EdgeLayer;
use crate::http::protect::load::{ClientShares, ConcurrencyLimit};
use crate::http::protect::rate_limit::RateLimiter;
use crate::http::protect::shares::Shares;
use crate::http::shared::Shared;
use crate::kept_form::KeptForms;
use crate::kept_form::person_cookie::PersonCookies;
use crate::route_table::Routes;
use crate::route_table::upstream_headers::UpstreamHeaders;
use crate::sessions::cookies::SameSite;
use crate::sessions::device_binding::DeviceBindings;
use crate::settings::EdgeSettings;
use crate::sign_in::background::MAX_BACKGROUND;
use crate::sign_in::pending::PendingSignIns;
use crate::sign_in::security_events::REFUSED_PER_MINUTE;
use crate::sign_in::{BACK_CHANNEL_PER_MINUTE, SignIn};

/// The edge. Clones are cheap and share everything.
#[derive(Clone)]
pub struct App(pub(crate) Arc<AppState>);

/// The state of each module of the edge.
#[derive(Clone)]
pub(crate) struct AppState {
    settings: Arc<EdgeSettings>,
    /// The layer around all routes.
    pub(crate) layer: Arc<EdgeLayer>,
    /// Signing in and out.
    pub(crate) sign_in: Arc<SignIn>,
    gateway: Arc<Gateway>,
    /// The routes for scripts.
    pub(crate) browser: Arc<Browser>,
}

impl App {
    /// Builds the edge from its settings, the shared state, and the parts that single modules need.
    #[must_use]
    pub(crate) fn new(
        settings: EdgeSettings,
        shared: Shared,
        bindings: Option<DeviceBindings>,
        records: Arc<RepeatedRecords>,
        routes: Routes,
        proxy: Proxy,
        assertions: Option<Assertions>,
    ) -> Self {
        let shared = Arc::new(shared);
        let transaction_duration_secs = settings.sign_in.transaction_duration_secs;
        let people = PersonCookies::new(&settings.cookie, shared.keys.clone());
        let pending = PendingSignIns::new(
            shared.keys.clone(),
            shared.sites.clone(),
            &settings.cookie.name,
            transaction_duration_secs,
        )
        .partitioned(settings.cookie.partitioned);
        let limit = |per_minute| Arc::new(RateLimiter::new(per_minute));
        let requests = settings.max_concurrent_requests;
        let layer = EdgeLayer {
            shared: Arc::clone(&shared),
            concurrency: ConcurrencyLimit::new(requests, ClientShares::of(requests)),
            with_body: ConcurrencyLimit::new(requests, ClientShares::of(requests)),
            body_silence: settings.body_silence,
            https: settings.https(),
        };
        let sign_in = SignIn {
            shared: Arc::clone(&shared),
            strict_cookie: settings.cookie.same_site == SameSite::Strict,
            settings: settings.sign_in.clone(),
            bindings,
            pending: pending.clone(),
            routes: routes.clone(),
            login_limit: limit(settings.rate_limit_login),
            callback_limit: limit(settings.rate_limit_login),
            back_channel_limit: limit(BACK_CHANNEL_PER_MINUTE),
            refused_events_limit: limit(REFUSED_PER_MINUTE),
            events_off_until_ms: Arc::default(),
            revocations_off_until_ms: Arc::default(),
            records,
            front_channel_limit: limit(settings.rate_limit_login),
            background: Arc::new(Semaphore::new(MAX_BACKGROUND)),
            people: people.clone(),
        };
        let gateway = Gateway {
            shared: Arc::clone(&shared),
            login_path: settings.sign_in.login_path.clone(),
            https: settings.https(),
            check_authorization: settings.check_authorization,
            check_head_bytes: settings.check_head_bytes,
            check_headers: match settings.aliases {
                true => UpstreamHeaders::of_oauth2_proxy_checks(),
                false => UpstreamHeaders::default(),
            },
            routes: routes.clone(),
            proxy: Arc::new(proxy),
            stopping: Stopping::on(CancellationToken::new()),
            assertions,
            omitted_header_log: OmittedHeaderLog::default(),
            bearer: Arc::new(BearerTokens::new(shared.metrics.access_tokens.clone())),
            decisions: Arc::new(Decisions::new(shared.metrics.decisions.clone())),
            pending,
            kept_forms: Arc::new(KeptForms {
                shared: Arc::clone(&shared),
                people,
                duration_secs: transaction_duration_secs,
            }),
        };
        let browser = Browser {
            routes,
            counts_since_ms: shared.clock.now_ms(),
            shared,
            profile_refetch: settings.profile_refetch,
            claim_filter: settings.sign_in.claim_filter.clone(),
            refetch_limit: Arc::new(profile::refetch::limiter()),
            analytics: settings.analytics.clone().map(Analytics::new),
            listening: Shares::new(),
            listing: Shares::new(),
        };
        Self(Arc::new(AppState {
            layer: Arc::new(layer),
            sign_in: Arc::new(sign_in),
            gateway: Arc::new(gateway),
            browser: Arc::new(browser),
            settings: Arc::new(settings),
        }))
    }

    /// The same edge for one worker, with its own connections and references. No other core touches them.
    #[must_use]
    pub(crate) fn for_worker(&self) -> Self {
        let mut app = AppState::clone(&self.0);
        let shared = Arc::new(Shared {
            sessions: app.browser.sessions.for_worker(),
            ..Shared::clone(&app.browser.shared)
        });
        Arc::make_mut(&mut app.layer).shared = Arc::clone(&shared);
        Arc::make_mut(&mut app.sign_in).shared = Arc::clone(&shared);
        let gateway = Arc::make_mut(&mut app.gateway);
        gateway.shared = Arc::clone(&shared);
        gateway.proxy = Arc::new(gateway.proxy.for_worker());
        Arc::make_mut(&mut gateway.kept_forms).shared = Arc::clone(&shared);
        Arc::make_mut(&mut app.browser).shared = shared;
        Self(Arc::new(app))
    }

    /// The settings, as read at the start.
    #[must_use]
    pub fn settings(&self) -> &EdgeSettings {
        &self.0.settings
    }

    /// Registers the gauges of open streams.
    ///
    /// # Errors
    /// The gauges are already registered.
    pub(crate) fn measure_streams(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let one = |name, help, count: Box<dyn Fn() -> usize + Send + Sync>| {
            let gauge = SampledGauge::new(name, help, &[], move |gauges| {
                gauges.with_label_values::<&str>(&[]).set(as_f64(count()));
            })?;
            registry.register(Box::new(gauge))
        };
        let listening = Arc::clone(&self.0.browser.listening);
        one(
            "browser_watches",
            "Open pages that watch their user's sessions.",
            Box::new(move || listening.count()),
        )?;
        let streams = self.0.gateway.sessions.streams.clone();
        one(
            "session_streams",
            "Open WebSockets, event streams, long downloads and uploads that belong to sessions.",
            Box::new(move || streams.count()),
        )
    }

    /// How far the edge has stopped, as its listener reports it.
    #[must_use]
    pub fn stopping(&self) -> &Stopping {
        &self.0.gateway.stopping
    }

    /// The number of sessions with open streams.
    #[must_use]
    pub fn streaming_sessions(&self) -> usize {
        self.0.gateway.sessions.streams.sessions()
    }
}

impl FromRef<App> for Arc<SignIn> {
    fn from_ref(app: &App) -> Self {
        Arc::clone(&app.0.sign_in)
    }
}

impl FromRef<App> for Arc<Gateway> {
    fn from_ref(app: &App) -> Self {
        Arc::clone(&app.0.gateway)
    }
}

impl FromRef<App> for Arc<KeptForms> {
    fn from_ref(app: &App) -> Self {
        Arc::clone(&app.0.gateway.kept_forms)
    }
}

impl FromRef<App> for Arc<Browser> {
    fn from_ref(app: &App) -> Self {
        Arc::clone(&app.0.browser)
    }
}
