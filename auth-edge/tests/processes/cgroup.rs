//! A memory limit for a child process, as in the shipped pod: its own control group, version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};

/// The manifest of the pod with the limit.
const DEPLOYMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../k8s/base/edge/deployment.yaml");

/// A control group that is removed when dropped, after its process has ended.
pub(crate) struct Group(PathBuf);

impl Group {
    /// Applies the shipped pod's limit to a process. Without a control group, the test fails.
    pub(crate) fn of_pod(pid: u32) -> Self {
        let (base, limit) = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
            ("/sys/fs/cgroup", "memory.max")
        } else {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        };
        let group = Self(Path::new(base).join(format!("vestibule-{pid}")));
        let made = fs::create_dir(&group.0)
            .and_then(|()| fs::write(group.0.join(limit), shipped_limit().to_string()))
            .and_then(|()| fs::write(group.0.join("cgroup.procs"), pid.to_string()));
        assert!(
            made.is_ok(),
            "no memory limit can be set here ({made:?}): run this as root where {base} can be written"
        );
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The limit of the manifest, in bytes.
fn shipped_limit() -> u64 {
    let manifest = fs::read_to_string(DEPLOYMENT).unwrap();
    let limits = manifest.split_once("limits: {memory: ").unwrap().1;
    let mebibytes: u64 = limits.split_once("Mi").unwrap().0.parse().unwrap();
    mebibytes << 20
}
