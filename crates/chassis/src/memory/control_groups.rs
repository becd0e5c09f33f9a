//! Limits of memory that the control groups of this process set (man 7 cgroups).
//!
//! A process is in one group of version 2; `/proc/self/cgroup` names it. The least limit of the group and of those around it counts, as far
//! as they can be seen: in a container that is its own part of them alone. Groups of version 1 are not read.

use std::fs;
use std::path::{Path, PathBuf};

use super::Memory;

/// What the group of this process and those around it allow, by its `/proc/self/cgroup`, where `root` is the folder of control groups.
/// The line of version 2 is `0::PATH`. The limit `max` is none.
pub(super) fn limit(groups: &str, root: &Path) -> Option<Memory> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let group = folder(root, path);
    let groups = group.ancestors().take_while(|group| group.starts_with(root));
    groups
        .filter_map(|group| {
            let source = group.join("memory.max");
            let bytes = fs::read_to_string(&source).ok()?.trim().parse().ok()?;
            Some(Memory { bytes, source })
        })
        .min_by_key(|memory| memory.bytes)
}

/// Where a group can be looked at. Within a container its path may be the one outside, while the group itself is at the top.
fn folder(top: &Path, path: &str) -> PathBuf {
    let folder = top.join(path.trim_start_matches('/'));
    match folder.is_dir() && !path.contains("..") {
        true => folder,
        false => top.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found where these files are, of what this process is told of its groups.
    fn found(files: &[(&str, &str)], groups: &str) -> Option<(u64, String)> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let least = super::limit(groups, root.path())?;
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
        let limit = |groups| found(&files, groups);
        assert_eq!(limit("0::/pods/pod/own\n"), at(1000, "pods/memory.max"));
        assert_eq!(limit("0::/pods/small\n"), at(200, "pods/small/memory.max"));
        assert_eq!(limit("0::/free\n"), None);
        assert_eq!(limit("4:memory:/pods\n"), None);
    }

    #[test]
    fn a_container_finds_its_own_group_at_the_top_by_whatever_path_it_is_told() {
        let files = [("memory.max", "5000\n")];
        for group in ["/", "/pods/own", "/../other"] {
            let groups = format!("0::{group}\n");
            assert_eq!(found(&files, &groups), at(5000, "memory.max"), "{group}");
        }
    }
}
