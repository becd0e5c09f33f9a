//! What a server answers to INFO: lines of `name:value`.

/// The answer of one server.
#[derive(Clone, Debug)]
pub(super) struct ServerInfo(String);

/// A replica, as its master tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownReplica {
    pub(super) host: String,
    pub(super) port: u16,
    /// Whether it has caught up and follows.
    pub(super) is_online: bool,
    /// Bytes of the replication stream it has not acknowledged.
    pub(super) behind_bytes: u64,
    /// Seconds since it acknowledged last.
    pub(super) silent_secs: u64,
}

impl ServerInfo {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// A value as it stands there.
    pub(super) fn said(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| {
            let (known, value) = line.trim_end().split_once(':')?;
            (known == name).then_some(value)
        })
    }

    /// A value that is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.said(name)?.parse().ok()
    }

    /// Whether the server takes writes.
    pub(super) fn is_master(&self) -> bool {
        self.said("role") == Some("master")
    }

    /// Whether the server keeps an append-only file.
    pub(super) fn appends(&self) -> bool {
        self.said("aof_enabled") == Some("1")
    }

    /// The replicas of a master.
    pub(super) fn replicas(&self) -> Vec<KnownReplica> {
        let written = self.number("master_repl_offset").unwrap_or(0);
        let count = self.number("connected_slaves").unwrap_or(0);
        let lines = (0..count).filter_map(|at| self.said(&format!("slave{at}")));
        lines.filter_map(|line| replica(line, written)).collect()
    }
}

/// `ip=10.0.0.2,port=6379,state=online,offset=42,lag=0`.
fn replica(line: &str, written: u64) -> Option<KnownReplica> {
    let said = |name: &str| {
        line.split(',').find_map(|pair| {
            let (known, value) = pair.split_once('=')?;
            (known == name).then_some(value)
        })
    };
    let number = |name: &str| said(name)?.parse::<u64>().ok();
    Some(KnownReplica {
        host: said("ip")?.to_owned(),
        port: said("port")?.parse().ok()?,
        is_online: said("state") == Some("online"),
        behind_bytes: written.saturating_sub(number("offset").unwrap_or(0)),
        silent_secs: number("lag").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_read_with_how_far_they_are_behind() {
        let info = ServerInfo::new(
            "role:master\r\nconnected_slaves:2\r\n\
             slave0:ip=10.0.0.2,port=6379,state=online,offset=900,lag=1,type=replica\r\n\
             slave1:ip=redis-2.redis,port=6380,state=wait_bgsave,offset=0,lag=0\r\n\
             master_repl_offset:1000\r\n"
                .to_owned(),
        );
        let replicas = info.replicas();
        let behind = |at: usize| {
            let replica: &KnownReplica = &replicas[at];
            (replica.is_online, replica.behind_bytes, replica.silent_secs)
        };
        assert_eq!(replicas.len(), 2);
        assert_eq!(
            (replicas[1].host.as_str(), replicas[1].port),
            ("redis-2.redis", 6380)
        );
        assert_eq!((behind(0), behind(1)), ((true, 100, 1), (false, 1000, 0)));
    }

    #[test]
    fn a_name_is_read_whole() {
        let info = ServerInfo::new("maxmemory_policy:noeviction\r\nmaxmemory:12\r\n".to_owned());
        assert_eq!((info.number("maxmemory"), info.said("memory")), (Some(12), None));
    }
}
