//! What the errors of a server mean: for the connection they came on, and for the caller.

use redis::RedisError;

use crate::store::StoreError;

/// What is to be done about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// It is fine: the command or the moment was not.
    Keep,
    /// It is fine, and its server may be the master no more: the Sentinels know.
    Look,
    /// It is of no use any more.
    LetGo,
}

/// Sorts an error by its code (the first word of an error, RESP "Simple errors").
pub(super) fn consequence(error: &RedisError) -> Consequence {
    if error.is_io_error() || error.is_unrecoverable_error() {
        return Consequence::LetGo;
    }
    match error.code() {
        // A replica: one that takes no writes, one whose master is away, one that was a master until now.
        Some("READONLY" | "MASTERDOWN" | "UNBLOCKED") => Consequence::LetGo,
        // A server that has just begun, and one that forgot who we are: another connection may lead further.
        Some("LOADING" | "NOAUTH" | "WRONGPASS") => Consequence::LetGo,
        // A master without replicas may be a deposed one. If it is the right one, it reads on.
        Some("NOREPLICAS") => Consequence::Look,
        // OOM and MISCONF (memory or disk full), CLUSTERDOWN and TRYAGAIN (slots without a master, or being moved),
        // BUSY (a script runs), NOPERM (a right is missing), NOSCRIPT and whatever a command did wrong.
        _ => Consequence::Keep,
    }
}

/// The error of the port.
pub(super) fn unavailable(error: RedisError) -> StoreError {
    // A server that is out of memory refuses writes and says so.
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

    fn of(line: &str) -> Consequence {
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
            assert_eq!(of(line), Consequence::LetGo, "{line}");
        }
    }

    #[test]
    fn a_master_without_replicas_is_asked_about_and_read_on() {
        assert_eq!(
            of("NOREPLICAS Not enough good replicas to write."),
            Consequence::Look
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
            assert_eq!(of(line), Consequence::Keep, "{line}");
        }
    }
}
