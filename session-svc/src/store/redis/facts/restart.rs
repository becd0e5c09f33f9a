//! What a restart of a server would lose: what it has written down, and whether it would read that back.

use super::super::replay::{DefaultUser, is_repaired};
use super::super::servers::ServerAnswers;
use crate::store::fact::{Assessment, Fact};

const NO_PERSISTENCE: &str =
    "a restart of this server loses every session: set appendonly yes, or save points";
const ONLY_SNAPSHOTS: &str =
    "a crash loses the sessions since the last snapshot: appendonly yes loses a second";
const UNKNOWN_PERSISTENCE: &str =
    "appendonly is off, and whether snapshots are taken may not be asked: allow +config|get to know";
const NEVER_FLUSHED: &str = "a crash of the machine loses what its system had not written by then, half a minute and more: set appendfsync everysec";
const UNKNOWN_FLUSHING: &str =
    "how often what is appended reaches the disk may not be asked: allow +config|get to know";
const NOT_APPENDED: &str = "the append-only file could not be written, so a restart loses what came since: make room on its disk, and read the server's log";
const NOT_REWRITTEN: &str = "the append-only file grows until its disk is full: a rewrite needs memory for copies and room for a second file";
const NOT_SAVED: &str = "a snapshot needs memory for copies and room on the disk, as a replica that connects does: read the server's log";
const NOT_REPLAYED: &str = "a restart loses every session since the last rewrite of the append-only file, which is loaded as the user \"default\": give it \"user default off ~* &* +@all\" (off: nobody signs in as it)";
const NOT_REPLAYED_ELSEWHERE: &str = "this release loads its append-only file all the same, and older ones do not: before you go back to one, give the user \"default\" its rights, \"user default off ~* &* +@all\"";
const UNKNOWN_REPLAY: &str = "whether the user \"default\" may do what is loaded at a restart may not be asked: allow +acl|dryrun to know; it needs \"user default off ~* &* +@all\"";

/// Judges what a server answered.
pub(super) fn judged(answers: &ServerAnswers) -> Vec<Fact> {
    let info = &answers.info;
    let appends = info.appends();
    let mut facts = vec![persistence(appends, answers.save.as_deref())];
    if appends {
        facts.push(flushing(answers.appendfsync.as_deref()));
        facts.push(status(
            "append_status",
            info.said("aof_last_write_status"),
            Assessment::Problem(NOT_APPENDED),
        ));
        facts.push(status(
            "rewrite_status",
            info.said("aof_last_bgrewrite_status"),
            Assessment::Warning(NOT_REWRITTEN),
        ));
    }
    if info.said("rdb_last_bgsave_status") == Some("err") {
        facts.push(Fact::fine("snapshot_status", "err").standing(Assessment::Warning(NOT_SAVED)));
    }
    facts.extend(default_user(&answers.default_user, is_repaired(info)));
    facts
}

fn persistence(appends: bool, save: Option<&str>) -> Fact {
    let (value, standing) = match (appends, save) {
        (true, _) => ("appendonly", Assessment::Fine),
        (false, None) => ("unknown", Assessment::Unknown(UNKNOWN_PERSISTENCE)),
        (false, Some("")) => ("none", Assessment::Warning(NO_PERSISTENCE)),
        (false, Some(_)) => ("snapshots", Assessment::Warning(ONLY_SNAPSHOTS)),
    };
    Fact::fine("persistence", value).standing(standing)
}

fn flushing(appendfsync: Option<&str>) -> Fact {
    let standing = match appendfsync {
        None => Assessment::Unknown(UNKNOWN_FLUSHING),
        Some("no") => Assessment::Warning(NEVER_FLUSHED),
        Some(_) => Assessment::Fine,
    };
    Fact::fine("appendfsync", appendfsync.unwrap_or("unknown")).standing(standing)
}

/// How the last attempt went; a server that says nothing has not failed.
fn status(name: &'static str, said: Option<&str>, otherwise: Assessment) -> Fact {
    let said = said.unwrap_or("ok");
    let standing = if said == "ok" { Assessment::Fine } else { otherwise };
    Fact::fine(name, said).standing(standing)
}

