//! `pause`.

use std::process::Command;
use std::time::{Duration, Instant};

use super::support::program;

const WAIT_MAX: Duration = Duration::from_secs(20);

/// Whether a process handles a signal. Without a handler, a container's first process ignores it.
fn handles(process: u32, signal: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
}

#[test]
fn it_stays_without_any_setting_until_it_is_told_to_stop() {
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        let mut paused = program().arg("pause").spawn().unwrap();
        let began = Instant::now();
        while !handles(paused.id(), number) {
            assert!(began.elapsed() < WAIT_MAX, "{name} is not heard");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(paused.try_wait().unwrap().is_none());
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &paused.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(paused.wait().unwrap().code(), Some(0), "{name}");
    }
}
