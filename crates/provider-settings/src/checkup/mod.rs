//! Do the settings fit the provider? Asks it, and judges what it says by what is configured.
//!
//! Invariants
//! - Judgements are functions of the settings and of what was seen; the requests are here and in `oidc`.
//! - Every request is bounded by `OIDC_HTTP_TIMEOUT_MS`; a provider that hangs is a finding.
//! - No finding holds a secret, and whatever does not fit names what mends it.
//!
//! [`examine`] sends no credentials. [`try_client`] and [`try_refresh`] send those of the client.

mod client;
mod connection;
mod document;
mod request;
#[cfg(test)]
mod tests;
mod tokens;

use chassis::findings::{Finding, Remedy, Verdict};
use oidc::{
    AuthorizationProbe, ClientAuth, ClientVerdict, ProviderError, ProviderSettings, RedirectUrl, RelyingParty,
};
use serde_json::{Map, Value};

use crate::ConfiguredProvider;
use document::DiscoveryDocument;

/// Which part of the product has to do with the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Signs people in and out.
    SignIn {
        /// When userinfo is read at sign-in.
        userinfo: UserinfoReading,
    },
    /// Refreshes tokens and takes them back.
    Refresh,
}

/// When a sign-in reads userinfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserinfoReading {
    /// When the scope promises claims that the ID token lacks; without them the person is signed in all the same.
    Auto,
    /// Each time; without it nobody is signed in.
    Always,
    /// Never.
    Never,
}

/// What became of an examination.
#[derive(Debug)]
pub struct Examined {
    /// What was found.
    pub findings: Vec<Finding>,
    /// Whether the provider can be spoken to: there is a document, of this issuer, that names the endpoints.
    pub usable: bool,
}

/// Asks the provider who it is and what it offers, and judges that. `now` is in seconds since the Unix epoch.
pub async fn examine(party: &RelyingParty, part: Part, now: u64) -> Examined {
    let settings = party.settings();
    let Some(probe) = party.probe_discovery(now).await else {
        let remedy = Remedy::set("OIDC_ISSUER_URL", "write an absolute URL");
        return Examined {
            findings: vec![Finding::problem("discovery", "the issuer is no URL", remedy)],
            usable: false,
        };
    };
    let mut findings = connection::judge(settings, &probe, now);
    let Ok(document) = &probe.document else {
        return Examined {
            findings,
            usable: false,
        };
    };
    let said = document.get("issuer").and_then(Value::as_str).unwrap_or_default();
    let mutual_tls = matches!(settings.client_auth, ClientAuth::TlsClientAuth { .. });
    let metadata = probe.metadata(said, mutual_tls);
    findings.push(tokens::issuer(DiscoveryDocument(document), settings));
    if let Some(Err(error)) = &metadata {
        findings.push(endpoints(error));
    }
    let accepted = tokens::accepted(DiscoveryDocument(document), settings);
    let algorithm = tokens::algorithm(DiscoveryDocument(document), settings);
    // Keys for an algorithm the provider does not use say nothing more.
    let keys_matter = algorithm.verdict != Verdict::Problem;
    findings.push(algorithm);
    if let (Some(Ok(metadata)), true) = (&metadata, keys_matter) {
        let keys = party.probe_keys(&metadata.jwks_uri).await;
        findings.extend(tokens::keys(&keys, &accepted));
    }
    findings.extend(judge(document, settings, part));
    let usable = said == settings.issuer_of_metadata() && matches!(metadata, Some(Ok(_)));
    Examined { findings, usable }
}

/// An endpoint that is missing or must not be used.
fn endpoints(error: &ProviderError) -> Finding {
    Finding::problem(
        "endpoints",
        chassis::findings::chain(error),
        Remedy::elsewhere(
            "the discovery document has to name authorization_endpoint, token_endpoint and jwks_uri, all of them https outside this machine",
        ),
    )
}

/// Judges a discovery document by the settings, as far as a part of the product needs it.
fn judge(document: &Map<String, Value>, settings: &ProviderSettings, part: Part) -> Vec<Finding> {
    let document = DiscoveryDocument(document);
    let methods = document
        .list("token_endpoint_auth_methods_supported")
        .unwrap_or_default();
    let methods: Vec<String> = methods.into_iter().map(str::to_owned).collect();
    let auth = settings.client_auth.for_methods(&methods);
    let mut findings = vec![tokens::client_authentication(document, &auth)];
    if let Part::SignIn { userinfo } = part {
        findings.push(request::code_flow(document));
        findings.push(request::response_mode(document, settings));
        findings.push(request::pushed_requests(document, settings));
        findings.extend(request::signed_requests(document, settings));
        findings.push(request::scope(document, settings));
        findings.push(request::claims(document, settings));
        findings.push(request::userinfo(document, userinfo));
        findings.push(request::back_channel_logout(document));
    }
    findings.extend(tokens::bound_tokens(document, settings));
    findings.extend(tokens::refresh(document, settings));
    findings
}

/// What a sign-in uses besides the provider's settings.
#[derive(Clone, Copy, Debug)]
pub struct SignInUris<'a> {
    /// Where answers come back to.
    pub redirect_uri: &'a RedirectUrl,
    /// Where people land after signing out; none where the provider takes no part in that.
    pub landing: Option<&'a str>,
}

/// Shows the provider who this client is, and what a sign-in and a sign-out ask for. Nobody is signed in or out.
pub async fn try_client(party: &RelyingParty, uris: SignInUris<'_>, now: u64) -> Vec<Finding> {
    let redirect_uri = uris.redirect_uri.as_str();
    let asked = party.probe_authorization(uris.redirect_uri, now).await;
    let verdict = client_verdict(party, Some(redirect_uri), now).await;
    let is_believed = matches!(verdict, Ok(ClientVerdict::Believed));
    let is_alike = is_answered_alike(party, &asked, redirect_uri, now).await;
    let mut findings = vec![
        client::credentials(party.settings(), &verdict),
        client::sign_in_request(&asked, redirect_uri, is_believed, is_alike),
    ];
    if let Some(landing) = uris.landing {
        findings.push(client::sign_out_request(
            &party.probe_end_session(landing).await,
            landing,
        ));
    }
    findings
}

/// Shows the provider who this client is, as a refresh does.
pub async fn try_refresh(party: &RelyingParty, now: u64) -> Finding {
    let verdict = client_verdict(party, None, now).await;
    client::credentials(party.settings(), &verdict)
}

/// What the provider makes of this client. Some judge a code before the client, so a made-up refresh token is shown first. Only a
/// client that may not refresh is judged by a code, at this redirect URI.
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

/// Whether the provider shows the same page for an address that is not registered, so that its page says nothing of ours.
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

/// The heading above the findings on a provider. In a file of providers a setting is a key of its table.
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
