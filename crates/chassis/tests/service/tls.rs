//! TLS with clients that do not follow the protocol.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use chassis::runtime::Workers;
use chassis::serve;
use chassis::tls::{CertificateMetrics, ServerTls, TlsFiles};
use prometheus::Registry;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::kx_group::{SECP256R1, X25519, X25519MLKEM768};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, NamedGroup, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::certificates::Certificates;

/// Far beyond every timeout.
const AGES: Duration = Duration::from_secs(3_600);

/// Long enough to read a file, and shorter than the idle timeout of a connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the certificates of these tests are valid.
const TWO_DAYS_SECS: f64 = 172_800.0;

fn files(made: &Certificates, client_ca: Option<PathBuf>) -> TlsFiles {
    TlsFiles {
        certificate: made.text("server.pem").into(),
        key: made.text("server.key").into(),
        client_ca,
    }
}

async fn serving(tls: ServerTls) -> (SocketAddr, DropGuard) {
    let listener = serve::bind(([127, 0, 0, 1], 0).into(), "LISTEN").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let router = Router::new();
    tokio::spawn(serve::serve_each(
        Workers::here(),
        listener,
        move || router.clone(),
        Some(tls),
        serve::Limits::default(),
        serve::Stopping::on(stop.clone()),
    ));
    (address, stop.drop_guard())
}

/// A connection whose client presents its certificate.
async fn connected(made: &Certificates, address: SocketAddr) -> TlsStream<TcpStream> {
    connected_by(made, address, rustls::crypto::aws_lc_rs::default_provider()).await
}

async fn connected_by(
    made: &Certificates,
    address: SocketAddr,
    provider: CryptoProvider,
) -> TlsStream<TcpStream> {
    let certificate = |name: &str| CertificateDer::from_pem_file(made.path(name)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(made.path("client.key")).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate("client.pem")], key)
        .unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.unwrap()
}

#[tokio::test]
async fn a_listener_agrees_on_keys_with_old_clients_and_with_those_that_offer_hybrid_keys_only() {
    let made = Certificates::make();
    let (address, _stop) = serving(ServerTls::load(&files(&made, None)).unwrap()).await;
    for (offered, agreed) in [
        (vec![X25519], NamedGroup::X25519),
        (vec![SECP256R1], NamedGroup::secp256r1),
        (vec![X25519MLKEM768], NamedGroup::X25519MLKEM768),
        (vec![X25519MLKEM768, X25519], NamedGroup::X25519MLKEM768),
    ] {
        let provider = CryptoProvider {
            kx_groups: offered,
            ..rustls::crypto::aws_lc_rs::default_provider()
        };
        let client = connected_by(&made, address, provider).await;
        let (_, connection) = client.get_ref();
        let group = connection.negotiated_key_exchange_group().unwrap().name();
        assert_eq!(group, agreed);
    }
}

// Time passes only while all tasks wait.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_shake_hands_is_given_up() {
    let made = Certificates::make();
    let (address, _stop) = serving(ServerTls::load(&files(&made, None)).unwrap()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    let end = timeout(AGES, client.read_to_end(&mut Vec::new())).await;
    assert!(end.is_ok(), "it is kept for ever");
}

#[tokio::test]
async fn whom_a_new_authority_does_not_know_has_to_go_at_once() {
    let made = Certificates::make();
    let client_ca = made.path("clients.pem");
    std::fs::copy(made.path("ca.pem"), &client_ca).unwrap();
    let files = files(&made, Some(client_ca.clone()));
    let tls = ServerTls::load(&files).unwrap().recheck_every(AGES);
    tls.follow(Duration::from_millis(20), files);
    let (address, _stop) = serving(tls).await;
    let mut client = connected(&made, address).await;
    // HTTP/2, which stays open while idle: its preface, and empty settings.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    client.write_all(preface).await.unwrap();
    client.read_u8().await.unwrap();

    made.authority("other");
    std::fs::copy(made.path("other.pem"), &client_ca).unwrap();
    let end = timeout(PATIENCE, client.read_to_end(&mut Vec::new())).await;
    assert!(end.is_ok(), "it is believed until it is looked at again");
}

#[tokio::test]
async fn until_when_the_certificate_in_use_counts_is_told_and_follows_its_file() {
    let made = Certificates::make();
    let files = files(&made, None);
    let registry = Registry::new();
    let metrics = CertificateMetrics::new(&registry).unwrap();
    let told = |name: &str| {
        let families = registry.gather();
        let family = families.iter().find(|family| family.name() == name)?;
        Some(family.get_metric().first()?.get_gauge().get_value())
    };
    let tls = ServerTls::load(&files).unwrap().measured(&metrics);
    tls.follow(Duration::from_millis(20), files);
    let (begins, ends) = (
        "tls_certificate_not_before_timestamp_seconds",
        "tls_certificate_not_after_timestamp_seconds",
    );
    let changed = |before: Option<f64>| async move {
        while told(ends) == before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        told(ends).zip(told(begins)).unwrap()
    };
    let (first_end, first_begin) = timeout(PATIENCE, changed(None)).await.unwrap();
    assert!((first_end - first_begin - TWO_DAYS_SECS).abs() < 1.0);

    // With a later second in its timestamp.
    tokio::time::sleep(Duration::from_secs(1)).await;
    made.issue("ca", "server", "subjectAltName=IP:127.0.0.1");
    let (end, begin) = timeout(PATIENCE, changed(Some(first_end))).await.unwrap();
    assert!(end > first_end && begin > first_begin);
}
