//! Checks with the provider whether the settings fit it.
//!
//! Invariants
//! - Checks are functions of the settings and the answers. The requests are here and in `oidc`.
//! - `OIDC_HTTP_TIMEOUT_MS` bounds every request. A provider that hangs is a finding.
//! - No finding contains a secret, and every problem comes with a fix.
//!
//! [`examine`] sends no credentials. [`try_client`] and [`try_refresh`] send those of the client.

mod client;
mod connection;
mod document;
mod request;
#[cfg(test)]
mod tests;
mod tokens;

use chassis::findings::{Check, CheckResult, Finding, chain};
use oidc::{
    AuthorizationProbe, ClientAuth, ClientVerdict, Metadata, ProviderError, ProviderSettings, RedirectUrl,
    RelyingParty,
};
use serde_json::{Map, Value};

pub use self::connection::{ConnectionSettings, describe_fault, root};

use self::document::DiscoveryDocument;
use crate::ConfiguredProvider;

/// When a sign-in reads userinfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserinfoReading {
    /// If the scope promises claims that the ID token lacks. If the read fails, the sign-in succeeds without them.
    Auto,
    /// Each time. If the read fails, the sign-in fails.
    Always,
    /// Never.
    Never,
}

/// Reads a provider's document and checks the settings against it. Returns the client for further checks if there
/// is a document of this issuer with the endpoints. `sign_in` says when sign-ins read userinfo; it is `None` for a
/// service that only refreshes. `now` is in seconds since the Unix epoch.
pub async fn examine(
    settings: &ProviderSettings,
    sign_in: Option<UserinfoReading>,
    now: u64,
) -> (Vec<Check>, Option<RelyingParty>) {
    let party = match RelyingParty::new(settings.clone()) {
        Ok(party) => party,
        Err(error) => {
            let advice = "OIDC_ISSUER_URL: check that the files named by the settings still exist";
            return (vec![("discovery", Finding::problem(chain(&error), advice))], None);
        }
    };
    let (mut checks, is_usable) = examine_document(&party, sign_in, now).await;
    if is_usable {
        return (checks, Some(party));
    }
    let untried = Finding::unknown("not tried: fix the problems above first");
    checks.push(("client_credentials", untried));
    (checks, None)
}

async fn examine_document(
    party: &RelyingParty,
    sign_in: Option<UserinfoReading>,
    now: u64,
) -> (Vec<Check>, bool) {
    let settings = party.settings();
    let Some(probe) = party.probe_discovery(now).await else {
        let finding = Finding::problem("issuer is not a URL", "OIDC_ISSUER_URL: write an absolute URL");
        return (vec![("discovery", finding)], false);
    };
    let mut checks = connection::judge(settings, &probe, now);
    let Ok(document) = &probe.document else {
        return (checks, false);
    };
    let said = document.get("issuer").and_then(Value::as_str).unwrap_or_default();
    let mutual_tls = matches!(settings.credentials.auth, ClientAuth::TlsClientAuth { .. });
    let metadata = Metadata::from_document(document, said, mutual_tls);
    checks.push(("issuer", tokens::issuer(DiscoveryDocument(document), settings)));
    if let Err(error) = &metadata {
        let advice = "the discovery document has to name authorization_endpoint, token_endpoint and jwks_uri, each with https, except on this machine";
        checks.push(("endpoints", Finding::problem(chain(error), advice)));
    }
    let accepted = tokens::accepted(DiscoveryDocument(document), settings);
    let algorithm = tokens::algorithm(DiscoveryDocument(document), &accepted);
    // Without a common algorithm, a check of the keys adds nothing.
    let keys_matter = algorithm.verdict != CheckResult::Problem;
    checks.push(("id_token_algorithm", algorithm));
    if let (Ok(metadata), true) = (&metadata, keys_matter) {
        let keys = tokens::keys(&party.probe_keys(&metadata.jwks_uri).await, &accepted);
        checks.extend(keys.map(|finding| ("signing_keys", finding)));
    }
    checks.extend(judge(document, settings, sign_in));
    (checks, said == settings.issuer_of_metadata() && metadata.is_ok())
}

