//! With `--json` every command writes exactly one document, whatever comes in its way.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::{ISSUER, NEW_KEY, OLD_KEY, ToolOutput, file_in, program};

const COMMANDS: [&[&str]; 4] = [
    &["check-store"],
    &["sessions", "list", "--subject", "ada"],
    &["sessions", "show", "--handle", "0123456789abcdef0123456789abcdef"],
    &["sessions", "end", "--subject", "ada", "--yes"],
];

fn reported(arguments: &[&str], settings: &[(&str, &str)]) -> ToolOutput {
    let mut command = program();
    command
        .args(arguments)
        .arg("--json")
        .envs(settings.iter().copied());
    ToolOutput::of(command.output().unwrap())
}

fn reason(reported: &ToolOutput) -> String {
    reported.json()["error"]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_command_that_fails_says_so_in_a_document() {
    let directory = tempfile::tempdir().unwrap();
    let missing = file_in(directory.path());
    let settings = [
        ("SESSION_STORE", missing.as_str()),
        ("SESSION_ENCRYPTION_KEY", NEW_KEY),
        ("SESSION_LISTEN", "127.0.0.1:9"),
        ("OIDC_ISSUER_URL", ISSUER),
    ];
    for command in COMMANDS {
        let failed = reported(command, &settings);
        assert_eq!(failed.code, 1, "{command:?}: {failed:?}");
        assert!(!reason(&failed).is_empty());
        let misused = reported(&[command, &["--unheard-of"]].concat(), &settings);
        assert_eq!(
            (misused.code, reason(&misused).as_str()),
            (2, "usage"),
            "{command:?}"
        );
    }
    let no_command = reported(&["sessions", "unheard-of"], &settings);
    assert_eq!((no_command.code, reason(&no_command).as_str()), (2, "usage"));
    for command in COMMANDS {
        let setting = if command[0] == "sessions" {
            "SESSION_LISTEN"
        } else {
            "SESSION_STORE"
        };
        let wrong = reported(command, &[(setting, "nonsense")]);
        assert_eq!(
            (wrong.code, reason(&wrong).as_str()),
            (78, "settings"),
            "{command:?}"
        );
    }
    let unreachable = [
        ("SESSION_STORE", "redis://127.0.0.1:9"),
        ("SESSION_ENCRYPTION_KEY", OLD_KEY),
    ];
    let failed = reported(COMMANDS[0], &unreachable);
    assert_eq!((failed.code, reason(&failed).as_str()), (1, "store_unavailable"));
}

#[test]
fn a_command_that_is_told_to_stop_says_so_in_a_document() {
    // Takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for command in COMMANDS {
        let mut child = program()
            .args(command)
            .arg("--json")
            .envs([
                ("SESSION_STORE", format!("redis://127.0.0.1:{port}").as_str()),
                ("SESSION_ENCRYPTION_KEY", NEW_KEY),
                ("SESSION_LISTEN", &format!("127.0.0.1:{port}")),
                ("OIDC_ISSUER_URL", ISSUER),
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It has connected, and so it waits.
        std::mem::forget(silent.accept().unwrap());
        let id = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "{command:?} does not stop"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let document: Value =
            serde_json::from_str(&out).unwrap_or_else(|error| panic!("{command:?}: {error}: {out}"));
        assert_eq!(document["error"]["reason"], "stopped", "{command:?}");
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}
