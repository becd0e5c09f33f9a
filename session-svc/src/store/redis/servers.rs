//! Every server of a deployment, asked by itself: how it stands, and what a restart of it would do.
//!
//! Masters are asked through the store's own connection. Replicas are known from their masters, and from the slots of a cluster;
//! each is asked over a connection of its own, as the same user.
//!
//! Nothing is changed, and what the user may not ask is said to be unknown.

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, RedisError, RedisResult, Value};

use super::facts::{self, Deployment};
use super::info::ServerInfo;
use super::nodes::Node;
use super::replay::{self, DefaultUser};
use super::source::{ConnectError, connect_to};
use super::{RedisStore, unavailable};
use crate::store::StoreError;
use crate::store::fact::{Assessment, Fact};
use crate::store::url::{ServerAddress, Topology};

const UNREACHABLE: &str =
    "this server cannot be judged: bring it back, or let this host and the user of SESSION_STORE in";

/// What one server answered.
pub(super) struct ServerAnswers {
    /// `HOST:PORT`; empty for the only one, and for the master behind Sentinels.
    pub(super) name: String,
    pub(super) info: ServerInfo,
    /// The points at which snapshots are taken, of a server that does not append; `None` if that may not be asked.
    pub(super) save: Option<String>,
    /// When the append-only file, if there is one, is given to the disk; `None` if that may not be asked.
    pub(super) appendfsync: Option<String>,
    /// What the default user may do with what is appended.
    pub(super) default_user: DefaultUser,
}

/// A server, and what it answered if it did.
pub(super) enum AskedServer {
    Answered(Deployment, Box<ServerAnswers>),
    Silent { name: String, why: String },
}

impl AskedServer {
    /// How it stands.
    pub(super) fn facts(&self, server_memory: Option<u64>) -> Vec<Fact> {
        match self {
            Self::Answered(deployment, answers) => facts::of_server(answers, *deployment, server_memory),
            Self::Silent { name, why } => {
                let fact = Fact::fine("server", format!("{why} on {name}"));
                vec![fact.standing(Assessment::Warning(UNREACHABLE))]
            }
        }
    }

    /// What a restart of it would lose.
    pub(super) fn restart_facts(&self) -> Vec<Fact> {
        match self {
            Self::Answered(_, answers) => facts::of_restart(answers),
            Self::Silent { .. } => Vec::new(),
        }
    }
}

/// How a server is asked.
enum Way<'a> {
    Routed(&'a RedisStore, Node),
    Direct(MultiplexedConnection),
}

impl Way<'_> {
    async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        match self {
            Self::Routed(store, node) => {
                let value = store.connection.on_node(node, command).await?;
                T::from_redis_value(value).map_err(RedisError::from)
            }
            Self::Direct(connection) => command.query_async(connection).await,
        }
    }

    async fn answers(mut self, name: String, key: &[u8], user: &str) -> RedisResult<ServerAnswers> {
        let info = ServerInfo::new(self.ask(&redis::cmd("INFO")).await?);
        let (mut save, mut appendfsync) = (None, None);
        if info.appends() {
            appendfsync = self.setting("appendfsync", user).await;
        } else {
            save = self.setting("save", user).await;
        }
        let mut default_user = DefaultUser::Unconcerned;
        if replay::is_concerned(&info) {
            for command in replay::commands(key) {
                let outcome = self.ask(&replay::dry_run(&command)).await;
                if !default_user.learn(&command, outcome) {
                    break;
                }
            }
        }
        Ok(ServerAnswers {
            name,
            info,
            save,
            appendfsync,
            default_user,
        })
    }

    /// A setting of the server, if `user`, who asks, may know it. The server is asked that first: what it refuses stands in its log.
    async fn setting(&mut self, name: &str, user: &str) -> Option<String> {
        let mut trial = redis::cmd("ACL");
        trial.arg("DRYRUN").arg(user).arg("CONFIG").arg("GET").arg(name);
        let tried: RedisResult<Value> = self.ask(&trial).await;
        if matches!(tried, Ok(answer) if answer != Value::Okay) {
            return None;
        }
        let mut command = redis::cmd("CONFIG");
        let pair: RedisResult<Vec<String>> = self.ask(command.arg("GET").arg(name)).await;
        pair.ok()?.pop()
    }
}

/// Whether the user of the store lacks a right.
pub(crate) fn lacks_right(error: &StoreError) -> bool {
    let StoreError::Unavailable(cause) = error else {
        return false;
    };
    let cause = cause.downcast_ref::<RedisError>();
    cause.is_some_and(|cause| cause.code() == Some("NOPERM"))
}

