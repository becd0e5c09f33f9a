//! The session service: does it answer, who are we to it, and what may we call?

use std::path::Path;
use std::time::Duration;

use chassis::findings::{Finding, Remedy, chain};
use chassis::tls::names_in;
use session_proto::client::{ClientSettings, ClientTls, SessionClient, SessionError};
use session_proto::v1::{
    AbandonSignInRequest, BeginSignInRequest, BindSessionRequest, CreateSessionRequest, EndSessionRequest,
    EndSessionsRequest, ErrorReason, GetAccessTokenRequest, GetSessionRequest, ListSessionsRequest,
    ReceiveSecurityEventRequest, RollSessionRequest, RotateCookieRequest, UpdateSessionRequest,
    WatchSessionsRequest, get_session_request,
};

use super::trouble;
use crate::settings::EdgeSettings;

/// How long a call may take: a service that is well answers within milliseconds.
const DEADLINE: Duration = Duration::from_secs(3);

/// What was found of it.
pub(super) async fn examined(settings: &EdgeSettings) -> Vec<Finding> {
    let client = match client(settings) {
        Ok(client) => client,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    match nobody(&client).await {
        None => findings.push(Finding::fits("session_service", "answers")),
        Some(error) if error.reason == ErrorReason::ErrStoreUnavailable => {
            findings.push(Finding::problem(
                "session_service",
                "answers, and its store does not",
                Remedy::elsewhere("ask it: `session-svc doctor`"),
            ));
        }
        Some(error) if error.is_unavailable() => {
            let mut found = Vec::new();
            for address in &settings.session_service {
                found.push(trouble::of(settings, address).await);
            }
            return found;
        }
        // Why it does not let us ask is told below.
        Some(_) => findings.push(Finding::fits("session_service", "answers")),
    }
    findings.push(identity(settings));
    findings.push(rights(&client).await);
    findings
}

fn client(settings: &EdgeSettings) -> Result<SessionClient, Finding> {
    let id = "session_service";
    let identity = settings.session_service_identity.clone();
    let ca = settings.session_service_ca.clone();
    let tls = ca.map(|ca| ClientTls::from_files(ca, identity)).transpose();
    let tls = tls.map_err(|error| {
        let remedy = Remedy::set(
            "EDGE_SESSION_SVC_CA_FILE",
            "see that the certificate files can be read",
        );
        Finding::problem(id, error.to_string(), remedy)
    })?;
    let client = ClientSettings {
        tls,
        deadline: DEADLINE,
        ..ClientSettings::new(settings.session_service.clone())
    };
    SessionClient::new(client).map_err(|error| {
        let remedy = Remedy::set(
            "EDGE_SESSION_SVC_CA_FILE",
            "name the PEM file of the authority that the service's certificate comes from: https needs it",
        );
        Finding::problem(id, chain(&error), remedy)
    })
}

/// Asks for a session that cannot be there; `None` is the answer that it is not.
async fn nobody(client: &SessionClient) -> Option<SessionError> {
    let by = Some(get_session_request::By::Handle("0".repeat(32)));
    let error = client.get_session(GetSessionRequest { by }).await.err()?;
    (error.reason != ErrorReason::ErrMissingSession).then_some(error)
}

/// By which names the service may know us.
fn identity(settings: &EdgeSettings) -> Finding {
    let id = "session_service_identity";
    let secure = settings
        .session_service
        .iter()
        .all(|address| address.starts_with("https://"));
    let Some((certificate, _)) = settings.session_service_identity.as_ref().filter(|_| secure) else {
        return Finding::information(
            id,
            match secure {
                true => "no certificate of ours: the service knows us as anybody its network lets in",
                false => "plain http: the service knows us as anybody its network lets in",
            },
        );
    };
    let names = read(certificate).map(|pem| names_in(&pem)).unwrap_or_default();
    if names.is_empty() {
        return Finding::warning(
            id,
            "our certificate has no name that SESSION_CALLERS can hold",
            Remedy::set(
                "EDGE_SESSION_SVC_CERT_FILE",
                "use a certificate with a DNS name or a SPIFFE ID as subject alternative name",
            ),
        );
    }
    Finding::fits(id, names.join(", "))
}

fn read(path: &Path) -> Option<Vec<u8>> {
    chassis::files::read_bounded(path).ok()
}

/// What the service lets us call: each method is called with a request that none would fulfil, for who may not call is turned
/// away before the request is read.
async fn rights(client: &SessionClient) -> Finding {
    let id = "session_service_rights";
    let mut refused = Vec::new();
    let mut unknown = false;
    let mut note = |name: &'static str, outcome: Option<ErrorReason>| match outcome {
        Some(ErrorReason::ErrCallerNotAllowed) => refused.push(name),
        Some(ErrorReason::ErrUnknownCaller) => unknown = true,
        _ => {}
    };
    macro_rules! call {
        ($name:literal, $method:ident, $request:ty) => {
            let called = client.$method(<$request>::default()).await;
            note($name, called.err().map(|error| error.reason));
        };
    }
    call!("BeginSignIn", begin_sign_in, BeginSignInRequest);
    call!("AbandonSignIn", abandon_sign_in, AbandonSignInRequest);
    call!("CreateSession", create_session, CreateSessionRequest);
    call!("GetSession", get_session, GetSessionRequest);
    call!("RollSession", roll_session, RollSessionRequest);
    call!("BindSession", bind_session, BindSessionRequest);
    call!("RotateCookie", rotate_cookie, RotateCookieRequest);
    call!("UpdateSession", update_session, UpdateSessionRequest);
    call!("GetAccessToken", get_access_token, GetAccessTokenRequest);
    call!("EndSession", end_session, EndSessionRequest);
    call!("EndSessions", end_sessions, EndSessionsRequest);
    call!(
        "ReceiveSecurityEvent",
        receive_security_event,
        ReceiveSecurityEventRequest
    );
    call!("ListSessions", list_sessions, ListSessionsRequest);
    call!("WatchSessions", watch_sessions, WatchSessionsRequest);
    if unknown {
        return Finding::problem(
            id,
            "the service does not know us",
            Remedy::elsewhere(
                "add one of our names to the file of SESSION_CALLERS, with rpcs = [\"*\"]; without a certificate (EDGE_SESSION_SVC_CERT_FILE) nobody is known",
            ),
        );
    }
    if refused.is_empty() {
        return Finding::fits(id, "everything the edge calls");
    }
    Finding::problem(
        id,
        format!("we may not call {}", refused.join(", ")),
        Remedy::elsewhere("allow them to us in the file of SESSION_CALLERS: the edge calls every method"),
    )
}
