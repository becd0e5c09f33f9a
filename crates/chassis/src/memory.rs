//! How much memory this process may have, and in what pages.

mod control_groups;

use std::fs;
use std::path::{Path, PathBuf};

/// What tells of the control groups that this process is in, and where they can be looked at.
const OWN_GROUPS: &str = "/proc/self/cgroup";
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// What tells of the machine.
const MACHINE: &str = "/proc/meminfo";

/// Memory this process may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// How much, in bytes.
    pub bytes: u64,
    /// The file that says so.
    pub source: PathBuf,
}

/// The least of what the machine has and what control groups allow, as a container has one; none where neither can be seen.
///
/// The limit of a group around this process's own counts as well. One that lies outside of what a container sees of control groups
/// of version 2 cannot be read, and does not.
#[must_use]
pub fn available() -> Option<Memory> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let limits = control_groups::limits(&text(OWN_GROUPS), Path::new(CONTROL_GROUPS));
    limits
        .into_iter()
        .chain(machine(&text(MACHINE)))
        .min_by_key(|memory| memory.bytes)
}

/// What the machine has: `MemTotal:  24641136 kB`.
fn machine(text: &str) -> Option<Memory> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Memory {
        bytes: kibibytes.saturating_mul(1024),
        source: Path::new(MACHINE).to_owned(),
    })
}

/// Keeps the kernel from giving this process huge pages: of 2 MiB each, few are used whole, and the memory of a service doubles
/// (docs/decisions/workers.md). Does nothing where the system has none, or forbids it.
pub(crate) fn refuse_huge_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_how_much_it_has() {
        let machine = machine("MemFree:  1 kB\nMemTotal:       24641136 kB\n").unwrap();
        assert_eq!(machine.bytes, 24_641_136 * 1024);
        assert_eq!(super::machine("nonsense\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_linux_machine_always_says_how_much_there_is() {
        assert!(available().unwrap().bytes > 1 << 20);
    }
}
