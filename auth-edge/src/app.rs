//! What the edge is made of, put together once. Does no IO; only the start and the table of routes know it.
//!
//! Everything here may be lost: a restarted edge goes on where the last one stopped.

use std::sync::Arc;

use axum::extract::FromRef;
use chassis::audit::RepeatedRecords;
use chassis::metrics::{SampledGauge, as_f64};
use chassis::serve::Stopping;
use prometheus::Registry;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::browser::analytics::Analytics;
use crate::browser::grpc_web::{LISTENING_MAX, LISTING_MAX, PerPerson};
use crate::browser::{Browser, profile};
use crate::gateway::assertion::Assertions;
use crate::gateway::bearer::BearerTokens;
use crate::gateway::claim_headers::LeftOutHeaders;
use crate::gateway::{Gateway, Proxy};
use crate::http::layer::EdgeLayer;
use crate::http::pages::Pages;
use crate::http::protect::load::ConcurrencyLimit;
use crate::http::protect::rate_limit::RateLimiter;
use crate::http::protect::visitors::VisitorShare;
use crate::http::shared::Shared;
use crate::kept_form::KeptForms;
use crate::kept_form::person_cookie::PersonCookies;
use crate::route_table::Routes;
use crate::sessions::cookies::SameSite;
use crate::sessions::device_binding::DeviceBindings;
use crate::settings::EdgeSettings;
use crate::sign_in::background::MAX_BACKGROUND;
use crate::sign_in::pending::PendingSignIns;
use crate::sign_in::security_events::REFUSED_PER_MINUTE;
use crate::sign_in::{BACK_CHANNEL_PER_MINUTE, SignIn};

/// The edge. Clones are cheap and share everything.
#[derive(Clone)]
pub struct App(Arc<AppState>);

struct AppState {
    settings: Arc<EdgeSettings>,
    layer: EdgeLayer,
    sign_in: Arc<SignIn>,
    gateway: Arc<Gateway>,
    browser: Arc<Browser>,
}

/// What single rooms of the edge need besides the settings.
pub(crate) struct Dependencies {
    /// Sessions that are bound to a device.
    pub(crate) bindings: Option<DeviceBindings>,
    /// Audit records that clients can repeat.
    pub(crate) records: Arc<RepeatedRecords>,
    /// Which path is guarded how, and where it leads.
    pub(crate) routes: Routes,
    /// Passes requests on to upstreams.
    pub(crate) proxy: Proxy,
    /// What tells upstreams who somebody is, if anything is signed for them.
    pub(crate) assertions: Option<Assertions>,
}

impl App {
    /// Puts the edge together.
    #[must_use]
    pub(crate) fn new(settings: EdgeSettings, shared: Shared, given: Dependencies) -> Self {
        let shared = Arc::new(shared);
        let transaction_duration_secs = settings.sign_in.transaction_duration_secs;
        let people = PersonCookies::new(&settings.cookie, shared.keys.clone());
        let pending = PendingSignIns::new(
            shared.keys.clone(),
            shared.sites.clone(),
            &settings.cookie.name,
            transaction_duration_secs,
        );
        let limit = |per_minute| Arc::new(RateLimiter::new(per_minute));
        let requests = settings.max_concurrent_requests;
        let layer = EdgeLayer {
            metrics: shared.metrics.clone(),
            concurrency: ConcurrencyLimit::new(requests, VisitorShare::of(requests)),
            cookies: shared.cookies.clone(),
            trusted_proxies: shared.trusted_proxies.clone(),
            body_silence: settings.body_silence,
            pages: shared.pages.clone(),
            https: settings.https(),
            sites: shared.sites.clone(),
        };
        let sign_in = SignIn {
            shared: Arc::clone(&shared),
            strict_cookie: settings.cookie.same_site == SameSite::Strict,
            settings: settings.sign_in.clone(),
            bindings: given.bindings,
            pending: pending.clone(),
            routes: given.routes.clone(),
            login_limit: limit(settings.rate_limit_login),
            callback_limit: limit(settings.rate_limit_login),
            back_channel_limit: limit(BACK_CHANNEL_PER_MINUTE),
            refused_events_limit: limit(REFUSED_PER_MINUTE),
            events_off_until_ms: Arc::default(),
            records: given.records,
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
            routes: given.routes,
            proxy: Arc::new(given.proxy),
            stopping: Stopping::on(CancellationToken::new()),
            assertions: given.assertions,
            left_out_headers: LeftOutHeaders::default(),
            bearer: Arc::new(BearerTokens::new(shared.metrics.access_tokens.clone())),
            pending,
            kept_forms: Arc::new(KeptForms {
                shared: Arc::clone(&shared),
                people,
                duration_secs: transaction_duration_secs,
            }),
        };
        let browser = Browser {
            shared,
            profile_refetch: settings.profile_refetch,
            claim_filter: settings.sign_in.claim_filter.clone(),
            message_timeout: settings.body_silence,
            refetch_limit: Arc::new(profile::refetch::limiter()),
            analytics: settings.analytics.clone().map(Analytics::new),
            listening: PerPerson::new(LISTENING_MAX),
            listing: PerPerson::new(LISTING_MAX),
        };
        Self(Arc::new(AppState {
            layer,
            sign_in: Arc::new(sign_in),
            gateway: Arc::new(gateway),
            browser: Arc::new(browser),
            settings: Arc::new(settings),
        }))
    }

