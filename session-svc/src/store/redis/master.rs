//! Which server is used behind Sentinels: followed as they replace it, and no longer used than it is proven to be the master.
//!
//! Invariants
//! - A server is used only while it was vouched for within `FRESH`: by a majority of the Sentinels, or, where too few of them
//!   answer, by all the replicas they knew of. A replica that was promoted acknowledges nothing to its old master, so one
//!   that does cannot have replaced it.
//! - When another server is the master, or the one in use is not vouched for any more, every connection is let go at once.
//! - A master that is about to be replaced is not used: what it acknowledged then would be undone.
//! - Where there is none any more, whoever needs one waits for `VERDICT_WAIT`, and is refused at once from then on: what passes by itself (a
//!   failover that was planned, a machine that stood still) refuses nobody, and an outage holds nobody up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Client, ErrorKind, RedisResult};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::quorum::{FRESH, QuorumVerdict, SentinelAnswer, judge};
use super::sentinels;
use super::source::connection_config;
use crate::store::url::ServerAddress;

/// How often the verdict is looked at although nothing new was said: answers grow old.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Without a majority for this long the replicas are queried; what is left of `FRESH` is enough for their answers.
const PROVE_AFTER: Duration = Duration::from_millis(400);

/// How often they are queried then.
const PROVE_EVERY: Duration = Duration::from_millis(200);

/// Longest a proof may take, connecting included.
const PROOF_TIMEOUT: Duration = Duration::from_millis(250);

/// Longest the replicas may take to acknowledge.
const ACKNOWLEDGE_MS: u64 = 200;

/// What is written for a proof is gone after this.
const PROBE_MS: u64 = 1_000;

/// How long callers wait, counted from when it was found that there is no master: a planned failover takes little more than a second.
const VERDICT_WAIT: Duration = Duration::from_secs(2);

const NOBODY_NAMED: &str = "no Sentinel names a master";

