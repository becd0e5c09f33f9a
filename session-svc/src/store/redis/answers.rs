//! Classifies a server's errors: the consequence for the connection, and for the caller.

use redis::RedisError;

use crate::store::StoreError;

/// The consequence of an error for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionAction {
    /// Keep it: only the command failed, or the server cannot execute it at the moment.
    Keep,
    /// Keep it, and ask the Sentinels: its server may no longer be the master.
    Look,
    /// Close it.
    Close,
}

/// Sorts an error by its code (the first word of an error, RESP "Simple errors").
pub(super) fn consequence(error: &RedisError) -> ConnectionAction {
    if error.is_io_error() || error.is_unrecoverable_error() {
        return ConnectionAction::Close;
    }
    match error.code() {
        // A replica: it takes no writes, its master is away, or it was the master until now.
        Some("READONLY" | "MASTERDOWN" | "UNBLOCKED") => ConnectionAction::Close,
        // A server that is starting, or that lost our login: another connection may work.
        Some("LOADING" | "NOAUTH" | "WRONGPASS") => ConnectionAction::Close,
        // A master without replicas may have been replaced. If it is still the master, reads continue.
        Some("NOREPLICAS") => ConnectionAction::Look,
        // OOM, MISCONF: memory or disk full. CLUSTERDOWN, TRYAGAIN: slots without a master, or being moved.
        // BUSY: a script runs. NOPERM: a right is missing. NOSCRIPT and all other errors concern the command.
        _ => ConnectionAction::Keep,
    }
}

/// Converts an error into the store port's error.
pub(super) fn unavailable(error: RedisError) -> StoreError {
    // Redis refuses writes with OOM if it is out of memory.
    if error.code() == Some("OOM") {
        StoreError::Full
    } else {
        StoreError::Unavailable(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    fn of(line: &str) -> ConnectionAction {
        let value = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        consequence(&value.extract_error().unwrap_err())
    }

    #[test]
    fn errors_of_a_server_that_is_no_master_let_its_connection_go() {
        for line in [
            "READONLY You can't write against a read only replica.",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
            "LOADING Redis is loading the dataset in memory",
            "NOAUTH Authentication required.",
        ] {
            assert_eq!(of(line), ConnectionAction::Close, "{line}");
        }
    }

    #[test]
    fn a_master_without_replicas_is_asked_about_and_read_on() {
        assert_eq!(
            of("NOREPLICAS Not enough good replicas to write."),
            ConnectionAction::Look
        );
    }

    #[test]
    fn errors_that_another_connection_would_give_too_keep_it() {
        for line in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
            "BUSY Redis is busy running a script.",
            "CLUSTERDOWN The cluster is down",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "NOPERM this user has no permissions to run the 'time' command",
            "NOSCRIPT No matching script.",
            "ERR wrong number of arguments",
        ] {
            assert_eq!(of(line), ConnectionAction::Keep, "{line}");
        }
    }
}