impl RedisStore {
    /// What the servers, the cluster and the Sentinels say of themselves.
    pub(super) async fn ask_facts(&self, server_memory: Option<u64>) -> Result<Vec<Fact>, StoreError> {
        let mut found = Vec::new();
        if self.shared.scattered {
            let about: String = self
                .connection
                .read(redis::cmd("CLUSTER").arg("INFO"))
                .await
                .map_err(unavailable)?;
            found.extend(facts::of_cluster(&about));
        }
        found.extend(self.sentinel_facts().await);
        for server in self.servers().await? {
            found.extend(server.facts(server_memory));
        }
        Ok(found)
    }

    /// What a restart of the servers would lose.
    pub(super) async fn ask_restart_facts(&self) -> Result<Vec<Fact>, StoreError> {
        match self.servers().await {
            Ok(servers) => Ok(servers.iter().flat_map(AskedServer::restart_facts).collect()),
            // A right that is missing will be missing the next time.
            Err(error) if lacks_right(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Asks all servers. Fails if one that holds keys may not be asked at all.
    async fn servers(&self) -> Result<Vec<AskedServer>, StoreError> {
        let key = self.shared.keys.nobodys_lease();
        let deployment = match &self.shared.settings.topology {
            Topology::Single(_) => Deployment::Single,
            Topology::Sentinel { .. } => Deployment::Sentinel,
            Topology::Cluster(_) => Deployment::Cluster,
        };
        let mut asked = Vec::new();
        let mut replicas = self.replicas_of_cluster().await?;
        for node in self.writes.nodes().await? {
            let name = node.name();
            let answers = Way::Routed(self, node).answers(name, &key, self.user()).await;
            let answers = answers.map_err(unavailable)?;
            if deployment == Deployment::Sentinel {
                let known = answers.info.replicas().into_iter();
                replicas.extend(known.map(|known| ServerAddress {
                    host: known.host,
                    port: known.port,
                }));
            }
            asked.push(AskedServer::Answered(deployment, Box::new(answers)));
        }
        let replicas = replicas
            .iter()
            .map(|replica| self.asked_directly(deployment, replica, &key));
        asked.extend(join_all(replicas).await);
        Ok(asked)
    }

    /// Who the servers take us for.
    fn user(&self) -> &str {
        let user = self.shared.settings.login.user.as_deref();
        user.unwrap_or("default")
    }

    async fn asked_directly(
        &self,
        deployment: Deployment,
        server: &ServerAddress,
        key: &[u8],
    ) -> AskedServer {
        let name = format!("{}:{}", server.host, server.port);
        let settings = &self.shared.settings;
        let answers = match connect_to(server, settings, &settings.login, settings.database).await {
            Ok(connection) => {
                let way = Way::Direct(connection);
                let answers = way.answers(name.clone(), key, self.user()).await;
                answers.map_err(ConnectError::from)
            }
            Err(error) => Err(error),
        };
        match answers {
            Ok(answers) => AskedServer::Answered(deployment, Box::new(answers)),
            Err(error) => AskedServer::Silent {
                name,
                why: chassis::findings::chain(&error),
            },
        }
    }

    /// What each of the Sentinels in the settings knows; nothing where there are none.
    async fn sentinel_facts(&self) -> Vec<Fact> {
        let Topology::Sentinel {
            sentinels,
            master,
            login,
        } = &self.shared.settings.topology
        else {
            return Vec::new();
        };
        let asked = sentinels.iter().map(async |sentinel| {
            let name = format!("{}:{}", sentinel.host, sentinel.port);
            let others = async {
                let mut connection = connect_to(sentinel, &self.shared.settings, login, 0).await?;
                let mut command = redis::cmd("SENTINEL");
                command.arg("MASTER").arg(master);
                let facts: std::collections::HashMap<String, String> =
                    command.query_async(&mut connection).await?;
                Ok::<_, ConnectError>(
                    facts
                        .get("num-other-sentinels")
                        .and_then(|count| count.parse().ok()),
                )
            };
            match others.await {
                Ok(others) => facts::of_sentinel(&name, others, sentinels.len()),
                Err(error) => Fact::fine(
                    "sentinel",
                    format!("{} on {name}", chassis::findings::chain(&error)),
                )
                .standing(Assessment::Warning(UNREACHABLE)),
            }
        });
        join_all(asked).await
    }
}
