//! What the edge is made of, put together once. Does no IO; only the start and the table of routes know it.
//!
//! Everything here may be lost: a restarted edge goes on where the last one stopped.

use std::sync::Arc;

use axum::extract::FromRef;
use chassis::audit::RepeatedRecords;
use chassis::clock::Clock;
use chassis::metrics::{SampledGauge, as_f64};
use chassis::serve::Stopping;
use prometheus::Registry;
use session_proto::client::SessionClient;
use tokio::sync::Semaphore;

use crate::browser::analytics::Analytics;
use crate::browser::grpc_web::{LISTENING_MAX, LISTING_MAX, PerPerson};
use crate::browser::{Browser, profile};
use crate::gateway::assertion::Assertions;
use crate::gateway::bearer::BearerTokens;
use crate::gateway::claim_headers::LeftOutHeaders;
use crate::gateway::{Gateway, Proxy};
use crate::http::device::Devices;
use crate::http::layer::LayerParts;
use crate::http::observe::Metrics;
use crate::http::pages::Pages;
use crate::http::protect::csrf::FormTokens;
use crate::http::protect::load::ConcurrencyLimit;
use crate::http::protect::rate_limit::RateLimiter;
use crate::http::protect::visitors::VisitorShare;
use crate::kept_form::KeptForms;
use crate::kept_form::person_cookie::PersonCookies;
use crate::providers::IdentityProviders;
use crate::providers::sites::Sites;
use crate::route_table::Routes;
use crate::sessions::cookies::{SameSite, SessionCookies};
use crate::sessions::device_binding::DeviceBindings;
use crate::sessions::keys::DerivedKeys;
use crate::sessions::metrics::{CacheMetrics, DeviceMetrics};
use crate::sessions::{SessionCache, SessionRepository};
use crate::settings::EdgeSettings;
use crate::sign_in::background::MAX_BACKGROUND;
use crate::sign_in::pending::PendingSignIns;
use crate::sign_in::security_events::REFUSED_PER_MINUTE;
use crate::sign_in::{BACK_CHANNEL_PER_MINUTE, SignIn};
use crate::values::forwarded::TrustedProxies;

/// The edge. Clones are cheap and share everything.
#[derive(Clone)]
pub struct App(Arc<AppState>);

struct AppState {
    settings: Arc<EdgeSettings>,
    layer: LayerParts,
    sign_in: Arc<SignIn>,
    gateway: Arc<Gateway>,
    browser: Arc<Browser>,
}

/// What the edge needs besides its settings.
pub(crate) struct Dependencies {
    /// The session service.
    pub(crate) session_client: SessionClient,
    /// Sessions remembered, if any are to be.
    pub(crate) session_cache: Option<Arc<SessionCache>>,
    /// How often they are found there.
    pub(crate) lookups: CacheMetrics,
    /// What becomes of proofs of sessions' devices.
    pub(crate) device_proofs: DeviceMetrics,
    /// The identity providers.
    pub(crate) providers: Arc<IdentityProviders>,
    /// Keys derived from the secrets.
    pub(crate) keys: DerivedKeys,
    /// Wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Metrics.
    pub(crate) metrics: Metrics,
    /// The edge's own pages.
    pub(crate) pages: Pages,
    /// Which path is guarded how, and where it leads.
    pub(crate) routes: Routes,
    /// Passes requests on to upstreams.
    pub(crate) proxy: Arc<Proxy>,
    /// What tells upstreams who somebody is, if anything is signed for them.
    pub(crate) assertions: Option<Assertions>,
    /// How far the edge has stopped.
    pub(crate) stopping: Stopping,
}

impl App {
    /// Puts the edge together.
    #[must_use]
    pub(crate) fn new(settings: EdgeSettings, given: Dependencies) -> Self {
        let (keys, clock) = (given.keys.clone(), Arc::clone(&given.clock));
        let settings = Arc::new(settings);
        let sites = settings.sites();
        let cookies = SessionCookies::new(settings.cookie.clone(), keys.clone()).on(sites.clone());
        let pending = PendingSignIns::new(
            keys.clone(),
            sites.clone(),
            &settings.cookie.name,
            settings.sign_in.transaction_duration_secs,
        );
        let bindings = settings
            .device_bound
            .map(|bound| DeviceBindings::new(keys.clone(), &cookies, bound, given.device_proofs.clone()));
        let records = RepeatedRecords::start(Arc::clone(&clock));
        let sessions = SessionRepository::new(
            given.session_client.clone(),
            cookies.clone(),
            (bindings.clone(), settings.cookie_rotation),
            Arc::clone(&clock),
            given.session_cache.clone(),
            given.lookups.clone(),
            Arc::clone(&records),
        );
        let trusted_proxies = TrustedProxies::new(settings.trusted_proxies.clone());
        let shared = Shared {
            settings: &settings,
            devices: Devices {
                trusted_proxies: trusted_proxies.clone(),
                clock,
            },
            sites,
            cookies,
            bindings,
            pending,
            sessions,
            trusted_proxies,
            people: PersonCookies::new(&settings.cookie, keys),
            records,
            given,
        };
        let state = AppState {
            layer: shared.layer(),
            sign_in: Arc::new(shared.sign_in()),
            gateway: Arc::new(shared.gateway()),
            browser: Arc::new(shared.browser()),
            settings: Arc::clone(&settings),
        };
        Self(Arc::new(state))
    }

