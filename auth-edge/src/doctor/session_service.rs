//! Checks of the session service: the connection, the edge's identity and its rights.

use std::path::Path;
use std::time::Duration;

use chassis::files::read_bounded;
use chassis::findings::{Check, Finding, chain};
use chassis::tls::{TlsFault, names_in};
use futures_util::StreamExt as _;
use provider_settings::checkup::{ConnectionSettings, describe_fault, root};
use session_proto::client::{ClientSettings, SessionClient, SessionError, WatchItem};
use session_proto::v1::{ErrorReason, GetSessionRequest, WatchSessionsRequest, get_session_request};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::settings::SessionServiceSettings;

/// How long a call may take. A healthy service answers within milliseconds.
const DEADLINE: Duration = Duration::from_secs(3);

const SETTINGS: ConnectionSettings = ConnectionSettings {
    url: "EDGE_SESSION_SVC_URL",
    ca: "EDGE_SESSION_SVC_CA_FILE",
    certificate: "EDGE_SESSION_SVC_CERT_FILE",
};

/// Calls the service and reports the findings.
pub(super) async fn examine(settings: &SessionServiceSettings) -> Vec<Check> {
    let id = "session_service";
    let client = match client(settings) {
        Ok(client) => client,
        Err(found) => {
            let advice = "EDGE_SESSION_SVC_CA_FILE: https needs the PEM file of the authority that issued the service's certificate";
            return vec![(id, Finding::problem(found, advice))];
        }
    };
    let answers = match probe_get_session(&client).await {
        Some(error) if error.reason == ErrorReason::ErrStoreUnavailable => {
            Finding::problem("answers, but its store does not", "run `session-svc doctor`")
        }
        Some(error) if error.is_unavailable() => {
            let mut checks = Vec::new();
            for address in &settings.addresses {
                let (found, advice) = find_fault(settings, address).await;
                checks.push((id, Finding::problem(format!("{address}: {found}"), advice)));
            }
            return checks;
        }
        // The checks below report why the service rejects the call.
        Some(_) | None => Finding::fits("answers"),
    };
    vec![
        (id, answers),
        ("session_service_identity", identity(settings)),
        ("session_service_rights", rights(&client).await),
    ]
}

fn client(settings: &SessionServiceSettings) -> Result<SessionClient, String> {
    let client = ClientSettings {
        deadline: DEADLINE,
        ..settings.client().map_err(|error| error.to_string())?
    };
    SessionClient::new(client).map_err(|error| chain(&error))
}

/// Asks for a session that cannot exist. `None`: the service reports it as missing, as expected.
async fn probe_get_session(client: &SessionClient) -> Option<SessionError> {
    let by = Some(get_session_request::By::Handle("0".repeat(32)));
    let error = client.get_session(GetSessionRequest { by }).await.err()?;
    (error.reason != ErrorReason::ErrMissingSession).then_some(error)
}

/// Why an address does not answer, and how to fix it.
async fn find_fault(settings: &SessionServiceSettings, address: &str) -> (String, String) {
    match (connect(settings, address).await, address.starts_with("https://")) {
        (Err(error), _) => match TlsFault::of(&error) {
            Some(fault) => describe_fault(fault, SETTINGS),
            None => (
                root(&error),
                "EDGE_SESSION_SVC_URL: start session-svc, and set host and port of its SESSION_LISTEN (in Kubernetes: the name of its Service); check that firewalls and network policies allow connections from this host".to_owned(),
            ),
        },
        (Ok(()), true) => (
            "the connection ends after the TLS handshake".to_owned(),
            "EDGE_SESSION_SVC_CERT_FILE and EDGE_SESSION_SVC_KEY_FILE: set the edge's certificate and key. A service with SESSION_CLIENT_CA_FILE accepts only callers with a valid certificate from that authority".to_owned(),
        ),
        (Ok(()), false) => (
            "a server listens there, but does not answer plain gRPC".to_owned(),
            "EDGE_SESSION_SVC_URL: if the service has SESSION_TLS_CERT_FILE, write https:// and set EDGE_SESSION_SVC_CA_FILE; otherwise check that the port is that of SESSION_LISTEN".to_owned(),
        ),
    }
}

