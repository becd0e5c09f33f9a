//! The replicas of the session service: found by name, used in turn, left out for a moment when they cannot be reached.
//!
//! tonic's own balancer keeps endpoints that are gone and never resolves a name twice, and its channels connect while calls wait. So
//! the choice is made here, among connections that stand: one for each address.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::{join_all, select_ok};
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::{Instant, sleep};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::endpoint::{EndpointId, ReplicaEndpoint, Target};
use super::request::timed;
use super::resolution::{Picked, Resolution};
use super::settings::{ClientSettings, InvalidSettings};
use super::tls::ClientTls;

/// After a failure names are resolved sooner than usual, but not more often than this.
const RESOLVE_PAUSE: Duration = Duration::from_millis(250);

/// How often names are resolved while no address is known at all.
const RESOLVE_UNKNOWN: Duration = Duration::from_secs(1);

/// By how much an ejected address is connected to later than the others (RFC 8305, section 8: at least 100 ms).
const LATER_ATTEMPT: Duration = Duration::from_millis(100);

/// The certificates of connections.
struct Certificates {
    /// Those that connections are made with.
    used: Option<ClientTls>,
    /// What the files held when they were read last, so that content that cannot be used is reported once.
    latest: Option<ClientTls>,
}

/// All replicas.
pub(super) struct Pool {
    targets: Arc<[Target]>,
    known: ArcSwap<Resolution>,
    endpoints: watch::Sender<Vec<EndpointId>>,
    turn: AtomicUsize,
    /// Held while resolving.
    resolving: Mutex<Certificates>,
    resolver_runs: AtomicBool,
    resolve_soon: Arc<Notify>,
    settings: ClientSettings,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("targets", &self.targets.len())
            .field("replicas", &self.size())
            .finish()
    }
}

impl Pool {
    pub(super) fn new(settings: ClientSettings) -> Result<Self, InvalidSettings> {
        if settings.addresses.is_empty() {
            return Err(InvalidSettings::NoAddress);
        }
        let targets = settings
            .addresses
            .iter()
            .map(|address| Target::parse(address))
            .collect::<Result<Arc<[_]>, _>>()?;
        for target in &*targets {
            target.check(settings.tls.as_ref())?;
        }
        Ok(Self::over(targets, settings))
    }

    /// Another one for the same settings, with connections of its own. What becomes of certificates is told by the first.
    pub(super) fn for_worker(&self) -> Self {
        let settings = ClientSettings {
            on_renewal: None,
            ..self.settings.clone()
        };
        Self::over(Arc::clone(&self.targets), settings)
    }

    fn over(targets: Arc<[Target]>, settings: ClientSettings) -> Self {
        Self {
            targets,
            known: ArcSwap::default(),
            endpoints: watch::Sender::default(),
            turn: AtomicUsize::new(0),
            resolving: Mutex::new(Certificates {
                used: settings.tls.clone(),
                latest: settings.tls.clone(),
            }),
            resolver_runs: AtomicBool::new(false),
            resolve_soon: Arc::default(),
            settings,
        }
    }