    /// The same edge for a worker: connections and references of its own, which no other core touches.
    #[must_use]
    pub(crate) fn for_worker(&self) -> Self {
        let parts = &*self.0;
        let sessions = parts.gateway.sessions.for_worker();
        Self(Arc::new(AppState {
            settings: Arc::clone(&parts.settings),
            layer: parts.layer.clone(),
            sign_in: Arc::new(SignIn {
                sessions: sessions.clone(),
                ..SignIn::clone(&parts.sign_in)
            }),
            gateway: Arc::new(Gateway {
                sessions: sessions.clone(),
                proxy: Arc::new(parts.gateway.proxy.for_worker()),
                kept_forms: Arc::new(KeptForms {
                    sessions: sessions.clone(),
                    ..KeptForms::clone(&parts.gateway.kept_forms)
                }),
                ..Gateway::clone(&parts.gateway)
            }),
            browser: Arc::new(Browser {
                sessions,
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

    /// What the layer around all routes is made of.
    #[must_use]
    pub(crate) fn layer(&self) -> &LayerParts {
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

/// What more than one feature is made of.
struct Shared<'a> {
    settings: &'a EdgeSettings,
    given: Dependencies,
    sites: Sites,
    cookies: SessionCookies,
    bindings: Option<DeviceBindings>,
    pending: PendingSignIns,
    sessions: SessionRepository,
    trusted_proxies: TrustedProxies,
    devices: Devices,
    people: PersonCookies,
    records: Arc<RepeatedRecords>,
}

impl Shared<'_> {
    fn layer(&self) -> LayerParts {
        let requests = self.settings.max_concurrent_requests;
        LayerParts {
            metrics: self.given.metrics.clone(),
            concurrency: ConcurrencyLimit::new(requests, VisitorShare::of(requests)),
            cookies: self.cookies.clone(),
            trusted_proxies: self.trusted_proxies.clone(),
            body_silence: self.settings.body_silence,
            pages: self.given.pages.clone(),
            https: self.settings.https(),
            sites: self.sites.clone(),
        }
    }

    fn browser(&self) -> Browser {
        let settings = self.settings;
        Browser {
            profile_refetch: settings.profile_refetch,
            claim_filter: settings.sign_in.claim_filter.clone(),
            message_timeout: settings.body_silence,
            keys: self.given.keys.clone(),
            sessions: self.sessions.clone(),
            providers: Arc::clone(&self.given.providers),
            sites: self.sites.clone(),
            devices: self.devices.clone(),
            clock: Arc::clone(&self.given.clock),
            refetch_limit: Arc::new(profile::refetch::limiter()),
            analytics: settings.analytics.clone().map(Analytics::new),
            listening: PerPerson::new(LISTENING_MAX),
            listing: PerPerson::new(LISTING_MAX),
            limits: self.given.metrics.limits(),
        }
    }

    fn gateway(&self) -> Gateway {
        let settings = self.settings;
        Gateway {
            login_path: settings.sign_in.login_path.clone(),
            https: settings.https(),
            check_authorization: settings.check_authorization,
            check_head_bytes: settings.check_head_bytes,
            routes: self.given.routes.clone(),
            proxy: Arc::clone(&self.given.proxy),
            stopping: self.given.stopping.clone(),
            assertions: self.given.assertions.clone(),
            left_out_headers: LeftOutHeaders::default(),
            bearer: Arc::new(BearerTokens::new(self.given.metrics.access_tokens())),
            cookies: self.cookies.clone(),
            pending: self.pending.clone(),
            sessions: self.sessions.clone(),
            providers: Arc::clone(&self.given.providers),
            sites: self.sites.clone(),
            trusted_proxies: self.trusted_proxies.clone(),
            devices: self.devices.clone(),
            kept_forms: Arc::new(KeptForms {
                pages: self.given.pages.clone(),
                keys: self.given.keys.clone(),
                people: self.people.clone(),
                sessions: self.sessions.clone(),
                sites: self.sites.clone(),
                clock: Arc::clone(&self.given.clock),
                duration_secs: settings.sign_in.transaction_duration_secs,
            }),
            clock: Arc::clone(&self.given.clock),
        }
    }

    fn sign_in(&self) -> SignIn {
        let settings = self.settings;
        let limit = |per_minute| Arc::new(RateLimiter::new(per_minute));
        SignIn {
            strict_cookie: settings.cookie.same_site == SameSite::Strict,
            settings: settings.sign_in.clone(),
            cookies: self.cookies.clone(),
            bindings: self.bindings.clone(),
            pending: self.pending.clone(),
            sessions: self.sessions.clone(),
            providers: Arc::clone(&self.given.providers),
            sites: self.sites.clone(),
            routes: self.given.routes.clone(),
            clock: Arc::clone(&self.given.clock),
            devices: self.devices.clone(),
            form_tokens: FormTokens::new(self.given.keys.clone()),
            login_limit: limit(settings.rate_limit_login),
            callback_limit: limit(settings.rate_limit_login),
            back_channel_limit: limit(BACK_CHANNEL_PER_MINUTE),
            refused_events_limit: limit(REFUSED_PER_MINUTE),
            events_off_until_ms: Arc::default(),
            records: Arc::clone(&self.records),
            front_channel_limit: limit(settings.rate_limit_login),
            background: Arc::new(Semaphore::new(MAX_BACKGROUND)),
            metrics: self.given.metrics.clone(),
            pages: self.given.pages.clone(),
            people: self.people.clone(),
        }
    }
}
