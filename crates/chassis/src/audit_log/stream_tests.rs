use std::sync::atomic::{AtomicBool, Ordering};

use super::super::chain::ChainKey;
use super::super::verify::{Expectations, Place, Verification, Verified};
use super::*;
use crate::audit::SubjectForm;

const LONG: Duration = Duration::from_secs(30);

fn process() -> Process {
    Process {
        service: "session-svc",
        version: "0.0.0",
        config_digest: "00".to_owned(),
    }
}

fn settings(destination: Destination) -> AuditSettings {
    AuditSettings {
        destination,
        key: ChainKey::default(),
        subjects: SubjectForm::Plain,
        checkpoint_interval: LONG,
    }
}

fn verified(texts: &[&str]) -> Verified {
    let mut verification = Verification::new(Expectations::default());
    for (number, text) in texts.iter().enumerate() {
        for (line, record) in (1..).zip(text.lines()) {
            let file = format!("{number}").into();
            verification.read(&Place { file, line }, record);
        }
    }
    verification.judged()
}

fn until(met: impl Fn() -> bool) {
    let begun = Instant::now();
    while !met() {
        assert!(begun.elapsed() < LONG, "it did not come to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_file_is_moved_away_and_continued_by_another_process_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let moved = folder.path().join("audit.log.1");
    let start = || AuditLog::start(&settings(Destination::File(path.clone())), &process(), |_| false);
    let log = start().unwrap().unwrap();
    log.add(b"\"event\":\"one\"");
    until(|| std::fs::read_to_string(&path).unwrap().contains("one"));
    std::fs::rename(&path, &moved).unwrap();
    log.reopen();
    until(|| path.exists());
    log.add(b"\"event\":\"two\"");
    log.stop(LONG);
    let next = start().unwrap().unwrap();
    next.stop(LONG);
    let read = |path| std::fs::read_to_string(path).unwrap();
    let (old, new) = (read(&moved), read(&path));
    assert!(
        old.contains("one") && !old.contains("two") && new.contains("two"),
        "{old}{new}"
    );
    let found = verified(&[&old, &new]);
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    let mut records: Vec<u64> = found.chains.iter().map(|chain| chain.records).collect();
    records.sort_unstable();
    assert_eq!(records, [2, 4]);
    assert_eq!(log.0.measures.written.get(), 4);
}

#[test]
fn what_finds_no_room_is_counted_and_the_count_is_a_record_of_the_chain() {
    let is_read = Arc::new(AtomicBool::new(false));
    let lines = Arc::new(Mutex::new(String::new()));
    let (reading, taken) = (Arc::clone(&is_read), Arc::clone(&lines));
    let offer = move |line: &[u8]| {
        if reading.load(Ordering::Relaxed) {
            taken.lock().unwrap().push_str(std::str::from_utf8(line).unwrap());
        }
        reading.load(Ordering::Relaxed)
    };
    let log = AuditLog::start(&settings(Destination::Stdout), &process(), offer)
        .unwrap()
        .unwrap();
    until(|| log.0.measures.failures.get() > 0);
    let long = format!("\"event\":\"{}\"", "x".repeat(64 * 1024));
    for _ in 0..2 * CAPACITY / long.len() {
        log.add(long.as_bytes());
    }
    let lost = log.0.measures.lost.get();
    assert!(lost > 0, "nothing was dropped");
    is_read.store(true, Ordering::Relaxed);
    log.stop(LONG);
    let text = lines.lock().unwrap().clone();
    let found = verified(&[&text]);
    let told: Vec<String> = found
        .findings
        .iter()
        .map(|finding| finding.problem.to_string())
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&format!("dropped {lost} records")), "{told:?}");
}

#[test]
fn a_chain_to_which_nothing_happens_goes_on_with_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let often = AuditSettings {
        checkpoint_interval: Duration::from_millis(20),
        ..settings(Destination::File(path.clone()))
    };
    let log = AuditLog::start(&often, &process(), |_| false).unwrap().unwrap();
    let read = || std::fs::read_to_string(&path).unwrap();
    let checkpoints = |text: &str| text.matches("\"event\":\"audit.checkpoint\"").count();
    until(|| checkpoints(&read()) >= 3);
    log.stop(LONG);
    let text = read();
    let found = verified(&[&text]);
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    let records: u64 = found.chains.iter().map(|chain| chain.records).sum();
    assert_eq!(
        records,
        checkpoints(&text) as u64 + 2,
        "and its start and its stop: {text}"
    );
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_and_off_is_no_log() {
    let nowhere = Destination::File("/nowhere/at/all/audit.log".into());
    let failed = AuditLog::start(&settings(nowhere), &process(), |_| false);
    assert!(matches!(failed, Err(OpenError::File { .. })));
    assert!(
        AuditLog::start(&settings(Destination::Off), &process(), |_| false)
            .unwrap()
            .is_none()
    );
}