/// The server in use.
#[derive(Clone)]
enum MasterState {
    /// None for the moment, and why.
    Awaited(&'static str),
    /// This one.
    Used(Arc<Client>),
    /// None, and why.
    None(&'static str),
}

/// Makes the client of an address.
pub(super) type MakeClient = Box<dyn Fn(&ServerAddress) -> RedisResult<Client> + Send + Sync>;

/// Follows the master until dropped.
pub(super) struct Master {
    standing: watch::Receiver<MasterState>,
    look: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Master {
    /// Follows what `sentinels` call `name`. `probe` is the key that proofs write; `let_go` is signalled when every
    /// connection is to be let go.
    pub(super) fn follow(
        sentinels: Vec<Client>,
        name: &str,
        make: MakeClient,
        probe: String,
        let_go: watch::Sender<()>,
    ) -> Self {
        let answers = watch::Sender::new(vec![None; sentinels.len()]);
        let look = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        let latest = answers.subscribe();
        for (at, client) in sentinels.into_iter().enumerate() {
            let polling = sentinels::ask_on(client, name.to_owned(), at, answers.clone(), Arc::clone(&look));
            tasks.spawn(polling);
        }
        let (sender, standing) = watch::channel(MasterState::Awaited(NOBODY_NAMED));
        let follower = MasterFollower {
            latest,
            standing: sender,
            let_go,
            make,
            probe,
            followed: None,
            moved: false,
            prover: None,
            awaited_since: None,
        };
        tasks.spawn(follower.follow());
        Self {
            standing,
            look,
            _tasks: tasks,
        }
    }

    /// The client of the server in use; waits while there is none for the moment.
    pub(super) async fn client(&self) -> RedisResult<Client> {
        let mut standing = self.standing.clone();
        let known = standing.wait_for(|standing| !matches!(standing, MasterState::Awaited(_)));
        // Whether there is one, or why not, is what stands at the end of the wait.
        let _ = tokio::time::timeout(VERDICT_WAIT, known).await;
        match &*self.standing.borrow() {
            MasterState::Used(client) => Ok(Client::clone(client)),
            MasterState::Awaited(why) | MasterState::None(why) => Err((ErrorKind::Io, *why).into()),
        }
    }

    /// Queries all Sentinels at once.
    pub(super) fn look(&self) {
        self.look.notify_waiters();
    }
}

/// The state of the master.
struct Followed {
    epoch: u64,
    address: ServerAddress,
    client: Arc<Client>,
    /// When it was vouched for last.
    vouched: Option<Instant>,
    /// When a majority of the Sentinels named it last.
    majority: Option<Instant>,
    /// Replicas the Sentinels knew of then, those that are away included: they might be back, and be promoted.
    replicas: usize,
}

struct MasterFollower {
    latest: watch::Receiver<Vec<Option<SentinelAnswer>>>,
    standing: watch::Sender<MasterState>,
    let_go: watch::Sender<()>,
    make: MakeClient,
    probe: String,
    followed: Option<Followed>,
    /// Whether it is another than the one announced last.
    moved: bool,
    prover: Option<MultiplexedConnection>,
    /// When it was found that there is none.
    awaited_since: Option<Instant>,
}

impl MasterFollower {
    async fn follow(mut self) {
        loop {
            let standing = self.stands().await;
            self.announce(standing);
            tokio::select! {
                changed = self.latest.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    async fn stands(&mut self) -> MasterState {
        let now = Instant::now();
        let followed = self
            .followed
            .as_ref()
            .map(|followed| (followed.epoch, &followed.address));
        let verdict = judge(&self.latest.borrow_and_update(), now, followed);
        match verdict {
            QuorumVerdict::Replacing => return self.nobody("the Sentinels are replacing the master"),
            QuorumVerdict::Silent => {}
            QuorumVerdict::Master {
                epoch,
                address,
                replicas,
                majority_at,
            } => {
                if let Err(error) = self.found(epoch, address) {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the address of the master cannot be used"
                    );
                    return self.nobody("the Sentinels name an address that cannot be used");
                }
                if let Some(followed) = &mut self.followed {
                    followed.majority = followed.majority.max(majority_at);
                    followed.vouched = followed.vouched.max(majority_at);
                    // Too few Sentinels may add to what a majority knew, and take nothing away.
                    let known = if majority_at.is_some() {
                        0
                    } else {
                        followed.replicas
                    };
                    followed.replicas = replicas.max(known);
                }
            }
        }
        self.prove().await;
        match &self.followed {
            Some(followed) if followed.vouched.is_some_and(|at| at.elapsed() < FRESH) => {
                self.awaited_since = None;
                MasterState::Used(Arc::clone(&followed.client))
            }
            None => self.nobody(NOBODY_NAMED),
            Some(_) => self.nobody("neither the Sentinels nor all replicas vouch for the master"),
        }
    }

    /// No master, and why: for the moment, or for longer.
    fn nobody(&mut self, why: &'static str) -> MasterState {
        let since = *self.awaited_since.get_or_insert_with(Instant::now);
        if since.elapsed() < VERDICT_WAIT {
            MasterState::Awaited(why)
        } else {
            MasterState::None(why)
        }
    }

    /// Takes over what the Sentinels say.
    fn found(&mut self, epoch: u64, address: ServerAddress) -> RedisResult<()> {
        match &mut self.followed {
            Some(followed) if followed.address == address => followed.epoch = epoch,
            _ => {
                let client = Arc::new((self.make)(&address)?);
                tracing::info!(
                    server.address = address.host,
                    server.port = address.port,
                    "the master of the store"
                );
                self.followed = Some(Followed {
                    epoch,
                    address,
                    client,
                    vouched: None,
                    majority: None,
                    replicas: 0,
                });
                self.moved = true;
                self.prover = None;
            }
        }
        Ok(())
    }

    /// Without a majority of the Sentinels: queries the replicas through their master. Something is written, and all of them
    /// acknowledge it.
    async fn prove(&mut self) {
        let Some(followed) = &mut self.followed else {
            return;
        };
        let older = |at: Option<Instant>, than| at.is_none_or(|at| at.elapsed() > than);
        if !older(followed.majority, PROVE_AFTER) {
            self.prover = None;
            return;
        }
        if !older(followed.vouched, PROVE_EVERY) {
            return;
        }
        let began = Instant::now();
        // While the server is still used, no longer than it may be.
        let left = followed.vouched.map(|at| FRESH.saturating_sub(at.elapsed()));
        let bound = left
            .filter(|left| !left.is_zero())
            .map_or(PROOF_TIMEOUT, |left| left.min(PROOF_TIMEOUT));
        let proof = acknowledged(&followed.client, &mut self.prover, &self.probe, followed.replicas);
        match tokio::time::timeout(bound, proof).await {
            Ok(Ok(replicas)) if replicas >= followed.replicas => followed.vouched = Some(began),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the replicas cannot be asked by way of the master"
                );
                self.prover = None;
            }
            Err(_) => self.prover = None,
        }
    }

    fn announce(&mut self, standing: MasterState) {
        let was = self.standing.send_replace(standing.clone());
        let [is_used, was_used] = [&standing, &was].map(|state| matches!(state, MasterState::Used(_)));
        match (&was, &standing) {
            (MasterState::Used(_), MasterState::Awaited(reason)) => {
                tracing::info!(
                    reason,
                    "no master of the store for the moment: who needs one waits"
                );
            }
            (MasterState::Used(_) | MasterState::Awaited(_), MasterState::None(reason)) => {
                tracing::warn!(reason, "no master of the store is used");
            }
            (MasterState::None(_) | MasterState::Awaited(_), MasterState::Used(_)) => {
                tracing::info!("the master of the store is used");
            }
            _ => {}
        }
        // After the change is announced: who connects from now on gets no connection of before.
        if was_used && (!is_used || self.moved) {
            self.let_go.send_replace(());
        }
        self.moved = false;
    }
}

/// How many replicas acknowledge something that is written now.
async fn acknowledged(
    client: &Client,
    prover: &mut Option<MultiplexedConnection>,
    key: &str,
    replicas: usize,
) -> RedisResult<usize> {
    let config = connection_config(PROOF_TIMEOUT);
    let connection = match prover {
        Some(connection) => connection,
        None => prover.insert(
            client
                .get_multiplexed_async_connection_with_config(&config)
                .await?,
        ),
    };
    let mut proof = redis::pipe();
    proof.cmd("SET").arg(key).arg("").arg("PX").arg(PROBE_MS).ignore();
    proof.cmd("WAIT").arg(replicas).arg(ACKNOWLEDGE_MS);
    let (count,): (usize,) = proof.query_async(connection).await?;
    Ok(count)
}
