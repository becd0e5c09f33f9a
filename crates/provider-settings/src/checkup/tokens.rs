//! Checks of tokens: issuer, signature, client authentication, binding, refresh.

use chassis::findings::{Check, Finding, chain};
use oidc::{ClientAuth, KeySetProbe, ProviderError, ProviderSettings, SigningAlgorithm};

use super::document::{DiscoveryDocument, format_list};
use super::request::signing_key;

/// Whether the document has the configured issuer, byte for byte (OpenID Connect Discovery 4.3).
pub(super) fn issuer(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let ours = settings.issuer_of_metadata();
    let said = document.text("issuer").unwrap_or_default();
    if said == ours {
        return Finding::fits(said);
    }
    if said.contains('{') {
        return Finding::problem(
            format!("the document is for many tenants: its issuer is {said}"),
            "OIDC_ISSUER_URL: write the address with your tenant's id, or list the tenants in OIDC_TENANTS",
        );
    }
    Finding::problem(
        format!(
            "{ours} is configured, and the provider's issuer is {said}: both must be equal, including a final slash"
        ),
        format!(
            "OIDC_ISSUER_URL: if that is your provider, write {said}; otherwise set the provider's public address at the provider"
        ),
    )
}

/// The algorithms that we accept from this provider.
pub(super) fn accepted(
    document: DiscoveryDocument<'_>,
    settings: &ProviderSettings,
) -> Vec<SigningAlgorithm> {
    let listed = document
        .list("id_token_signing_alg_values_supported")
        .unwrap_or_default();
    settings.signing_algs.shared_with(&listed)
}

fn names(algorithms: &[SigningAlgorithm]) -> Vec<&'static str> {
    algorithms.iter().map(|algorithm| algorithm.name()).collect()
}

/// Whether the provider signs ID tokens with an algorithm that we accept.
pub(super) fn algorithm(document: DiscoveryDocument<'_>, accepted: &[SigningAlgorithm]) -> Finding {
    let ours = names(accepted);
    let Some(listed) = document.list("id_token_signing_alg_values_supported") else {
        return Finding::unknown(format!(
            "{} is accepted; the provider does not list its algorithms",
            format_list(&ours)
        ));
    };
    let is_listed = |name: &&str| listed.contains(name);
    let shared: Vec<&str> = ours.iter().copied().filter(is_listed).collect();
    match (ours.is_empty(), shared.is_empty()) {
        (true, _) => Finding::problem(
            format!(
                "the provider lists only {}, which no public key can verify",
                format_list(&listed)
            ),
            "OIDC_ID_TOKEN_SIGNING_ALG: register the client for RS256 or ES256 (id_token_signed_response_alg), or name HS256, HS384 or HS512 here",
        ),
        (false, true) => Finding::problem(
            format!(
                "{} is accepted, and the provider signs with {}",
                format_list(&ours),
                format_list(&listed)
            ),
            "OIDC_ID_TOKEN_SIGNING_ALG: write auto, which accepts what the provider lists",
        ),
        (false, false) => Finding::fits(format_list(&shared)),
    }
}

