//! The memory limit and the page size of this process.

mod control_groups;

use std::fs;
use std::path::{Path, PathBuf};

/// Lists the control groups of this process, and where they are mounted.
const OWN_GROUPS: &str = "/proc/self/cgroup";
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Describes the machine's memory.
const MACHINE: &str = "/proc/meminfo";

/// Memory this process may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The limit in bytes.
    pub bytes: u64,
    /// The file that contains the limit.
    pub source: PathBuf,
}

/// The smallest of the machine's memory and the limits of its control groups; `None` if neither can be read.
///
/// Limits of enclosing groups count as well. Exception: in a container with control groups of version 2, the
/// process cannot read the groups outside of the container.
#[must_use]
pub fn available() -> Option<Memory> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let limits = control_groups::limits(&text(OWN_GROUPS), Path::new(CONTROL_GROUPS));
    limits
        .into_iter()
        .chain(machine(&text(MACHINE)))
        .min_by_key(|memory| memory.bytes)
}

/// Parses the machine's memory: `MemTotal:  24641136 kB`.
fn machine(text: &str) -> Option<Memory> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Memory {
        bytes: kibibytes.saturating_mul(1024),
        source: Path::new(MACHINE).to_owned(),
    })
}

/// Turns off huge pages for this process. With them, most pages of 2 MiB are only partly used, and a service
/// needs twice the memory (docs/decisions/workers.md). No effect on systems without them.
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
