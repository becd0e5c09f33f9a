//! TLS: the client's trust, its identity, and certificates that change during use.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};
use vestibule_session_api::client::{ClientSettings, ClientTls, InvalidSettings, SessionClient};

use crate::replica::{Answer, Batches};
use crate::support::{Name, Server, by_handle, found_by, loopback, within};

/// A certificate authority with a certificate for `localhost` and one for a client.
struct Authority {
    directory: TempDir,
}

impl Authority {
    fn make() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let made = Self { directory };
        made.certify("ca", &[]);
        let server = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
        made.certify("server", &server);
        made.certify("other", &["-addext", "subjectAltName=DNS:elsewhere.test"]);
        made.certify("client", &["-addext", "extendedKeyUsage=clientAuth"]);
        made
    }

    fn certify(&self, name: &str, extensions: &[&str]) {
        let mut command = Command::new("openssl");
        command
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-subj", &format!("/CN={name}")])
            .arg("-keyout")
            .arg(self.path(&format!("{name}.key")))
            .arg("-out")
            .arg(self.path(&format!("{name}.pem")))
            .args(extensions);
        if name != "ca" {
            command
                .args(["-addext", "basicConstraints=critical,CA:FALSE"])
                .arg("-CA")
                .arg(self.path("ca.pem"))
                .arg("-CAkey")
                .arg(self.path("ca.key"));
        }
        let made = command.stdin(Stdio::null()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    fn pem(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.path(file)).unwrap()
    }

    fn pair(&self, name: &str) -> (Vec<u8>, Vec<u8>) {
        (self.pem(&format!("{name}.pem")), self.pem(&format!("{name}.key")))
    }

    /// A server of this authority that asks for certificates of this authority.
    fn server_tls(&self, name: &str) -> ServerTlsConfig {
        let (certificate, key) = self.pair(name);
        ServerTlsConfig::new()
            .identity(Identity::from_pem(certificate, key))
            .client_ca_root(Certificate::from_pem(self.pem("ca.pem")))
    }

    async fn serve(&self, name: &str) -> Server {
        Server::start_with(
            loopback(),
            "secured",
            Answer::Session,
            Some(self.server_tls(name)),
            Batches::Answered,
        )
        .await
    }
}

fn client(server: &Server, tls: ClientTls) -> SessionClient {
    let name = Name::default();
    name.leads_to(&[server.address]);
    client_of(&name, tls)
}

fn client_of(name: &Name, tls: ClientTls) -> SessionClient {
    SessionClient::new(ClientSettings {
        tls: Some(tls),
        addresses: vec!["https://localhost:50051".to_owned()],
        ..found_by(name)
    })
    .unwrap()
}

#[tokio::test]
async fn both_sides_show_who_they_are() {
    let authority = Authority::make();
    let server = authority.serve("server").await;
    let tls = ClientTls::from_pem(authority.pem("ca.pem"), Some(authority.pair("client")));
    client(&server, tls).get_session(by_handle()).await.unwrap();
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn whoever_cannot_be_trusted_is_not_talked_to() {
    let (authority, stranger) = (Authority::make(), Authority::make());
    let server = authority.serve("server").await;
    let misnamed = authority.serve("other").await;
    let trusted = || ClientTls::from_pem(authority.pem("ca.pem"), Some(authority.pair("client")));
    for (server, tls) in [
        (
            &server,
            ClientTls::from_pem(stranger.pem("ca.pem"), Some(authority.pair("client"))),
        ),
        (&server, ClientTls::from_pem(authority.pem("ca.pem"), None)),
        (
            &server,
            ClientTls::from_pem(authority.pem("ca.pem"), Some(stranger.pair("client"))),
        ),
        (&misnamed, trusted()),
    ] {
        let error = client(server, tls).get_session(by_handle()).await.unwrap_err();
        assert!(error.is_unavailable());
    }
    assert_eq!((server.calls(), misnamed.calls()), (0, 0));
}

#[tokio::test]
async fn certificates_that_change_in_their_files_are_taken_up() {
    let (old, new) = (Authority::make(), Authority::make());
    let files = tempfile::tempdir().unwrap();
    let at = |name: &str| files.path().join(name);
    let put = |authority: &Authority| {
        for (name, file) in [
            ("ca.pem", "ca.pem"),
            ("client.pem", "own.pem"),
            ("client.key", "own.key"),
        ] {
            std::fs::copy(authority.path(name), at(file)).unwrap();
        }
    };
    put(&old);
    let server = old.serve("server").await;
    let tls = ClientTls::from_files(at("ca.pem"), Some((at("own.pem"), at("own.key")))).unwrap();
    let name = Name::default();
    name.leads_to(&[server.address]);
    let client = client_of(&name, tls);
    client.get_session(by_handle()).await.unwrap();

    // A key that does not match the certificate is ignored, and the previous pair stays in use.
    std::fs::copy(new.path("client.key"), at("own.key")).unwrap();
    name.asked_again().await;
    client.get_session(by_handle()).await.unwrap();

    put(&new);
    let address = server.stop().await;
    let server = Server::start_with(
        address,
        "new",
        Answer::Session,
        Some(new.server_tls("server")),
        Batches::Answered,
    )
    .await;
    within(async { while client.get_session(by_handle()).await.is_err() {} }).await;
    assert!(server.calls() >= 1);
}

#[test]
fn https_needs_somebody_to_trust_and_files_that_are_there() {
    let refused = SessionClient::new(ClientSettings::new(["https://session-svc:50051"])).unwrap_err();
    assert!(matches!(refused, InvalidSettings::NobodyToTrust(_)));
    let missing = ClientTls::from_files(Path::new("/nowhere/ca.pem").to_owned(), None).unwrap_err();
    assert!(missing.to_string().contains("/nowhere/ca.pem"));
    let nonsense = ClientTls::from_pem(b"ca".to_vec(), Some((b"certificate".to_vec(), b"key".to_vec())));
    let refused = SessionClient::new(ClientSettings {
        tls: Some(nonsense),
        ..ClientSettings::new(["https://session-svc:50051"])
    })
    .unwrap_err();
    assert!(matches!(refused, InvalidSettings::Tls(_)));
}
