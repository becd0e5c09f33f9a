//! How much memory this process may have, and in what pages.

use std::fs;
use std::path::Path;

/// Where Linux shows control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// Limits beyond this are none: version 1 says a number near the largest there is.
const UNLIMITED: u64 = 1 << 60;

/// The limit of the control group this process is in, as a container has one, in bytes; none if there is none to be seen.
///
/// Of groups within each other only the innermost is looked at; containers see theirs at the top.
#[must_use]
pub fn limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of(&groups, Path::new(ROOT))
}

/// Keeps the kernel from giving this process huge pages: of 2 MiB each, few are used whole, and the memory of a service doubles
/// (docs/decisions/allocator.md). Does nothing where the system has none, or forbids it.
pub(crate) fn refuse_huge_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

fn limit_of(groups: &str, root: &Path) -> Option<u64> {
    groups.lines().filter_map(|line| limit_in(line, root)).min()
}

/// The limit that one line of `/proc/self/cgroup` leads to: `NUMBER:CONTROLLERS:PATH`.
fn limit_in(line: &str, root: &Path) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (base, file) = match controllers {
        "" => (root.to_owned(), "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes")
        }
        _ => return None,
    };
    // Within a container the path may be the one outside, while the group itself is at the top.
    let own = base.join(path.trim_start_matches('/')).join(file);
    let text = fs::read_to_string(own)
        .or_else(|_| fs::read_to_string(base.join(file)))
        .ok()?;
    text.trim().parse().ok().filter(|bytes| *bytes < UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_found_in_either_version() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("memory.max", "134217728\n");
        write("pod/memory.max", "max\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/pod/memory.limit_in_bytes", "1048576\n");
        let limit = |groups| limit_of(groups, root.path());
        assert_eq!(limit("0::/\n"), Some(134_217_728));
        assert_eq!(limit("0::/pod\n"), None);
        assert_eq!(limit("0::/elsewhere\n"), Some(134_217_728));
        assert_eq!(limit("5:cpu:/\n4:memory:/pod\n"), Some(1_048_576));
        assert_eq!(limit("4:memory:/\n"), None);
        assert_eq!(limit("nonsense\n"), None);
    }
}