    /// The same edge for a worker: connections and references of its own, which no other core touches.
    #[must_use]
    pub(crate) fn for_worker(&self) -> Self {
        let parts = &*self.0;
        let shared = Arc::new(Shared {
            sessions: parts.browser.sessions.for_worker(),
            ..Shared::clone(&parts.browser.shared)
        });
        Self(Arc::new(AppState {
            settings: Arc::clone(&parts.settings),
            layer: parts.layer.clone(),
            sign_in: Arc::new(SignIn {
                shared: Arc::clone(&shared),
                ..SignIn::clone(&parts.sign_in)
            }),
            gateway: Arc::new(Gateway {
                shared: Arc::clone(&shared),
                proxy: Arc::new(parts.gateway.proxy.for_worker()),
                kept_forms: Arc::new(KeptForms {
                    shared: Arc::clone(&shared),
                    ..KeptForms::clone(&parts.gateway.kept_forms)
                }),
                ..Gateway::clone(&parts.gateway)
            }),
            browser: Arc::new(Browser {
                shared,
                ..Browser::clone(&parts.browser)
            }),
        }))
    }

    /// The settings, as read at the start.
    #[must_use]
    pub fn settings(&self) -> &EdgeSettings {
        &self.0.settings
    }

    /// Registers gauges of the streams that are open.
    ///
    /// # Errors
    /// They are registered already.
    pub(crate) fn measure_streams(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let listening = Arc::clone(&self.0.browser.listening);
        registry.register(Box::new(SampledGauge::new(
            "browser_watches",
            "Pages that listen to their person's sessions now.",
            &[],
            move |gauges| {
                gauges
                    .with_label_values::<&str>(&[])
                    .set(as_f64(listening.count()))
            },
        )?))?;
        let streams = self.0.gateway.sessions.streams().clone();
        registry.register(Box::new(SampledGauge::new(
            "session_streams",
            "WebSockets, event streams, long downloads and uploads that are open on behalf of sessions now.",
            &[],
            move |gauges| gauges.with_label_values::<&str>(&[]).set(as_f64(streams.count())),
        )?))
    }

    /// How far the edge has stopped, which its listener says.
    #[must_use]
    pub fn stopping(&self) -> &Stopping {
        &self.0.gateway.stopping
    }

    /// How many sessions have streams that are open.
    #[must_use]
    pub fn streaming_sessions(&self) -> usize {
        self.0.gateway.sessions.streams().sessions()
    }

    /// The layer around all routes.
    #[must_use]
    pub(crate) fn layer(&self) -> &EdgeLayer {
        &self.0.layer
    }

    /// Signing in and out.
    #[must_use]
    pub(crate) fn sign_in(&self) -> &Arc<SignIn> {
        &self.0.sign_in
    }

    /// The routes for scripts.
    #[must_use]
    pub(crate) fn browser(&self) -> &Arc<Browser> {
        &self.0.browser
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

impl FromRef<App> for Pages {
    fn from_ref(app: &App) -> Self {
        app.0.layer.pages.clone()
    }
}

impl FromRef<App> for Arc<Browser> {
    fn from_ref(app: &App) -> Self {
        Arc::clone(&app.0.browser)
    }
}
