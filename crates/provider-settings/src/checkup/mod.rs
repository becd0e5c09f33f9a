//! Do the settings fit the provider? Asks it, and judges what it says by what is configured.
//!
//! Invariants
//! - Judgements are functions of the settings and of what was seen; the requests are here and in `oidc`.
//! - Every request is bounded by `OIDC_HTTP_TIMEOUT_MS`; a provider that hangs is a finding.
//! - No finding holds a secret, and whatever does not fit names what mends it.
//!
//! [`examine`] sends no credentials: both services do it at their start too ([`watch()`]). [`try_client`] sends those of the client,
//! and is for the command `doctor` alone.

mod client;
mod connection;
mod document;
mod request;
#[cfg(test)]
mod tests;
mod tokens;
mod watch;

use chassis::findings::{Finding, Remedy, Section, Verdict};
use oidc::{
    AuthorizationProbe, ClientAuth, ClientVerdict, ProviderError, ProviderSettings, RedirectUrl, RelyingParty,
};
use serde_json::{Map, Value};

pub use self::watch::{Watched, watch};
use crate::ConfiguredProvider;
use crate::keys::{file_key, with_keys};
use crate::table::{PREFIX, PROVIDERS};
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
    /// Whether everything that was asked for was had, keys included.
    pub(crate) answered: bool,
}

/// Asks the provider who it is and what it offers, and judges that. `now` is in seconds since the Unix epoch.
pub async fn examine(party: &RelyingParty, part: Part, now: u64) -> Examined {
    let settings = party.settings();
    let Some(probe) = party.probe_discovery(now).await else {
        let remedy = Remedy::set("OIDC_ISSUER_URL", "write an absolute URL");
        return Examined {
            findings: vec![Finding::problem("discovery", "the issuer is no URL", remedy)],
            usable: false,
            answered: false,
        };
    };
    let mut findings = connection::judge(settings, &probe, now);
    let Ok(document) = &probe.document else {
        return Examined {
            findings,
            usable: false,
            answered: false,
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
    let mut keys_answered = true;
    if let (Some(Ok(metadata)), true) = (&metadata, keys_matter) {
        let keys = party.probe_keys(&metadata.jwks_uri).await;
        keys_answered = keys.is_ok();
        findings.extend(tokens::keys(&keys, &accepted));
    }
    findings.extend(judge(document, settings, part));
    let usable = said == settings.issuer_of_metadata() && matches!(metadata, Some(Ok(_)));
    Examined {
        findings,
        usable,
        answered: usable && keys_answered,
    }
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
    let instead = other_method(party, &verdict, Some(redirect_uri), now).await;
    let is_believed = matches!(verdict, Ok(ClientVerdict::Believed));
    let is_alike = is_answered_alike(party, &asked, redirect_uri, now).await;
    let mut findings = vec![
        client::credentials(party.settings(), &verdict, instead),
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
    let instead = other_method(party, &verdict, None, now).await;
    client::credentials(party.settings(), &verdict, instead)
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

/// A way to show who we are that the provider believes, where it does not believe the configured one.
async fn other_method(
    party: &RelyingParty,
    verdict: &Result<ClientVerdict, ProviderError>,
    redirect_uri: Option<&str>,
    now: u64,
) -> Option<Remedy> {
    let doubted = matches!(
        verdict,
        Ok(ClientVerdict::NotBelieved(_)) | Err(ProviderError::ClientRefused { status: 401, .. })
    );
    if !doubted {
        return None;
    }
    let settings = party.settings();
    let other = match &settings.client_auth {
        ClientAuth::SecretByMetadata(secret) | ClientAuth::SecretBasic(secret) => {
            ClientAuth::SecretPost(secret.clone())
        }
        ClientAuth::SecretPost(secret) => ClientAuth::SecretBasic(secret.clone()),
        ClientAuth::PrivateKeyJwt(_) | ClientAuth::TlsClientAuth { .. } | ClientAuth::None => return None,
    };
    let word = other.method();
    let party = party
        .with_settings(|settings| settings.client_auth = other)
        .ok()?;
    let verdict = client_verdict(&party, redirect_uri, now).await;
    matches!(verdict, Ok(ClientVerdict::Believed)).then(|| {
        let advice = format!("write {word}: the provider believes the same secret that way");
        Remedy::set("OIDC_CLIENT_AUTH_METHOD", advice)
    })
}

/// The findings on a provider as a part of a report. Where a file lists the providers, settings are its keys.
#[must_use]
pub fn section(provider: &ConfiguredProvider, listed: bool, mut findings: Vec<Finding>) -> Section {
    let issuer = &provider.settings.issuer;
    if !listed {
        return Section {
            id: "provider".to_owned(),
            title: format!("Provider {issuer}"),
            findings,
        };
    }
    for finding in &mut findings {
        finding.found = with_keys(&finding.found);
        if let Some(remedy) = &mut finding.remedy {
            in_file(remedy, &provider.id);
        }
    }
    Section {
        id: format!("provider:{}", provider.id),
        title: format!("Provider {:?}, {issuer}", provider.id),
        findings,
    }
}

/// What to do, in a file of providers.
fn in_file(remedy: &mut Remedy, id: &str) {
    let advice = with_keys(&remedy.advice);
    remedy.advice = match &remedy.setting {
        Some(name) if name.starts_with(PREFIX) => {
            let advice = format!("key {} of {id:?}: {advice}", file_key(name));
            remedy.setting = Some(PROVIDERS.to_owned());
            advice
        }
        _ => advice,
    };
}

/// What is amiss, each with its id and what mends it, in our own words alone: for readiness.
fn amiss(findings: &[Finding]) -> String {
    let amiss = findings
        .iter()
        .filter(|finding| finding.verdict >= Verdict::Warning);
    let told = amiss.map(|finding| {
        let setting = finding
            .remedy
            .as_ref()
            .and_then(|remedy| remedy.setting.as_deref());
        match setting {
            Some(setting) => format!("{} ({setting})", finding.id),
            None => finding.id.to_owned(),
        }
    });
    told.collect::<Vec<_>>().join(", ")
}
