//! The replicas of the session service: found by name, used in turn, left out for a moment when they cannot be reached.
//!
//! tonic's own balancer keeps endpoints that are gone and never resolves a name twice, and its channels connect while calls wait. So
//! the choice is made here, among connections that stand: one for each address.

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

use super::endpoint::{EndpointId, Picked, ReplicaEndpoint, Target};
use super::request::timed;
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
    /// The replicas that names led to, in the order of their addresses.
    known: ArcSwap<Vec<Arc<ReplicaEndpoint>>>,
    endpoints: watch::Sender<Vec<EndpointId>>,
    turn: AtomicUsize,
    /// Held while resolving.
    resolving: Mutex<Certificates>,
    resolver_runs: AtomicBool,
    resolve_soon: Arc<Notify>,
    pub(super) settings: ClientSettings,
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

    /// The name that led to an address.
    pub(super) fn target_of(&self, id: &EndpointId) -> Option<&Target> {
        self.targets.iter().find(|target| target.owns(id))
    }

    /// How many addresses are known.
    pub(super) fn size(&self) -> usize {
        self.known.load().len()
    }

    /// The addresses known, and every change of them.
    pub(super) fn endpoints(&self) -> watch::Receiver<Vec<EndpointId>> {
        self.endpoints.subscribe()
    }

    /// An address, if it is still known.
    pub(super) fn replica(&self, id: &EndpointId) -> Option<Arc<ReplicaEndpoint>> {
        self.known
            .load()
            .iter()
            .find(|replica| replica.id == *id)
            .cloned()
    }

    /// All replicas, the one whose turn it is first.
    fn in_turn(&self, turn: usize) -> impl Iterator<Item = Arc<ReplicaEndpoint>> + use<> {
        let known = self.known.load_full();
        let first = turn.checked_rem(known.len()).unwrap_or_default();
        (0..known.len()).filter_map(move |step| known.get((first + step) % known.len()).cloned())
    }

    /// The next replica in turn that is connected and not left out. Those that are not connected begin to be, and are waited for only
    /// when none is. Then those that are left out are tried as well, a little later: one of them may just have come back, and an attempt to
    /// connect to one that is just going may be lost.
    pub(super) async fn pick(self: &Arc<Self>) -> Result<Picked, Status> {
        if self.size() == 0 {
            self.resolve_first().await;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        for replica in self.in_turn(turn).filter(|replica| !replica.is_ejected()) {
            match replica.connected() {
                Some(connection) => return Ok(Picked { replica, connection }),
                None => replica.begin_to_connect(),
            }
        }
        let all_ejected = self.in_turn(turn).all(|replica| replica.is_ejected());
        let connecting: Vec<_> = self
            .in_turn(turn)
            .map(|replica| async move {
                if replica.is_ejected() && !all_ejected {
                    sleep(LATER_ATTEMPT).await;
                }
                replica.connect().await
            })
            .map(Box::pin)
            .collect();
        if connecting.is_empty() {
            return Err(Status::unavailable("no address of the session service is known"));
        }
        let (picked, _others) = select_ok(connecting).await?;
        Ok(picked)
    }

    /// As [`Self::pick`], but none of those; any if there is no other.
    pub(super) async fn pick_besides(
        self: &Arc<Self>,
        those: &[Arc<ReplicaEndpoint>],
    ) -> Result<Picked, Status> {
        match self.another(those).filter(|_| !those.is_empty()) {
            None => self.pick().await,
            Some(replica) => replica.connect().await,
        }
    }

    /// The next replica in turn besides those: one that is connected if there is any.
    pub(super) fn another(&self, than: &[Arc<ReplicaEndpoint>]) -> Option<Arc<ReplicaEndpoint>> {
        let mut others = self
            .in_turn(self.turn.load(Ordering::Relaxed))
            .filter(|replica| !than.iter().any(|asked| Arc::ptr_eq(asked, replica)))
            .peekable();
        let next = others.peek().cloned();
        let connected = others.find(|replica| !replica.is_ejected() && replica.connected().is_some());
        connected.or(next)
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
        let mut replicas: Vec<Arc<ReplicaEndpoint>> = Vec::new();
        for (target, found) in self.targets.iter().zip(join_all(lookups).await) {
            let addresses = found.unwrap_or_else(|error| {
                tracing::warn!(
                    host = target.host,
                    error = &error as &dyn std::error::Error,
                    "the session service's name cannot be resolved"
                );
                let last = before.iter().filter(|replica| target.owns(&replica.id));
                last.map(|replica| replica.id.address()).collect()
            });
            for address in addresses {
                let id = target.id(address);
                let kept = before
                    .iter()
                    .find(|replica| same_certificates && replica.id == id);
                let kept = kept.cloned();
                replicas
                    .extend(kept.or_else(|| ReplicaEndpoint::new(target, address, tls, &self.resolve_soon)));
            }
        }
        replicas.sort_by(|one, other| one.id.cmp(&other.id));
        replicas.dedup_by(|one, other| one.id == other.id);
        let ids: Vec<_> = replicas.iter().map(|replica| replica.id.clone()).collect();
        self.known.store(Arc::new(replicas));
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
