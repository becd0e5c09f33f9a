//! Symbolic links in served folders.

use std::os::unix::fs::symlink;

use crate::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn no_link_leads_out_of_a_folder_and_links_inside_are_followed() {
    let (parent, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = parent.path().join("web");
    let write = |path: &std::path::Path, text: &str| std::fs::write(path, text).unwrap();
    // Like a mounted ConfigMap: names that lead through `..data` to the files of one version.
    std::fs::create_dir_all(folder.join("..2026_11_22")).unwrap();
    write(&folder.join("..2026_11_22/index.html"), "<!doctype html>app");
    write(&folder.join("..2026_11_22/app.js"), "1");
    symlink("..2026_11_22", folder.join("..data")).unwrap();
    symlink("..data/index.html", folder.join("index.html")).unwrap();
    symlink("..data/app.js", folder.join("app.js")).unwrap();
    symlink(folder.join("app.js"), folder.join("absolute.js")).unwrap();
    write(&outside.path().join("secret.txt"), "secret");
    write(&outside.path().join("secret.txt.gz"), "secret");
    write(&parent.path().join("web-secret.txt"), "secret");
    symlink(outside.path().join("secret.txt"), folder.join("file.txt")).unwrap();
    symlink(outside.path(), folder.join("below")).unwrap();
    symlink("../web-secret.txt", folder.join("beside.txt")).unwrap();
    symlink("file.txt", folder.join("twice.txt")).unwrap();
    symlink("/proc/self/environ", folder.join("environ.txt")).unwrap();
    symlink("loop.txt", folder.join("loop.txt")).unwrap();
    write(&folder.join("plain.js"), "2");
    symlink(outside.path().join("secret.txt.gz"), folder.join("plain.js.gz")).unwrap();
    // The folder itself may be a link.
    symlink(&folder, parent.path().join("current")).unwrap();
    let rules = format!(
        "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"dir:{}\"\n",
        parent.path().join("current").display()
    );
    let gateway = Gateway::start(&rules, &[]).await;
    let mut browser = gateway.stack.browser();
    for (path, expected) in [
        ("/", "<!doctype html>app"),
        ("/a/page", "<!doctype html>app"),
        ("/app.js", "1"),
        ("/absolute.js", "1"),
    ] {
        let answer = browser.visit(path).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, expected), "{path}");
    }
    for path in [
        "/file.txt",
        "/below/secret.txt",
        "/beside.txt",
        "/twice.txt",
        "/environ.txt",
        "/loop.txt",
    ] {
        let answer = browser.visit(path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
    }
    let packed = browser
        .get_with("/plain.js", &[("accept-encoding", "gzip")])
        .await;
    assert_eq!((packed.status, packed.body.as_str()), (200, "2"));
}
