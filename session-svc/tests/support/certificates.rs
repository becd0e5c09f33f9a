//! A certificate authority for one test: its own certificate, one for a loopback server, one for a client.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// PEM files in a directory that is removed with this value.
pub(crate) struct Certificates {
    directory: TempDir,
}

/// A key and a certificate in one step.
const NEW: [&str; 9] = [
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

impl Certificates {
    /// Creates all of them.
    pub(crate) fn make() -> Self {
        let made = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        made.authority("ca");
        made.issue("ca", "server", "subjectAltName=IP:127.0.0.1,DNS:localhost");
        made.issue("ca", "client", "extendedKeyUsage=clientAuth");
        made
    }

    /// Creates an authority: `NAME.pem` and `NAME.key`.
    pub(crate) fn authority(&self, name: &str) {
        let (key, cert) = (
            self.path(&format!("{name}.key")),
            self.path(&format!("{name}.pem")),
        );
        let subject = format!("/CN=test authority {name}");
        openssl(&NEW, &[("-keyout", &key), ("-out", &cert)], &["-subj", &subject]);
    }

    /// Issues a certificate with one extension: `NAME.pem` and `NAME.key`.
    pub(crate) fn issue(&self, authority: &str, name: &str, extension: &str) {
        let file = |name: &str, kind: &str| self.path(&format!("{name}.{kind}"));
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
            ("-CA", &file(authority, "pem")),
            ("-CAkey", &file(authority, "key")),
            ("-keyout", &file(name, "key")),
            ("-out", &file(name, "pem")),
        ];
        openssl(&NEW, &files, &options);
    }

    /// A file: `ca`, `server`, `client` or a later one, with `.pem` or `.key`.
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
