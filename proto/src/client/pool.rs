//! The replicas of the session service: found by name, used in turn, and ejected for a moment if unreachable.
//!
//! tonic's own balancer keeps endpoints that are gone, resolves each name only once, and connects while calls
//! wait. So the pool chooses itself, among established connections: one for each address.

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

use super::endpoint::{EndpointId, ReplicaChoice, ReplicaEndpoint, ServiceTarget};
use super::request::timed;
use super::settings::{ClientSettings, InvalidSettings};
use super::tls::ClientTls;

/// Shortest pause between resolutions; a failure triggers one early.
const RESOLVE_PAUSE: Duration = Duration::from_millis(250);

/// How often names are resolved while no address is known.
const RESOLVE_UNKNOWN: Duration = Duration::from_secs(1);

/// Extra delay for connecting to ejected addresses (RFC 8305, section 8: at least 100 ms).
const LATER_ATTEMPT: Duration = Duration::from_millis(100);

/// The certificates of connections.
struct Certificates {
    /// The certificates for new connections.
    used: Option<ClientTls>,
    /// The last content of the files, so that unusable content is reported once.
    latest: Option<ClientTls>,
}

/// All replicas.
pub(super) struct Pool {
    targets: Arc<[ServiceTarget]>,
    /// The resolved replicas, in the order of their addresses.
    known: ArcSwap<Vec<Arc<ReplicaEndpoint>>>,
    endpoints: watch::Sender<Vec<EndpointId>>,
    turn: AtomicUsize,
    /// Held while resolving.
    resolving: Mutex<Certificates>,
    resolver_runs: AtomicBool,
    pub(super) resolve_soon: Arc<Notify>,
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
            .map(|address| ServiceTarget::parse(address))
            .collect::<Result<Arc<[_]>, _>>()?;
        for target in &*targets {
            target.check(settings.tls.as_ref())?;
        }
        Ok(Self::over(targets, settings))
    }

    /// A pool with the same settings and its own connections. Only the first one reports new certificates.
    pub(super) fn for_worker(&self) -> Self {
        let settings = ClientSettings {
            on_renewal: None,
            ..self.settings.clone()
        };
        Self::over(Arc::clone(&self.targets), settings)
    }

    fn over(targets: Arc<[ServiceTarget]>, settings: ClientSettings) -> Self {
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

    /// The name that resolved to an address.
    pub(super) fn target_of(&self, id: &EndpointId) -> Option<&ServiceTarget> {
        self.targets.iter().find(|target| target.owns(id))
    }

    /// The number of known addresses.
    pub(super) fn size(&self) -> usize {
        self.known.load().len()
    }

    /// The known addresses, and every change of them.
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

    /// All replicas, beginning with the one for this turn.
    fn in_turn(&self, turn: usize) -> impl Iterator<Item = Arc<ReplicaEndpoint>> + use<> {
        let known = self.known.load_full();
        let first = turn.checked_rem(known.len()).unwrap_or_default();
        (0..known.len()).filter_map(move |step| known.get((first + step) % known.len()).cloned())
    }

    /// The next connected replica in turn that is not ejected. Replicas without a connection start to connect.
    /// The call waits for them only if no replica is connected. It then tries ejected replicas as well, a
    /// little later: an ejected replica may be back, and one that is not ejected may be stopping.
    pub(super) async fn pick(self: &Arc<Self>) -> Result<ReplicaChoice, Status> {
        if self.size() == 0 {
            self.resolve_first().await;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        for replica in self.in_turn(turn).filter(|replica| !replica.is_ejected()) {
            match replica.connected() {
                Some(connection) => return Ok(ReplicaChoice { replica, connection }),
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

    /// Like [`Self::pick`], but avoids `those` replicas if there is another one.
    pub(super) async fn pick_besides(
        self: &Arc<Self>,
        those: &[Arc<ReplicaEndpoint>],
    ) -> Result<ReplicaChoice, Status> {
        match self.another(those).filter(|_| !those.is_empty()) {
            None => self.pick().await,
            Some(replica) => replica.connect().await,
        }
    }

    /// The next replica in turn that is not in `than`; a connected one if possible.
    pub(super) fn another(&self, than: &[Arc<ReplicaEndpoint>]) -> Option<Arc<ReplicaEndpoint>> {
        let mut others = self
            .in_turn(self.turn.load(Ordering::Relaxed))
            .filter(|replica| !than.iter().any(|asked| Arc::ptr_eq(asked, replica)))
            .peekable();
        let next = others.peek().cloned();
        let connected = others.find(|replica| !replica.is_ejected() && replica.connected().is_some());
        connected.or(next)
    }

    /// A request with the remaining time as its gRPC deadline.
    pub(super) fn request<Q>(&self, message: Q, until: Instant) -> Request<Q> {
        timed(self.annotations(), message, until)
    }

    /// The metadata for a call that starts now.
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

    /// Resolves while no address is known: one caller does, the others wait. Starts the resolver once.
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

    /// Resolves all names and keeps the replicas that remain, with their connections unless the certificates
    /// are new. A name that cannot be resolved keeps its last addresses.
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
                replicas.extend(kept.or_else(|| ReplicaEndpoint::new(target, address, tls, self)));
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

    /// Loads changed certificates from their files. True if they changed and are usable.
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
                "changed certificates for the session service cannot be used: the old ones stay in use"
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
        // A notification and the end of the interval have the same effect.
        let _ = tokio::time::timeout(wait.saturating_sub(RESOLVE_PAUSE), soon.notified()).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut certificates = pool.resolving.lock().await;
        pool.resolve(&mut certificates).await;
    }
}
