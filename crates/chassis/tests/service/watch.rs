//! Values that follow their files.

use std::num::ParseIntError;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chassis::secret::Reloading;

const SOON: Duration = Duration::from_millis(10);

async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::task::yield_now().await;
    }
}

/// The value following `path`, and how often its content was parsed.
fn following(path: &Path) -> (Reloading<u32>, Arc<AtomicUsize>) {
    let (value, parsed) = (Reloading::new(0), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&parsed);
    value.follow(
        SOON,
        "T_NUMBER",
        path,
        move |text| -> Result<u32, ParseIntError> {
            count.fetch_add(1, Ordering::SeqCst);
            text.trim().parse()
        },
    );
    (value, parsed)
}

#[tokio::test]
async fn a_changed_file_is_in_use_soon_and_an_invalid_or_missing_one_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("number");
    std::fs::write(&path, "1").unwrap();
    let (value, parsed) = following(&path);
    until("the first content", || *value.load() == 1).await;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "nonsense").unwrap();
    until("the nonsense is looked at", || parsed.load(Ordering::SeqCst) >= 2).await;
    assert_eq!(*value.load(), 1);
    std::fs::remove_file(&path).unwrap();
    let appears = directory.path().join("new");
    std::fs::write(&appears, "2").unwrap();
    std::fs::rename(&appears, &path).unwrap();
    until("the repaired file", || *value.load() == 2).await;
}

#[tokio::test]
async fn a_swapped_symbolic_link_is_followed_as_kubernetes_swaps_it() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for (folder, content) in [("v1", "1"), ("v2", "2")] {
        std::fs::create_dir(at(folder)).unwrap();
        std::fs::write(at(folder).join("number"), content).unwrap();
    }
    std::os::unix::fs::symlink("v1", at("..data")).unwrap();
    std::os::unix::fs::symlink("..data/number", at("number")).unwrap();
    let (value, _) = following(&at("number"));
    until("the first version", || *value.load() == 1).await;
    std::os::unix::fs::symlink("v2", at("new")).unwrap();
    std::fs::rename(at("new"), at("..data")).unwrap();
    until("the second version", || *value.load() == 2).await;
}
