//! TLS to the store without `ca_file`: it uses the system's authorities. An image from scratch has none.

use std::path::Path;

use super::support::{NEW_KEY, ToolOutput, program};
use crate::certificates::Certificates;
use crate::redis_server::{RedisServer, free_port};

fn server(certificates: &Certificates) -> RedisServer {
    let file = |name| certificates.text(name);
    RedisServer::start(&[
        "--port",
        "0",
        "--tls-port",
        "PORT",
        "--tls-auth-clients",
        "no",
        "--tls-ca-cert-file",
        &file("ca.pem"),
        "--tls-cert-file",
        &file("server.pem"),
        "--tls-key-file",
        &file("server.key"),
    ])
}

/// Checks a store, with the authorities that a variable names.
fn checked(store: &str, variable: &str, path: &Path) -> ToolOutput {
    let mut command = program();
    command
        .args(["check-store", "--store", store])
        .env(variable, path);
    ToolOutput::of(command.env("SESSION_ENCRYPTION_KEY", NEW_KEY).output().unwrap())
}

#[test]
fn a_store_of_a_public_authority_needs_no_file_where_the_system_has_authorities() {
    let certificates = Certificates::make();
    let server = server(&certificates);
    let store = format!("rediss://127.0.0.1:{}", server.port);
    let found = checked(&store, "SSL_CERT_FILE", &certificates.path("ca.pem"));
    assert_eq!(found.code, 0, "{found:?}");
}

#[test]
fn a_system_without_authorities_is_told_at_the_start_with_what_to_do() {
    let certificates = Certificates::make();
    let server = server(&certificates);
    let nothing = tempfile::tempdir().unwrap();
    let store = format!("rediss://127.0.0.1:{}", server.port);
    let found = checked(&store, "SSL_CERT_DIR", nothing.path());
    assert_eq!(found.code, 1, "{found:?}");
    assert!(
        found.out.contains("ca_file") && found.out.contains("SSL_CERT_FILE"),
        "{}",
        found.out
    );
    let listen = format!("127.0.0.1:{}", free_port());
    let output = program()
        .envs([
            ("SESSION_STORE", store.as_str()),
            ("SESSION_ENCRYPTION_KEY", NEW_KEY),
            ("SESSION_LISTEN", listen.as_str()),
            ("SESSION_ADMIN_LISTEN", "off"),
            ("OIDC_ISSUER_URL", "http://127.0.0.1:9"),
            ("OIDC_CLIENT_ID", "client"),
            ("OIDC_CLIENT_SECRET", "a secret of the client"),
        ])
        .env("SSL_CERT_DIR", nothing.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(78));
    let said = [output.stdout, output.stderr].concat();
    assert!(String::from_utf8_lossy(&said).contains("SSL_CERT_FILE"));

    // If `ca_file` names the store's own authority, the system's are not needed.
    let own = format!("{store}?ca_file={}", certificates.text("ca.pem"));
    let found = checked(&own, "SSL_CERT_DIR", nothing.path());
    assert_eq!(found.code, 0, "{found:?}");
}

#[test]
fn authorities_that_cannot_be_read_are_told_apart_from_none() {
    let found = checked(
        "rediss://127.0.0.1:1",
        "SSL_CERT_FILE",
        Path::new("/nonexistent/ca.pem"),
    );
    assert_eq!(found.code, 1, "{found:?}");
    assert!(
        found.out.contains("SSL_CERT_FILE") && found.out.contains("/nonexistent/ca.pem"),
        "{}",
        found.out
    );
}
