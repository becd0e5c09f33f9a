//! A route table that changes during requests.

use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::support::{Browser, Stack, Upstream, Warnings};

/// A changed file applies within ten seconds; only a failing test waits longer.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

fn table(upstream: &Upstream, paths: &[&str]) -> String {
    let rule = |path: &&str| {
        let url = upstream.url();
        format!("[[route]]\npath = \"{path}\"\nguard = \"none\"\nupstream = \"{url}\"\n")
    };
    paths.iter().map(rule).collect()
}

async fn until(browser: &mut Browser, path: &str, status: u16, meanwhile: &str) {
    let deadline = Instant::now() + LONGEST_WAIT;
    while browser.get(path).await.status != status {
        assert!(Instant::now() < deadline, "{path} never answered {status}");
        assert_eq!(
            browser.get(meanwhile).await.status,
            200,
            "a route that stays is never away"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_table_is_taken_over_and_a_wrong_one_leaves_the_old_one_in_force() {
    let warnings = Warnings::listen();
    let upstream = Upstream::start().await;
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), table(&upstream, &["/stays", "/old"])).unwrap();
    let stack = Stack::with(&[("EDGE_ROUTES", file.path().to_str().unwrap())]).await;
    let mut browser = stack.browser();
    assert_eq!(browser.get("/old").await.status, 200);
    assert_eq!(browser.get("/new").await.status, 404);

    std::fs::write(file.path(), table(&upstream, &["/stays", "/new"])).unwrap();
    until(&mut browser, "/new", 200, "/stays").await;
    assert_eq!(
        browser.get("/old").await.status,
        404,
        "the old table is gone as a whole"
    );

    let wrong = format!(
        "{}[[route]]\npath = \"no slash\"\n",
        table(&upstream, &["/wrong"])
    );
    std::fs::write(file.path(), wrong).unwrap();
    let path = file.path().to_str().unwrap();
    let deadline = Instant::now() + LONGEST_WAIT;
    while !warnings.have(&[path, "the changed file is refused"]) {
        assert!(Instant::now() < deadline, "the wrong table is not logged");
        assert_eq!(browser.get("/wrong").await.status, 404);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(
        browser.get("/new").await.status,
        200,
        "the table before stays in force"
    );
    std::fs::write(file.path(), table(&upstream, &["/stays", "/newest"])).unwrap();
    until(&mut browser, "/newest", 200, "/stays").await;
    assert_eq!(browser.get("/wrong").await.status, 404);
}