/// Whether the provider publishes a key for an accepted algorithm; `None` if the client secret signs tokens.
pub(super) fn keys(
    keys: &Result<KeySetProbe, ProviderError>,
    accepted: &[SigningAlgorithm],
) -> Option<Finding> {
    let mut accepted = accepted.to_vec();
    accepted.retain(|algorithm| !algorithm.name().starts_with("HS"));
    if accepted.is_empty() {
        return None;
    }
    let keys = match keys {
        Ok(keys) => keys,
        Err(error) => {
            return Some(Finding::problem(
                chain(error),
                "the jwks_uri of the discovery document has to be reachable from here",
            ));
        }
    };
    let fitting: Vec<String> = accepted
        .iter()
        .map(|algorithm| (keys.fitting(*algorithm), algorithm.name()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} for {name}"))
        .collect();
    if !fitting.is_empty() {
        return Some(Finding::fits(fitting.join(", ")));
    }
    let kinds: Vec<&str> = keys.kinds.iter().map(String::as_str).collect();
    Some(Finding::problem(
        format!(
            "no key for {}; the key set has {}",
            format_list(&names(&accepted)),
            format_list(&kinds)
        ),
        "OIDC_ID_TOKEN_SIGNING_ALG: write the algorithm of the published keys, or publish a key for this one at the provider",
    ))
}

/// Whether the token endpoint accepts our authentication method.
pub(super) fn client_authentication(document: DiscoveryDocument<'_>, auth: &ClientAuth) -> Finding {
    let ours = auth.method();
    let listed = document.list("token_endpoint_auth_methods_supported");
    // The default of an absent list (RFC 8414 section 2).
    let listed = listed.unwrap_or_else(|| vec!["client_secret_basic"]);
    let is_listed = listed.contains(&ours)
        || ours == "tls_client_auth" && listed.contains(&"self_signed_tls_client_auth");
    match auth {
        ClientAuth::PrivateKeyJwt(keys) if is_listed => {
            let Some(listed) = document.list("token_endpoint_auth_signing_alg_values_supported") else {
                return Finding::fits(ours);
            };
            let algorithm = keys.signing_by(&listed).algorithm().name();
            signing_key("private_key_jwt,", algorithm, &listed, "OIDC_CLIENT_KEY_FILE")
        }
        _ if is_listed => Finding::fits(ours),
        // Many providers accept public clients without listing it.
        ClientAuth::None => {
            Finding::unknown("none: a public client, which the provider does not list but may accept")
        }
        _ => Finding::problem(
            format!("{ours}, and the provider accepts {}", format_list(&listed)),
            "OIDC_CLIENT_AUTH_METHOD: write the method that the client is registered for",
        ),
    }
}

/// Whether tokens can be bound to a key (RFC 9449); `None` if DPoP is off.
pub(super) fn bound_tokens(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Option<Finding> {
    let ours = settings.credentials.dpop_key.as_ref()?.algorithm().name();
    Some(match document.list("dpop_signing_alg_values_supported") {
        None => Finding::problem(
            "OIDC_DPOP is on, and the provider offers no DPoP",
            "OIDC_DPOP: write off: tokens of this provider are bearer tokens",
        ),
        Some(listed) => signing_key("DPoP proofs", ours, &listed, "OIDC_DPOP_KEY_FILE"),
    })
}

/// Whether tokens can be refreshed and revoked.
pub(super) fn refresh(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> [Check; 2] {
    let asked = settings.scope.split(' ').any(|scope| scope == "offline_access");
    let grants = document.list("grant_types_supported");
    let offered = document
        .list("scopes_supported")
        .is_some_and(|scopes| scopes.contains(&"offline_access"));
    let refresh = match grants {
        Some(grants) if !grants.contains(&"refresh_token") => {
            let found = "the provider does not list the grant refresh_token: sessions outlive the access token, and calls that need one then require a sign-in";
            let advice = "OIDC_SCOPE: remove offline_access, or allow refresh tokens at the provider";
            match asked {
                true => Finding::warning(found, advice),
                false => Finding::information(found),
            }
        }
        _ if !asked && offered => Finding::information(
            "the provider offers offline_access, and OIDC_SCOPE does not contain it: there may be no refresh token",
        )
        .advise("OIDC_SCOPE: add offline_access if applications need access tokens for longer than one is valid"),
        None => Finding::unknown("the provider does not say whether it issues refresh tokens"),
        Some(_) if asked => Finding::fits("requested by offline_access"),
        Some(_) => Finding::fits("as the provider grants it"),
    };
    let revocation = match document.text("revocation_endpoint") {
        Some(_) => Finding::fits("tokens are revoked when a session ends"),
        None => Finding::information(
            "not in the discovery document: unless the document of RFC 8414 names it, tokens of ended sessions stay valid until they expire",
        ),
    };
    [("refresh", refresh), ("revocation", revocation)]
}