/// Opens a connection with the settings of a call, to find the cause of an error.
async fn connect(settings: &SessionServiceSettings, address: &str) -> Result<(), tonic::transport::Error> {
    let read = |path: &Path| read_bounded(path).unwrap_or_default();
    let mut tls = ClientTlsConfig::new();
    if let Some(ca) = &settings.ca {
        tls = tls.ca_certificate(Certificate::from_pem(read(ca)));
    }
    if let Some((certificate, key)) = &settings.identity {
        tls = tls.identity(Identity::from_pem(read(certificate), read(key)));
    }
    let mut endpoint = Endpoint::from_shared(address.to_owned())?
        .connect_timeout(DEADLINE)
        .timeout(DEADLINE);
    if address.starts_with("https://") {
        endpoint = endpoint.tls_config(tls)?;
    }
    endpoint.connect().await.map(|_channel| ())
}

/// The names by which the service can identify the edge.
fn identity(settings: &SessionServiceSettings) -> Finding {
    let mut addresses = settings.addresses.iter();
    if !addresses.all(|address| address.starts_with("https://")) {
        return Finding::information("plain http: the service cannot tell the edge from other clients");
    }
    let Some((certificate, _)) = &settings.identity else {
        return Finding::information(
            "the edge has no certificate: the service cannot tell it from other clients",
        );
    };
    let names = names_in(&read_bounded(certificate).unwrap_or_default());
    if names.is_empty() {
        return Finding::warning(
            "the edge's certificate has no name that SESSION_CALLERS can list",
            "EDGE_SESSION_SVC_CERT_FILE: use a certificate with a DNS name or a SPIFFE ID as subject alternative name",
        );
    }
    Finding::fits(names.join(", "))
}

/// Which methods the edge may call. Calls each with a request that cannot succeed: the service checks the caller
/// before it reads the request.
async fn rights(client: &SessionClient) -> Finding {
    let mut refused = Vec::new();
    let mut unknown = false;
    let mut note = |name: &'static str, outcome: Option<SessionError>| match outcome.map(|error| error.reason)
    {
        Some(ErrorReason::ErrCallerNotAllowed) => refused.push(name),
        Some(ErrorReason::ErrUnknownCaller) => unknown = true,
        _ => {}
    };
    macro_rules! call {
        ($($name:literal $method:ident,)*) => {
            $(note($name, client.$method(Default::default()).await.err());)*
        };
    }
    call! {
        "BeginSignIn" begin_sign_in,
        "AbandonSignIn" abandon_sign_in,
        "CreateSession" create_session,
        "GetSession" get_session,
        "RollSession" roll_session,
        "BindSession" bind_session,
        "RotateCookie" rotate_cookie,
        "UpdateSession" update_session,
        "GetAccessToken" get_access_token,
        "EndSession" end_session,
        "EndSessions" end_sessions,
        "ReceiveSecurityEvent" receive_security_event,
        "ListSessions" list_sessions,
    }
    let mut watch = client.watch(WatchSessionsRequest::default());
    if let Some(WatchItem::Lost(error)) = watch.next().await {
        note("WatchSessions", Some(error));
    }
    if unknown {
        return Finding::problem(
            "the service does not know the edge",
            "add one of the edge's names to the file of SESSION_CALLERS, with rpcs = [\"*\"]; the edge needs a certificate for that (EDGE_SESSION_SVC_CERT_FILE)",
        );
    }
    if refused.is_empty() {
        return Finding::fits("the edge may call all it needs");
    }
    Finding::problem(
        format!("the edge may not call {}", refused.join(", ")),
        "list these methods for the edge in the file of SESSION_CALLERS: the edge needs all of them",
    )
}
