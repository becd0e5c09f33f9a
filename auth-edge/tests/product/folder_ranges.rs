//! Ranges of files in folders (RFC 9110, 13.1.5 and 14.2): one range, or the whole file.

use std::fs::File;
use std::time::{Duration, SystemTime};

use reqwest::Method;

use crate::gateway::Gateway;

/// `0123456789`, compressed.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\x30\x34\x32\x36\x31\x35\x33\xb7\xb0\x04\x00\xc6\xc7\x84\xa6\x0a\x00\x00\x00";

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
        ("bytes=02-003", 206, "23"),
        ("bytes=000-00", 206, "0"),
        ("bytes=-10", 206, "0123456789"),
        ("bytes=-11", 200, "0123456789"),
        ("bytes=-99999999999999999999", 200, "0123456789"),
        ("bytes=-0", 416, ""),
        ("bytes=10-", 416, ""),
        ("bytes=3-2", 200, "0123456789"),
        ("bytes=", 200, "0123456789"),
        ("bytes=-", 200, "0123456789"),
        ("bytes=a-b", 200, "0123456789"),
        ("bytes=+1-2", 200, "0123456789"),
        ("bytes", 200, "0123456789"),
        ("bytes 2-3", 200, "0123456789"),
        ("bytes= 2-3", 200, "0123456789"),
        ("bytes=2-3-4", 200, "0123456789"),
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
    let twice = [RANGE, ("range", "bytes=4-5")];
    assert_eq!(browser.get_with("/a.txt", &twice).await.status, 200);
    std::fs::write(folder.path().join("empty.txt"), "").unwrap();
    for (range, status) in [
        ("bytes=0-", 200),
        ("bytes=0-0", 200),
        ("bytes=-1", 200),
        ("bytes=1-", 416),
    ] {
        let answer = browser.get_with("/empty.txt", &[("range", range)]).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, ""), "{range}");
    }
}

/// Conditions come before ranges (RFC 9110, section 13.2.2).
#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_looked_at_after_the_other_conditions() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "0123456789").unwrap();
    let gateway = serving(folder.path()).await;
    let mut browser = gateway.stack.browser();
    let whole = browser.get("/a.txt").await;
    let (tag, date) = (whole.header("etag"), whole.header("last-modified"));
    for (condition, status) in [
        (("if-none-match", tag), 304),
        (("if-none-match", "*"), 304),
        (("if-modified-since", date), 304),
        (("if-match", "\"other\""), 412),
        (("if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT"), 412),
        (("if-match", tag), 206),
        (("if-none-match", "\"other\""), 206),
    ] {
        for more in [None, Some(("if-range", "\"other\""))] {
            let headers: Vec<_> = [RANGE, condition].into_iter().chain(more).collect();
            let expected = if status == 206 && more.is_some() {
                200
            } else {
                status
            };
            let answer = browser.get_with("/a.txt", &headers).await;
            assert_eq!(answer.status, expected, "{condition:?} {more:?}");
        }
    }
}

/// A range of the compressed file is marked as compressed, and its tag cannot resume a plain download.
#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_compressed_file_and_of_the_plain_one_are_never_mixed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "0123456789").unwrap();
    std::fs::write(folder.path().join("a.txt.gz"), GZIP).unwrap();
    let gateway = serving(folder.path()).await;
    let address = gateway.stack.address();
    let ask = async |headers: &str| {
        let request = format!("GET /a.txt HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
        gateway.stack.raw(&request).await
    };
    let tag_of = |answer: &str| {
        let line = answer.lines().find(|line| line.starts_with("etag: ")).unwrap();
        line["etag: ".len()..].to_owned()
    };
    let (plain, gzip) = (ask("").await, ask("Accept-Encoding: gzip\r\n").await);
    assert!(gzip.contains("content-encoding: gzip\r\n") && !plain.contains("content-encoding"));
    assert_ne!(tag_of(&plain), tag_of(&gzip));
    let part = ask("Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n").await;
    assert!(part.starts_with("HTTP/1.1 206") && part.contains("content-encoding: gzip\r\n"));
    assert!(
        part.contains(&format!("content-range: bytes 0-1/{}\r\n", GZIP.len())),
        "{part}"
    );
    for (coding, of, status) in [
        ("", &plain, 206),
        ("", &gzip, 200),
        ("Accept-Encoding: gzip\r\n", &plain, 200),
        ("Accept-Encoding: gzip\r\n", &gzip, 206),
    ] {
        let answer = ask(&format!(
            "{coding}Range: bytes=0-1\r\nIf-Range: {}\r\n",
            tag_of(of)
        ))
        .await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{coding}: {answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_download_never_mixes_two_releases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    std::fs::write(&path, "0123456789").unwrap();
    let gateway = serving(folder.path()).await;
    let mut browser = gateway.stack.browser();
    // A new release of an image: the time is always the same, and the length may be.
    for (time, status) in [
        (Duration::from_millis(1_700_000_000_123), 206),
        (Duration::from_secs(1), 200),
        (Duration::from_secs(1_700_000_000), 200),
    ] {
        set_time(&path, time);
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
        }
        assert_eq!(browser.get_with("/a.txt", &[RANGE]).await.status, 206);
    }
}
