//! Would the server accept its own append-only file when it loads it?
//!
//! What a script changed stands there as a transaction. From Redis 7.0 on the file is loaded as the user `default`, and EXEC asks what
//! that user may do, whoever had written: what it may not is left out without a word, and everybody who signed in since the last rewrite
//! is signed out (redis issue 14541, valkey issue 3983). The newest releases are repaired, and some older ones by patches that no version
//! tells of; the rights do no harm, so they are asked for everywhere.
//!
//! The server itself is asked, command by command (ACL DRYRUN): rules can be written in many ways.

use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, Value};

use super::info::ServerInfo;

/// The first release whose loading asks for rights.
const CONCERNED_FROM: u64 = 7;

/// From these releases on everything is loaded: Redis with pull request 14545, Valkey with 3984 (`make restarts` has tried it).
const REDIS_REPAIRED_FROM: [u64; 3] = [8, 6, 0];
const VALKEY_REPAIRED_FROM: [u64; 3] = [9, 1, 2];

/// What the default user may do with what is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DefaultUser {
    /// Nothing is appended, or the release does not ask.
    Unconcerned,
    /// Everything.
    MayReplay,
    /// Not these.
    MayNot(Vec<&'static str>),
    /// That may not be asked.
    Unknown,
}

/// A command of the file: its name and its arguments.
pub(super) struct ReplayedCommand {
    name: &'static str,
    arguments: Vec<Vec<u8>>,
}

/// The commands that scripts leave in the file, on a key of ours.
pub(super) fn commands(key: &[u8]) -> Vec<ReplayedCommand> {
    let on_key = |name, further: &[&str]| ReplayedCommand {
        name,
        arguments: std::iter::once(key.to_vec())
            .chain(further.iter().map(|argument| argument.as_bytes().to_vec()))
            .collect(),
    };
    vec![
        ReplayedCommand {
            name: "select",
            arguments: vec![b"0".to_vec()],
        },
        on_key("set", &[""]),
        on_key("del", &[]),
        on_key("unlink", &[]),
        on_key("pexpireat", &["0"]),
        on_key("zadd", &["0", "member"]),
        on_key("zrem", &["member"]),
        on_key("xadd", &["*", "e", "event"]),
    ]
}

/// Asks what would happen; nothing does.
pub(super) fn dry_run(command: &ReplayedCommand) -> Cmd {
    let mut question = redis::cmd("ACL");
    question.arg("DRYRUN").arg("default").arg(command.name);
    question.arg(&command.arguments);
    question
}

/// Whether a server keeps a file that is loaded as the default user.
pub(super) fn is_concerned(info: &ServerInfo) -> bool {
    let version = info.said("redis_version").unwrap_or_default();
    let major = version.split('.').next().and_then(|major| major.parse().ok());
    info.appends() && major.is_none_or(|major: u64| major >= CONCERNED_FROM)
}

/// Whether a server is known to load everything, whatever the default user may do.
pub(super) fn is_repaired(info: &ServerInfo) -> bool {
    let from = |version: &str, release: [u64; 3]| {
        let numbers = version
            .split('.')
            .map(|number| number.parse::<u64>().unwrap_or(0));
        numbers.cmp(release).is_ge()
    };
    match info.said("valkey_version") {
        // Valkey also tells which Redis it is compatible with.
        Some(version) => from(version, VALKEY_REPAIRED_FROM),
        None => info
            .said("redis_version")
            .is_some_and(|version| from(version, REDIS_REPAIRED_FROM)),
    }
}

impl DefaultUser {
    /// Takes in what came of a question; false if further ones lead nowhere.
    pub(super) fn learn(&mut self, command: &ReplayedCommand, outcome: RedisResult<Value>) -> bool {
        let allowed = match outcome {
            Ok(Value::Okay) => true,
            Ok(_) => false,
            // A managed server that renamed or removed a command has nothing to replay by it.
            Err(error) if is_about_the_command(&error) => return true,
            Err(_) => {
                *self = Self::Unknown;
                return false;
            }
        };
        match self {
            Self::MayNot(missing) if !allowed => missing.push(command.name),
            Self::Unconcerned | Self::MayReplay if !allowed => *self = Self::MayNot(vec![command.name]),
            Self::Unconcerned => *self = Self::MayReplay,
            Self::MayReplay | Self::MayNot(_) | Self::Unknown => {}
        }
        true
    }
}

/// `Command 'x' not found` is about what was to be tried, and not about the right to try.
fn is_about_the_command(error: &redis::RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ResponseError))
        && error.to_string().contains("not found")
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    fn info(version: &str, appends: &str) -> ServerInfo {
        ServerInfo::new(format!("redis_version:{version}\r\naof_enabled:{appends}\r\n"))
    }

    fn answer(line: &str) -> RedisResult<Value> {
        parse_redis_value(line.as_bytes())?.extract_error()
    }

    fn learned(answers: &[&str]) -> DefaultUser {
        let mut user = DefaultUser::Unconcerned;
        for (command, line) in commands(b"key").iter().zip(answers) {
            if !user.learn(command, answer(line)) {
                break;
            }
        }
        user
    }

    #[test]
    fn a_server_that_appends_is_concerned_from_release_seven_on() {
        for (version, appends, concerned) in [
            ("7.0.15", "1", true),
            ("8.0.2", "1", true),
            ("10.1.0", "1", true),
            ("unheard-of", "1", true),
            ("6.2.14", "1", false),
            ("7.0.15", "0", false),
        ] {
            assert_eq!(is_concerned(&info(version, appends)), concerned, "{version}");
        }
    }

    #[test]
    fn a_release_that_loads_everything_is_known_by_its_own_version() {
        let repaired = |about: &str| is_repaired(&ServerInfo::new(about.replace(' ', "\r\n")));
        for (about, expected) in [
            ("redis_version:8.6.0", true),
            ("redis_version:8.10.1", true),
            ("redis_version:8.0.6", false),
            ("redis_version:7.2.4 valkey_version:9.1.2", true),
            ("redis_version:7.2.4 valkey_version:9.1.1", false),
            ("redis_version:9.9.9 valkey_version:8.1.1", false),
            ("os:Linux", false),
        ] {
            assert_eq!(repaired(about), expected, "{about}");
        }
    }

    #[test]
    fn one_command_that_is_refused_is_enough() {
        let refused = "$16\r\nno permissions..\r\n";
        assert_eq!(learned(&["+OK\r\n", "+OK\r\n"]), DefaultUser::MayReplay);
        assert_eq!(
            learned(&["+OK\r\n", refused, "+OK\r\n", refused]),
            DefaultUser::MayNot(vec!["set", "unlink"])
        );
    }

    #[test]
    fn what_may_not_be_asked_is_unknown_and_not_fine() {
        let forbidden = "-NOPERM this user has no permissions to run the 'acl|dryrun' command\r\n";
        assert_eq!(learned(&[forbidden, "+OK\r\n"]), DefaultUser::Unknown);
        assert_eq!(
            learned(&["-ERR Command 'select' not found\r\n", "+OK\r\n"]),
            DefaultUser::MayReplay
        );
        assert_eq!(learned(&["-ERR unknown command 'ACL'\r\n"]), DefaultUser::Unknown);
    }
}