/// Checks a discovery document against the settings, as far as the service needs it.
fn judge(
    document: &Map<String, Value>,
    settings: &ProviderSettings,
    sign_in: Option<UserinfoReading>,
) -> Vec<Check> {
    let document = DiscoveryDocument(document);
    let methods = document
        .list("token_endpoint_auth_methods_supported")
        .unwrap_or_default();
    let auth = settings.credentials.auth.for_methods(&methods);
    let authentication = tokens::client_authentication(document, &auth);
    let mut checks = vec![("client_authentication", authentication)];
    if let Some(reading) = sign_in {
        checks.extend([
            ("code_flow", request::code_flow(document)),
            ("response_mode", request::response_mode(document, settings)),
            ("pushed_requests", request::pushed_requests(document, settings)),
            ("scope", request::scope(document, settings)),
            ("back_channel_logout", request::back_channel_logout(document)),
        ]);
        checks.extend(request::userinfo(document, reading).map(|finding| ("profile_claims", finding)));
        let signed = request::signed_requests(document, settings);
        checks.extend(signed.map(|finding| ("signed_requests", finding)));
    }
    checks.extend(tokens::bound_tokens(document, settings).map(|finding| ("bound_tokens", finding)));
    checks.extend(tokens::refresh(document, settings));
    checks
}

/// Sends the client's credentials, a sign-in request with this redirect URI, and a sign-out to `landing`. `landing`
/// is `None` if sign-out does not involve the provider. No user is signed in or out.
pub async fn try_client(
    party: &RelyingParty,
    redirect_uri: &RedirectUrl,
    landing: Option<&str>,
    now: u64,
) -> Vec<Check> {
    let asked = party.probe_authorization(redirect_uri, now).await;
    let redirect_uri = redirect_uri.as_str();
    let verdict = client_verdict(party, Some(redirect_uri), now).await;
    let is_believed = matches!(verdict, Ok(ClientVerdict::Believed));
    let is_alike = is_answered_alike(party, &asked, redirect_uri, now).await;
    let sign_in = client::sign_in_request(&asked, redirect_uri, is_believed, is_alike);
    let mut checks = vec![
        (
            "client_credentials",
            client::credentials(party.settings(), &verdict),
        ),
        ("sign_in_request", sign_in),
    ];
    if let Some(landing) = landing {
        let asked = party.probe_end_session(landing).await;
        checks.push(("sign_out_request", client::sign_out_request(&asked, landing)));
    }
    checks
}

/// Sends the client's credentials with a refresh.
pub async fn try_refresh(party: &RelyingParty, now: u64) -> Check {
    let verdict = client_verdict(party, None, now).await;
    (
        "client_credentials",
        client::credentials(party.settings(), &verdict),
    )
}

/// Whether the provider accepts this client. Some providers check a code before the client, so the probe sends a
/// made-up refresh token first. It sends a made-up code only if the first answer gives no verdict.
async fn client_verdict(
    party: &RelyingParty,
    redirect_uri: Option<&str>,
    now: u64,
) -> Result<ClientVerdict, ProviderError> {
    let verdict = party.probe_client_by_refresh(now).await;
    match (redirect_uri, &verdict) {
        (Some(uri), Ok(ClientVerdict::NotAllowed(_) | ClientVerdict::Unclear(_))) => {
            party.probe_client_by_code(uri, now).await
        }
        _ => verdict,
    }
}

/// Whether an unregistered address gets the same page. If so, the page does not show whether ours is registered.
async fn is_answered_alike(
    party: &RelyingParty,
    asked: &Result<AuthorizationProbe, ProviderError>,
    redirect_uri: &str,
    now: u64,
) -> bool {
    let (Ok(AuthorizationProbe::Page(_) | AuthorizationProbe::Elsewhere), Ok(other)) = (
        asked,
        RedirectUrl::new(format!("{redirect_uri}/not-registered-by-anybody")),
    ) else {
        return false;
    };
    let other = party.probe_authorization(&other, now).await;
    matches!((asked, other), (Ok(asked), Ok(other)) if *asked == other)
}

/// The heading above the findings of a provider.
#[must_use]
pub fn title(provider: &ConfiguredProvider, listed: bool) -> String {
    let issuer = &provider.settings.issuer;
    match listed {
        false => format!("Provider {issuer}"),
        true => format!(
            "Provider {:?}, {issuer} (OIDC_CLIENT_ID is the key client_id in OIDC_PROVIDERS, and so on)",
            provider.id
        ),
    }
}
