//! Why the session service cannot be reached at an address: name, connection, TLS, or what comes after.

use std::time::Duration;

use chassis::findings::{Finding, Remedy, chain};
use chassis::tls::TlsFault;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use url::Url;

use crate::settings::EdgeSettings;

const ID: &str = "session_service";
const URL_SETTING: &str = "EDGE_SESSION_SVC_URL";
/// How long each step may take.
const STEP: Duration = Duration::from_secs(2);

/// What is wrong with this address.
pub(super) async fn of(settings: &EdgeSettings, address: &str) -> Finding {
    let secure = address.starts_with("https://");
    if let Some((found, advice)) = unconnected(address, secure).await {
        return Finding::problem(
            ID,
            format!("{address}: {found}"),
            Remedy::set(URL_SETTING, advice),
        );
    }
    let (found, remedy) = match (secure, handshake(settings, address).await) {
        (true, Err(error)) => untrusted(&error),
        (true, Ok(())) => (
            "the connection ends after the TLS handshake".to_owned(),
            match settings.session_service_identity {
                None => Remedy::set(
                    "EDGE_SESSION_SVC_CERT_FILE",
                    "name our certificate, and EDGE_SESSION_SVC_KEY_FILE: a service with SESSION_CLIENT_CA_FILE lets nobody in without",
                ),
                Some(_) => Remedy::set(
                    "EDGE_SESSION_SVC_CERT_FILE",
                    "see that the certificate is from the authority of SESSION_CLIENT_CA_FILE and has not expired",
                ),
            },
        ),
        (false, _) => (
            "something listens there and does not answer plain gRPC".to_owned(),
            Remedy::set(
                URL_SETTING,
                "if the service has SESSION_TLS_CERT_FILE, write https:// and set EDGE_SESSION_SVC_CA_FILE; otherwise see that the port is that of SESSION_LISTEN",
            ),
        ),
    };
    Finding::problem(ID, format!("{address}: {found}"), remedy)
}

/// What keeps a connection from coming about, if something does.
async fn unconnected(address: &str, secure: bool) -> Option<(String, String)> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    let port = url.port().unwrap_or(if secure { 443 } else { 80 });
    let addresses: Vec<_> = match timeout(STEP, lookup_host((host.as_str(), port))).await {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    if addresses.is_empty() {
        return Some((
            format!("the name {host} leads nowhere"),
            "check the name; in Kubernetes it is that of a Service in this namespace, or NAME.NAMESPACE"
                .to_owned(),
        ));
    }
    let mut refused = false;
    for address in addresses {
        match timeout(STEP, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return None,
            Ok(Err(_)) => refused = true,
            Err(_) => {}
        }
    }
    Some(match refused {
        true => (
            "nobody listens there".to_owned(),
            "start session-svc, and write host and port of its SESSION_LISTEN".to_owned(),
        ),
        false => (
            "no answer to a connection".to_owned(),
            "see that firewalls and network policies let this host through".to_owned(),
        ),
    })
}

/// A connection like those of calls, for its error.
async fn handshake(settings: &EdgeSettings, address: &str) -> Result<(), tonic::transport::Error> {
    let read = |path: &std::path::Path| chassis::files::read_bounded(path).unwrap_or_default();
    let mut tls = ClientTlsConfig::new();
    if let Some(ca) = &settings.session_service_ca {
        tls = tls.ca_certificate(Certificate::from_pem(read(ca)));
    }
    if let Some((certificate, key)) = &settings.session_service_identity {
        tls = tls.identity(Identity::from_pem(read(certificate), read(key)));
    }
    let endpoint = Endpoint::from_shared(address.to_owned())?
        .connect_timeout(STEP)
        .timeout(STEP);
    let endpoint = match address.starts_with("https://") {
        true => endpoint.tls_config(tls)?,
        false => endpoint,
    };
    endpoint.connect().await.map(|_channel| ())
}

fn untrusted(error: &tonic::transport::Error) -> (String, Remedy) {
    let ca = |advice: &str| Remedy::set("EDGE_SESSION_SVC_CA_FILE", advice);
    match TlsFault::of(error) {
        Some(TlsFault::UnknownAuthority) => (
            "its certificate is not from the authority of EDGE_SESSION_SVC_CA_FILE".to_owned(),
            ca("name the PEM file of the authority that signed SESSION_TLS_CERT_FILE"),
        ),
        Some(TlsFault::OtherName) => (
            "its certificate is for another name".to_owned(),
            Remedy::set(
                URL_SETTING,
                "write a name that is in SESSION_TLS_CERT_FILE, or have this one added there",
            ),
        ),
        Some(TlsFault::Expired) => (
            "its certificate has expired".to_owned(),
            Remedy::elsewhere("renew the certificate of SESSION_TLS_CERT_FILE"),
        ),
        Some(TlsFault::NotYetValid) => (
            "its certificate is not valid yet".to_owned(),
            Remedy::elsewhere("set the clocks of both machines by NTP"),
        ),
        Some(TlsFault::NotTls) => (
            "it does not speak TLS".to_owned(),
            Remedy::set(
                URL_SETTING,
                "write http://, or set SESSION_TLS_CERT_FILE and SESSION_TLS_KEY_FILE there",
            ),
        ),
        Some(TlsFault::Refused) => (
            "it ended the TLS handshake".to_owned(),
            Remedy::set(
                "EDGE_SESSION_SVC_CERT_FILE",
                "name a certificate from the authority of SESSION_CLIENT_CA_FILE, and its key",
            ),
        ),
        Some(TlsFault::OfAuthority) => (
            "its certificate is that of an authority (CA:TRUE)".to_owned(),
            Remedy::elsewhere(
                "have a certificate made for SESSION_TLS_CERT_FILE with basicConstraints=CA:FALSE",
            ),
        ),
        Some(TlsFault::Other) | None => (
            chain(error),
            ca("see that it is the authority of SESSION_TLS_CERT_FILE, in PEM"),
        ),
    }
}