fn default_user(may: &DefaultUser, is_repaired: bool) -> Option<Fact> {
    let (value, standing) = match may {
        DefaultUser::Unconcerned => return None,
        DefaultUser::MayReplay => ("may do what is loaded".to_owned(), Assessment::Fine),
        DefaultUser::MayNot(commands) => (
            format!("may not {} what is loaded", commands.join(", ")),
            if is_repaired {
                Assessment::Warning(NOT_REPLAYED_ELSEWHERE)
            } else {
                Assessment::Problem(NOT_REPLAYED)
            },
        ),
        DefaultUser::Unknown => ("unknown".to_owned(), Assessment::Unknown(UNKNOWN_REPLAY)),
    };
    Some(Fact::fine("default_user", value).standing(standing))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answers, standing};
    use super::*;

    #[test]
    fn what_a_restart_would_lose_is_warned_of() {
        let judged = |appends: &str, save: Option<&str>| {
            let mut answers = answers(&format!("aof_enabled:{appends}\r\n"));
            answers.save = save.map(str::to_owned);
            standing(&judged(&answers), "persistence")
        };
        assert_eq!(judged("1", Some("")), Assessment::Fine);
        assert!(matches!(judged("0", None), Assessment::Unknown(_)));
        for save in ["", "3600 1"] {
            assert!(
                matches!(judged("0", Some(save)), Assessment::Warning(_)),
                "{save:?}"
            );
        }
    }

    #[test]
    fn a_file_that_is_left_to_the_system_is_warned_of_and_an_unknown_one_is_unknown() {
        let judged = |appendfsync: Option<&str>| {
            let mut answers = answers("aof_enabled:1\r\n");
            answers.appendfsync = appendfsync.map(str::to_owned);
            standing(&judged(&answers), "appendfsync")
        };
        assert_eq!(judged(Some("everysec")), Assessment::Fine);
        assert_eq!(judged(Some("always")), Assessment::Fine);
        assert!(matches!(judged(Some("no")), Assessment::Warning(_)));
        assert!(matches!(judged(None), Assessment::Unknown(_)));
    }

    #[test]
    fn a_write_that_failed_is_a_problem_and_a_rewrite_or_snapshot_that_failed_a_warning() {
        let about = |write: &str, rewrite: &str, save: &str| {
            judged(&answers(&format!(
                "aof_enabled:1\r\naof_last_write_status:{write}\r\naof_last_bgrewrite_status:{rewrite}\r\nrdb_last_bgsave_status:{save}\r\n"
            )))
        };
        let well = about("ok", "ok", "ok");
        assert_eq!(standing(&well, "append_status"), Assessment::Fine);
        assert_eq!(standing(&well, "rewrite_status"), Assessment::Fine);
        assert!(well.iter().all(|fact| fact.name != "snapshot_status"));
        let failed = about("err", "err", "err");
        assert!(matches!(
            standing(&failed, "append_status"),
            Assessment::Problem(_)
        ));
        for name in ["rewrite_status", "snapshot_status"] {
            assert!(
                matches!(standing(&failed, name), Assessment::Warning(_)),
                "{name}"
            );
        }
    }

    #[test]
    fn a_default_user_without_rights_is_a_problem_and_one_nobody_may_ask_about_is_unknown() {
        let of = |version: &str, default_user: DefaultUser| {
            let mut answers = answers(&format!("aof_enabled:1\r\nredis_version:{version}\r\n"));
            answers.default_user = default_user;
            judged(&answers)
                .into_iter()
                .find(|fact| fact.name == "default_user")
        };
        let judged = |default_user| of("8.0.6", default_user);
        assert_eq!(judged(DefaultUser::Unconcerned), None);
        assert_eq!(judged(DefaultUser::MayReplay).unwrap().standing, Assessment::Fine);
        let missing = judged(DefaultUser::MayNot(vec!["set", "zadd"])).unwrap();
        assert!(missing.value.contains("set, zadd"), "{missing:?}");
        assert_eq!(missing.standing, Assessment::Problem(NOT_REPLAYED));
        let repaired = of("8.6.0", DefaultUser::MayNot(vec!["set"])).unwrap();
        assert_eq!(repaired.standing, Assessment::Warning(NOT_REPLAYED_ELSEWHERE));
        assert!(matches!(
            judged(DefaultUser::Unknown).unwrap().standing,
            Assessment::Unknown(_)
        ));
    }
}