    pub(super) fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// The service as the settings name it, if they name one alone.
    pub(super) fn only_target(&self) -> Option<&Target> {
        match &*self.targets {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The name that led to an address.
    pub(super) fn target_of(&self, id: &EndpointId) -> Option<&Target> {
        self.targets.iter().find(|target| target.owns(id))
    }

    /// How many addresses are known.
    pub(super) fn size(&self) -> usize {
        self.known.load().order.len()
    }

    /// The addresses known, and every change of them.
    pub(super) fn endpoints(&self) -> watch::Receiver<Vec<EndpointId>> {
        self.endpoints.subscribe()
    }

    /// An address, if it is still known.
    pub(super) fn replica(&self, id: &EndpointId) -> Option<Arc<ReplicaEndpoint>> {
        self.known.load().by_id.get(id).cloned()
    }

    /// The next replica in turn that is connected and not left out. Those that are not connected begin to be, and are waited for only
    /// when none is. Then those that are left out are tried as well, a little later: one of them may just have come back, and an attempt to
    /// connect to one that is just going may be lost.
    pub(super) async fn pick(self: &Arc<Self>) -> Result<Picked, Status> {
        if self.size() == 0 {
            self.resolve_first().await;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if let Some(picked) = self.known.load().connected(turn) {
            return Ok(picked);
        }
        let known = self.known.load_full();
        if known.order.is_empty() {
            return Err(Status::unavailable("no address of the session service is known"));
        }
        let all_ejected = known.order.iter().all(|replica| replica.is_ejected());
        let connecting = known.in_turn(turn).map(|replica| async move {
            if replica.is_ejected() && !all_ejected {
                sleep(LATER_ATTEMPT).await;
            }
            let connection = replica.connect().await?;
            Ok::<_, Status>(Picked {
                replica: Arc::clone(replica),
                connection,
            })
        });
        let (picked, _others) = select_ok(connecting.map(Box::pin)).await?;
        Ok(picked)
    }

    /// As [`Self::pick`], but none of those; any if there is no other.
    pub(super) async fn pick_besides(
        self: &Arc<Self>,
        those: &[Arc<ReplicaEndpoint>],
    ) -> Result<Picked, Status> {
        let other = if those.is_empty() {
            None
        } else {
            self.another(those)
        };
        match other {
            None => self.pick().await,
            Some(replica) => {
                let connection = replica.connect().await?;
                Ok(Picked { replica, connection })
            }
        }
    }

    /// A replica besides those, connected if one is.
    pub(super) fn another(&self, than: &[Arc<ReplicaEndpoint>]) -> Option<Arc<ReplicaEndpoint>> {
        let known = self.known.load();
        known.another(self.turn.load(Ordering::Relaxed), than)
    }

    /// A request with the time left as its gRPC deadline.
    pub(super) fn request<Q>(&self, message: Q, until: Instant) -> Request<Q> {
        timed(self.annotations(), message, until)
    }

    /// What is added to a call that is made now.
    pub(super) fn annotations(&self) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        self.annotate(&mut metadata);
        metadata
    }

    pub(super) fn annotate(&self, metadata: &mut MetadataMap) {
        if let Some(annotate) = &self.settings.annotate {
            annotate(metadata);
        }
    }

    /// Resolves while nothing is known: one caller does, the others wait for it. Starts the resolver the first time.
    pub(super) async fn resolve_first(self: &Arc<Self>) {
        let mut certificates = self.resolving.lock().await;
        if self.size() == 0 {
            self.resolve(&mut certificates).await;
        }
        if !self.resolver_runs.swap(true, Ordering::Relaxed) {
            tokio::spawn(keep_resolving(
                Arc::downgrade(self),
                self.resolve_soon.clone(),
                self.settings.resolve_interval,
            ));
        }
    }

    /// Resolves all names now and keeps what is still there, connections included, unless the certificates are new. A
    /// name that cannot be resolved keeps its last addresses.
    async fn resolve(&self, certificates: &mut Certificates) {
        let same_certificates = !self.renew(certificates).await;
        let tls = certificates.used.as_ref();
        let before = self.known.load_full();
        let lookups = self
            .targets
            .iter()
            .map(|target| target.lookup(&*self.settings.resolver));
        let mut by_id = HashMap::new();
        for (target, found) in self.targets.iter().zip(join_all(lookups).await) {
            let addresses = found.unwrap_or_else(|error| {
                tracing::warn!(
                    host = target.host(),
                    error = &error as &dyn std::error::Error,
                    "the session service's name cannot be resolved"
                );
                let last = before.by_id.keys().filter(|id| target.owns(id));
                last.map(EndpointId::address).collect()
            });
            for address in addresses {
                let id = target.id(address);
                let kept = before.by_id.get(&id).filter(|_| same_certificates).cloned();
                let replica = kept.or_else(|| ReplicaEndpoint::new(target, address, tls, &self.resolve_soon));
                by_id.extend(replica.map(|replica| (id, replica)));
            }
        }
        let mut order: Vec<_> = by_id.values().cloned().collect();
        order.sort_by(|one, other| one.id.cmp(&other.id));
        let ids: Vec<_> = order.iter().map(|replica| replica.id.clone()).collect();
        self.known.store(Arc::new(Resolution { order, by_id }));
        self.endpoints.send_if_modified(|announced| {
            let changed = *announced != ids;
            *announced = ids;
            changed
        });
    }

    /// Takes up certificates that changed in their files; true if they did and can be used.
    async fn renew(&self, certificates: &mut Certificates) -> bool {
        let Some(latest) = &certificates.latest else {
            return false;
        };
        let Some(new) = latest.renewed().await else {
            return false;
        };
        certificates.latest = Some(new.clone());
        let checked = self
            .targets
            .iter()
            .try_for_each(|target| target.check(Some(&new)));
        let outcome = checked.as_ref().copied().map_err(|error| error as &dyn Error);
        match (&self.settings.on_renewal, outcome) {
            (Some(report), outcome) => report(outcome),
            (None, Ok(())) => tracing::info!("certificates for the session service were renewed"),
            (None, Err(error)) => tracing::warn!(
                error,
                "changed certificates for the session service are passed over"
            ),
        }
        if checked.is_err() {
            return false;
        }
        certificates.used = Some(new);
        true
    }
}

/// Resolves every `interval`, and soon after a failure, until the pool is dropped.
async fn keep_resolving(pool: Weak<Pool>, soon: Arc<Notify>, interval: Duration) {
    loop {
        let known = pool.upgrade().is_some_and(|pool| pool.size() > 0);
        let wait = if known {
            interval
        } else {
            interval.min(RESOLVE_UNKNOWN)
        };
        tokio::time::sleep(RESOLVE_PAUSE.min(wait)).await;
        // Whether it was nudged or the interval passed makes no difference.
        let _ = tokio::time::timeout(wait.saturating_sub(RESOLVE_PAUSE), soon.notified()).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut certificates = pool.resolving.lock().await;
        pool.resolve(&mut certificates).await;
    }
}
