//! A file that lost data fails at start, also for the tool, without an abort. Empty files fail too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use chassis::clock::ManualClock;
use proptest::prelude::*;
use session_svc::store::embedded::{EmbeddedStore, FileError, FileProblem};
use session_svc::store::{KeyValueStore as _, Record};

use crate::contract::numbered;

const SOME_TIME_MS: u64 = 1_800_000_000_000;
const KEY: &str = "0000000000000000000000000000000000000000000000000000000000000001";

fn open(path: &Path) -> Result<EmbeddedStore, FileError> {
    EmbeddedStore::open(path, Arc::new(ManualClock::new(SOME_TIME_MS)))
}

/// A file of some hundred sessions: closed, or as a killed process leaves it.
fn written(closed: bool) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    let store = open(&path).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for number in 0..300_u64 {
        let record = Record {
            name: numbered(number),
            version: 1,
            expires_at_ms: SOME_TIME_MS + 600_000,
            created_at_ms: SOME_TIME_MS,
            indexes: vec![numbered(number % 20)],
            payload: vec![7; 900],
        };
        runtime.block_on(store.insert(record, vec![1; 200])).unwrap();
    }
    if closed {
        drop(store);
        return std::fs::read(&path).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    drop(store);
    bytes
}

/// Damage to a file.
#[derive(Clone, Debug)]
enum Harm {
    Flip { at: usize, bit: u8 },
    Lose { page: usize },
    Noise { page: usize, seed: u8 },
    Cut { to: usize },
}

fn harm() -> impl Strategy<Value = Harm> {
    let place = 0..usize::MAX;
    prop_oneof![
        (place.clone(), 0..8_u8).prop_map(|(at, bit)| Harm::Flip { at, bit }),
        place.clone().prop_map(|page| Harm::Lose { page }),
        (place.clone(), any::<u8>()).prop_map(|(page, seed)| Harm::Noise { page, seed }),
        place.prop_map(|to| Harm::Cut { to }),
    ]
}

const PAGE: usize = 4_096;

impl Harm {
    /// Half of the damage hits the used part, which is at the start of the file.
    fn done_to(&self, bytes: &mut Vec<u8>) {
        let used = bytes.len().min(2 * 1024 * 1024);
        match *self {
            Self::Flip { at, bit } => {
                let length = if at % 2 == 0 { used } else { bytes.len() };
                bytes[at % length] ^= 1 << bit;
            }
            Self::Lose { page } => page_of(bytes, used, page).fill(0),
            Self::Noise { page, seed } => {
                for (at, byte) in page_of(bytes, used, page).iter_mut().enumerate() {
                    *byte = (at as u8).wrapping_mul(seed | 1).wrapping_add(seed);
                }
            }
            Self::Cut { to } => bytes.truncate(1 + to % (bytes.len() - 1)),
        }
    }
}

fn page_of(bytes: &mut [u8], used: usize, page: usize) -> &mut [u8] {
    let at = page % (used / PAGE) * PAGE;
    &mut bytes[at..at + PAGE]
}

#[test]
fn a_damaged_file_is_told_and_never_met_again_and_again() {
    let (closed, killed) = (written(true), written(false));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    std::panic::set_hook(Box::new(|_| {}));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&(harm(), any::<bool>()), |(harm, was_closed)| {
        let mut bytes = if was_closed {
            closed.clone()
        } else {
            killed.clone()
        };
        harm.done_to(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        // A closed file opens unchecked; a damaged page fails once, then all are checked.
        let first = catch_unwind(AssertUnwindSafe(|| open(&path).map(drop).is_ok()));
        let second = catch_unwind(AssertUnwindSafe(|| open(&path).map(drop).is_ok()));
        prop_assert!(second.is_ok(), "a second start panics, the first {first:?}");
        prop_assert!(was_closed || first.is_ok(), "a start after a kill panics");
        Ok(())
    });
    let _ = std::panic::take_hook();
    outcome.unwrap();
}

#[test]
fn a_file_that_lost_a_page_in_use_is_damaged() {
    let mut bytes = written(false);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    let at = bytes.windows(200).position(|window| window == [7; 200]).unwrap();
    bytes[at] = 8;
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        open(&path).err().unwrap().problem,
        FileProblem::Damaged(_)
    ));
    // The program itself reports the damage, too.
    let started = session_svc(&path, &[]);
    assert_eq!(started.0, 1, "{started:?}");
    assert!(
        started.2.contains("is damaged") && started.2.contains("backup"),
        "{started:?}"
    );
    let checked = session_svc(&path, &["check-store"]);
    assert_eq!(checked.0, 1, "{checked:?}");
    assert!(
        checked.1.contains("is damaged") && checked.1.contains("backup"),
        "{checked:?}"
    );
}

#[test]
fn a_file_without_a_byte_is_no_new_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(open(&path).err().unwrap().problem, FileProblem::Empty));
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    let checked = session_svc(&path, &["check-store"]);
    assert_eq!(checked.0, 1, "{checked:?}");
    assert!(checked.1.contains("is empty"), "{checked:?}");
    std::fs::remove_file(&path).unwrap();
    assert!(open(&path).is_ok());
}

#[test]
fn a_process_that_was_killed_while_it_made_the_file_is_not_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    std::fs::write(directory.path().join("sessions.new"), [7; 10_000]).unwrap();
    assert!(open(&path).is_ok());
    assert!(!directory.path().join("sessions.new").exists());
}

/// Exit code, standard output and standard error.
fn session_svc(path: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_session-svc"));
    command.env_clear().stdin(Stdio::null()).args(arguments);
    command.envs([
        ("SESSION_STORE", format!("file:{}", path.display()).as_str()),
        ("SESSION_ENCRYPTION_KEY", KEY),
        ("SESSION_LISTEN", "127.0.0.1:0"),
        ("SESSION_ADMIN_LISTEN", "off"),
        ("OIDC_ISSUER_URL", "http://127.0.0.1:9"),
        ("OIDC_CLIENT_ID", "client"),
        ("OIDC_CLIENT_SECRET", "a secret of the client"),
    ]);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}
