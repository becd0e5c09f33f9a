//! Parts of files in folders (RFC 9110, sections 13.1.5 and 14.2): the whole file where no part is due, and never parts of two.

use std::fs::File;
use std::time::{Duration, SystemTime};

use reqwest::Method;

use crate::gateway::Gateway;

const RANGE: (&str, &str) = ("range", "bytes=2-3");

async fn serving(folder: &std::path::Path) -> Gateway {
    let rule = format!(
        "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"dir:{}\"\n",
        folder.display()
    );
    Gateway::start(&rule, &[]).await
}

fn set_time(path: &std::path::Path, time: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + time).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_is_none_gets_the_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "0123456789").unwrap();
    let gateway = serving(folder.path()).await;
    let mut browser = gateway.stack.browser();
    for (range, status, body) in [
        ("bytes=2-3", 206, "23"),
        ("Bytes=2-3", 206, "23"),
        ("bytes=8-", 206, "89"),
        ("bytes=8-99", 206, "89"),
        ("bytes=-2", 206, "89"),
        ("bytes=10-", 416, ""),
        ("bytes=3-2", 200, "0123456789"),
        ("bytes=", 200, "0123456789"),
        ("bytes=-", 200, "0123456789"),
        ("bytes=a-b", 200, "0123456789"),
        ("bytes=+1-2", 200, "0123456789"),
        ("bytes", 200, "0123456789"),
        ("lines=1-2", 200, "0123456789"),
        ("bytes=0-1,4-5", 200, "0123456789"),
        ("bytes=99999999999999999999-", 416, ""),
    ] {
        let answer = browser.get_with("/a.txt", &[("range", range)]).await;
        if status == 416 {
            assert_eq!(
                (answer.status, answer.header("content-range")),
                (416, "bytes */10")
            );
        } else {
            assert_eq!((answer.status, answer.body.as_str()), (status, body), "{range}");
        }
        let head = browser
            .send(Method::HEAD, "/a.txt", &[("range", range)], None)
            .await;
        assert_eq!(
            (head.status, head.header("content-range")),
            (200, ""),
            "HEAD {range}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_download_never_mixes_two_releases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    let compressed = folder.path().join("a.txt.gz");
    std::fs::write(&path, "0123456789").unwrap();
    std::fs::write(&compressed, "compressed").unwrap();
    let gateway = serving(folder.path()).await;
    let mut browser = gateway.stack.browser();
    // A release of an image: the time is the same each time, and so may the length be.
    for (time, status) in [
        (Duration::from_millis(1_700_000_000_123), 206),
        (Duration::from_secs(1), 200),
        (Duration::from_secs(1_700_000_000), 200),
    ] {
        set_time(&path, time);
        set_time(&compressed, time + Duration::from_millis(1));
        let whole = browser.get("/a.txt").await;
        let (tag, date) = (whole.header("etag"), whole.header("last-modified"));
        let other = format!("{tag}a");
        let weak = format!("W/{tag}");
        for (condition, expected) in [(tag, status), (&other, 200), (&weak, 200), (date, 200), ("", 200)] {
            let answer = browser
                .get_with("/a.txt", &[RANGE, ("if-range", condition)])
                .await;
            let body = if expected == 206 { "23" } else { "0123456789" };
            assert_eq!(
                (answer.status, answer.body.as_str()),
                (expected, body),
                "{condition}"
            );
            let beyond = [("range", "bytes=99-"), ("if-range", condition)];
            let answer = browser.get_with("/a.txt", &beyond).await;
            let expected = if expected == 206 { 416 } else { 200 };
            assert_eq!(answer.status, expected, "{condition}");
            let other_coding = [RANGE, ("if-range", condition), ("accept-encoding", "gzip")];
            let answer = browser.get_with("/a.txt", &other_coding).await;
            assert_eq!(answer.status, 200, "the compressed file is another: {condition}");
        }
        assert_eq!(browser.get_with("/a.txt", &[RANGE]).await.status, 206);
    }
}
