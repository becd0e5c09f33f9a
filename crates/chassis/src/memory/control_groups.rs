//! Memory limits from the control groups of this process (man 7 cgroups).
//!
//! A process is in one group of version 2, in one of version 1 for each controller, or in both;
//! `/proc/self/cgroup` lists them. The smallest limit of a group and of its visible ancestors counts.

use std::fs;
use std::path::{Path, PathBuf};

use super::Memory;

/// Larger limits mean "unlimited": version 1 writes a number near the largest possible.
const UNLIMITED: u64 = 1 << 60;

/// The limits of the groups in `groups` (`/proc/self/cgroup`); `root` is the folder of control groups. A line
/// is `NUMBER:CONTROLLERS:PATH`.
pub(super) fn limits(groups: &str, root: &Path) -> Vec<Memory> {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        if controllers.is_empty() {
            return around(&folder(root, path), root);
        }
        let limits_memory = controllers.split(',').any(|name| name == "memory");
        limits_memory.then(|| hierarchical(&folder(&root.join("memory"), path)))?
    });
    limits.collect()
}

/// The folder of a group. In a container, the path may be that of the host. Then the group is the top folder.
fn folder(top: &Path, path: &str) -> PathBuf {
    let folder = top.join(path.trim_start_matches('/'));
    match folder.is_dir() && !path.contains("..") {
        true => folder,
        false => top.to_owned(),
    }
}

/// Version 1 reports the smallest limit of a group and all its ancestors, visible or not.
fn hierarchical(group: &Path) -> Option<Memory> {
    let source = group.join("memory.stat");
    let text = fs::read_to_string(&source).ok()?;
    let mut lines = text.lines();
    let bytes = lines.find_map(|line| line.strip_prefix("hierarchical_memory_limit "))?;
    limited(bytes, source)
}

/// Version 2 reports the limit of each group; `max` means unlimited.
fn around(group: &Path, top: &Path) -> Option<Memory> {
    let groups = group.ancestors().take_while(|group| group.starts_with(top));
    groups
        .filter_map(|group| {
            let source = group.join("memory.max");
            limited(&fs::read_to_string(&source).ok()?, source)
        })
        .min_by_key(|memory| memory.bytes)
}

fn limited(text: &str, source: PathBuf) -> Option<Memory> {
    let bytes = text.trim().parse().ok().filter(|bytes| *bytes < UNLIMITED)?;
    Some(Memory { bytes, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the limit for these files and this list of groups.
    fn find_limit(files: &[(&str, &str)], groups: &str) -> Option<(u64, String)> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let least = limits(groups, root.path())
            .into_iter()
            .min_by_key(|memory| memory.bytes)?;
        let source = least.source.strip_prefix(root.path()).unwrap();
        Some((least.bytes, source.to_str().unwrap().to_owned()))
    }

    fn at(bytes: u64, source: &str) -> Option<(u64, String)> {
        Some((bytes, source.to_owned()))
    }

    #[test]
    fn a_group_of_version_2_or_one_around_it_sets_the_limit() {
        let files = [
            ("pods/memory.max", "1000\n"),
            ("pods/pod/memory.max", "max\n"),
            ("pods/pod/own/memory.max", "3000\n"),
            ("pods/small/memory.max", "200\n"),
            ("free/memory.max", "max\n"),
        ];
        let limit = |groups| find_limit(&files, groups);
        assert_eq!(limit("0::/pods/pod/own\n"), at(1000, "pods/memory.max"));
        assert_eq!(limit("0::/pods/small\n"), at(200, "pods/small/memory.max"));
        assert_eq!(limit("0::/free\n"), None);
        assert_eq!(limit("4:memory:/pods\n"), None);
    }

    #[test]
    fn a_group_of_version_1_knows_those_around_it() {
        let files = [
            (
                "memory/pod/memory.stat",
                "cache 5\nhierarchical_memory_limit 4096\nrss 1\n",
            ),
            (
                "memory/free/memory.stat",
                "hierarchical_memory_limit 9223372036854771712\n",
            ),
            ("unified/pod/cgroup.procs", ""),
        ];
        let limit = |groups| find_limit(&files, groups);
        let pod = at(4096, "memory/pod/memory.stat");
        assert_eq!(limit("5:cpu:/\n4:cpuset,memory:/pod\n"), pod);
        assert_eq!(limit("4:memory:/pod\n0::/pod\n"), pod);
        assert_eq!(limit("4:memory:/free\n"), None);
        assert_eq!(limit("nonsense\n"), None);
    }

    #[test]
    fn a_container_finds_its_own_group_at_the_top_by_whatever_path_it_is_told() {
        let files = [("memory.max", "5000\n")];
        for group in ["/", "/pods/own", "/../other"] {
            let groups = format!("0::{group}\n");
            assert_eq!(find_limit(&files, &groups), at(5000, "memory.max"), "{group}");
        }
    }
}
