//! Limits of memory that the control groups of this process set (man 7 cgroups).
//!
//! A process is in one group of version 2, or in one of version 1 for each controller, or both; `/proc/self/cgroup` names them, and
//! `/proc/self/mountinfo` says where they can be looked at: in a container that is its own part of them alone. The least limit of a
//! group and of those around it counts.

use std::fs;
use std::path::{Path, PathBuf};

use super::Memory;

/// Limits beyond this are none: version 1 says a number near the largest there is.
const UNLIMITED: u64 = 1 << 60;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Where the groups of one version that limit memory can be looked at.
struct Mount<'a> {
    version: Version,
    /// The group that is seen there.
    root: &'a Path,
    point: &'a Path,
}

/// What the groups of this process allow, by its `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub(super) fn limits(groups: &str, mounts: &str) -> Vec<Memory> {
    let mounts = mounts.lines().filter_map(Mount::read);
    mounts
        .filter_map(|mount| {
            let path = groups.lines().find_map(|line| path_in(line, mount.version))?;
            let own = mount.folder(Path::new(path));
            match mount.version {
                Version::One => hierarchical(&own),
                Version::Two => around(&own, mount.point),
            }
        })
        .collect()
}

/// The group that a line of `/proc/self/cgroup` names, if it limits memory: `NUMBER:CONTROLLERS:PATH`.
fn path_in(line: &str, version: Version) -> Option<&str> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let is_it = match version {
        Version::One => has(controllers, "memory"),
        Version::Two => controllers.is_empty(),
    };
    is_it.then_some(path)
}

fn has(list: &str, member: &str) -> bool {
    list.split(',').any(|name| name == member)
}

impl<'a> Mount<'a> {
    /// Of a line of `/proc/self/mountinfo`: `ID PARENT DEVICE ROOT POINT OPTIONS… - TYPE SOURCE OPTIONS`.
    fn read(line: &'a str) -> Option<Self> {
        let (mounted, what) = line.split_once(" - ")?;
        let mut what = what.split(' ');
        let version = match (what.next()?, what.nth(1)?) {
            ("cgroup2", _) => Version::Two,
            ("cgroup", options) if has(options, "memory") => Version::One,
            _ => return None,
        };
        let mut mounted = mounted.split(' ').skip(3);
        Some(Self {
            version,
            root: Path::new(mounted.next()?),
            point: Path::new(mounted.next()?),
        })
    }

    /// Where a group can be looked at. Within a container its path may be the one outside, while the group itself is at the top.
    fn folder(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix(self.root).unwrap_or(Path::new(""));
        let folder = self.point.join(below);
        if folder.is_dir() {
            folder
        } else {
            self.point.to_owned()
        }
    }
}

/// Version 1 tells the least limit of a group and those around it, be they seen or not.
fn hierarchical(group: &Path) -> Option<Memory> {
    let source = group.join("memory.stat");
    let text = fs::read_to_string(&source).ok()?;
    let mut lines = text.lines();
    let bytes = lines.find_map(|line| line.strip_prefix("hierarchical_memory_limit "))?;
    limited(bytes, source)
}

/// Version 2 tells the limit of each group, in which `max` is none.
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

    /// What is found where these files are, of what this process is told of its groups and mounts; `{}` there is the folder.
    fn found(files: &[(&str, &str)], groups: &str, mounts: &str) -> Option<(u64, String)> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let mounts = mounts.replace("{}", root.path().to_str().unwrap());
        let least = limits(groups, &mounts)
            .into_iter()
            .min_by_key(|memory| memory.bytes)?;
        let source = least.source.strip_prefix(root.path()).unwrap();
        Some((least.bytes, source.to_str().unwrap().to_owned()))
    }

    fn at(bytes: u64, source: &str) -> Option<(u64, String)> {
        Some((bytes, source.to_owned()))
    }

    const TWO: &str = "30 23 0:26 / {} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const ONE: &str = "35 31 0:32 / {}/memory rw,relatime - cgroup cgroup rw,memory\n";

    #[test]
    fn a_group_of_version_2_or_one_around_it_sets_the_limit() {
        let files = [
            ("pods/memory.max", "1000\n"),
            ("pods/pod/memory.max", "max\n"),
            ("pods/pod/own/memory.max", "3000\n"),
            ("pods/small/memory.max", "200\n"),
            ("free/memory.max", "max\n"),
        ];
        let limit = |groups| found(&files, groups, TWO);
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
        ];
        let limit = |groups| found(&files, groups, ONE);
        assert_eq!(
            limit("5:cpu:/\n4:cpuset,memory:/pod\n"),
            at(4096, "memory/pod/memory.stat")
        );
        assert_eq!(limit("4:memory:/free\n"), None);
        assert_eq!(limit("nonsense\n"), None);
    }

    #[test]
    fn where_there_are_both_versions_the_one_with_memory_counts() {
        let files = [
            ("memory/pod/memory.stat", "hierarchical_memory_limit 4096\n"),
            ("unified/pod/cgroup.procs", ""),
        ];
        let unified = "41 31 0:38 / {}/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let mounts = format!("31 23 0:28 / {{}} rw - tmpfs tmpfs rw\n{ONE}{unified}");
        assert_eq!(
            found(&files, "4:memory:/pod\n0::/pod\n", &mounts),
            at(4096, "memory/pod/memory.stat")
        );
    }

    #[test]
    fn a_container_finds_its_own_group_at_the_top_by_whatever_path_it_is_told() {
        let files = [("memory.max", "5000\n")];
        for (group, root) in [
            ("/", "/"),
            ("/pods/own", "/pods/own"),
            ("/../other", "/"),
            ("/own", "/.."),
        ] {
            let mounts = TWO.replace(" / {}", &format!(" {root} {{}}"));
            assert_eq!(
                found(&files, &format!("0::{group}\n"), &mounts),
                at(5000, "memory.max"),
                "{group} {root}"
            );
        }
        let nested = [("memory.max", "5000\n"), ("inner/memory.max", "700\n")];
        let mounts = TWO.replace(" / {}", " /pods/own {}");
        assert_eq!(
            found(&nested, "0::/pods/own/inner\n", &mounts),
            at(700, "inner/memory.max")
        );
    }
}
