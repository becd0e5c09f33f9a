//! A certificate authority for one test: its certificate, one for a server on loopback, one for a client.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// PEM files in a directory that goes with this value.
pub(crate) struct Certificates {
    directory: TempDir,
}

impl Certificates {
    /// Makes all of them.
    pub(crate) fn make() -> Self {
        let made = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let (key, cert) = (made.path("ca.key"), made.path("ca.pem"));
        let new = [
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ];
        openssl(
            &new,
            &[("-keyout", &key), ("-out", &cert)],
            &["-subj", "/CN=test authority"],
        );
        for (name, extension) in [
            ("server", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            ("client", "extendedKeyUsage=clientAuth"),
        ] {
            let (leaf_key, leaf) = (
                made.path(&format!("{name}.key")),
                made.path(&format!("{name}.pem")),
            );
            let subject = format!("/CN={name}");
            let options = [
                "-addext",
                extension,
                "-addext",
                "basicConstraints=critical,CA:FALSE",
                "-subj",
                &subject,
            ];
            let files = [
                ("-CA", &cert),
                ("-CAkey", &key),
                ("-keyout", &leaf_key),
                ("-out", &leaf),
            ];
            openssl(&new, &files, &options);
        }
        made
    }

    /// One of `ca`, `server`, `client`, with `.pem` or `.key`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The same as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

fn openssl(first: &[&str], files: &[(&str, &PathBuf)], last: &[&str]) {
    let mut command = Command::new("openssl");
    command.args(first);
    for (flag, file) in files {
        command.arg(flag).arg::<&Path>(file);
    }
    let output = command.args(last).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("openssl cannot be started ({error}): install it with `apt-get install openssl`")
    });
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
