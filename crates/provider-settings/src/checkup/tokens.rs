//! Tokens: whose they are, what signs them, how we show who we are to get them, what they are bound to.

use chassis::findings::{Finding, Remedy};
use oidc::{ClientAuth, KeySetProbe, ProviderError, ProviderSettings, SigningAlgorithm};

use super::document::{DiscoveryDocument, shown};

/// Whether the document is the configured issuer's, byte for byte (OpenID Connect Discovery 4.3).
pub(super) fn issuer(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let id = "issuer";
    let ours = settings.issuer_of_metadata();
    let ours = ours.as_ref();
    let Some(said) = document.text("issuer") else {
        return Finding::problem(
            id,
            "the document names no issuer",
            Remedy::set("OIDC_ISSUER_URL", "copy the issuer from the provider's console"),
        );
    };
    if said == ours {
        return Finding::fits(id, said);
    }
    let bare = |url: &str| {
        let url = url.to_ascii_lowercase();
        let rest = url
            .strip_prefix("https://")
            .or_else(|| url.strip_prefix("http://"));
        rest.unwrap_or(&url).trim_end_matches('/').to_owned()
    };
    let (found, advice) = if said.contains('{') {
        (
            format!("the document is for many tenants: it calls its issuer {said}"),
            "write the address with your own tenant's id, or name the tenants in OIDC_TENANTS".to_owned(),
        )
    } else if said.trim_end_matches('/') == ours.trim_end_matches('/') {
        (
            format!("{ours} is configured and the provider calls itself {said}: the slash at the end counts"),
            format!("write {said}"),
        )
    } else if bare(said) == bare(ours) {
        (
            format!("{ours} is configured and the provider calls itself {said}: every letter counts"),
            format!("write {said}"),
        )
    } else {
        (
            format!("{ours} is configured and the provider calls itself {said}"),
            format!(
                "if that is your provider, write {said}; if not, the provider does not know by which name it is reached"
            ),
        )
    };
    Finding::problem(id, found, Remedy::set("OIDC_ISSUER_URL", advice))
}

/// The algorithms that are accepted of this provider.
pub(super) fn accepted(
    document: DiscoveryDocument<'_>,
    settings: &ProviderSettings,
) -> Vec<SigningAlgorithm> {
    let listed = document
        .list("id_token_signing_alg_values_supported")
        .unwrap_or_default();
    let listed: Vec<String> = listed.into_iter().map(str::to_owned).collect();
    settings.signing_algs.shared_with(&listed)
}

/// Whether the provider signs ID tokens by an algorithm we accept.
pub(super) fn algorithm(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let id = "id_token_algorithm";
    let setting = "OIDC_ID_TOKEN_SIGNING_ALG";
    let accepted = accepted(document, settings);
    let ours: Vec<&str> = accepted.iter().map(|algorithm| algorithm.name()).collect();
    let Some(listed) = document.list("id_token_signing_alg_values_supported") else {
        let found = format!(
            "{} is accepted; the provider does not say what it signs with",
            shown(&ours)
        );
        return Finding::unknown(id, found);
    };
    if ours.is_empty() {
        return Finding::problem(
            id,
            format!(
                "the provider lists {}, none of which a public key verifies",
                shown(&listed)
            ),
            Remedy::set(
                setting,
                "have the client registered for RS256 or ES256 (id_token_signed_response_alg), or name HS256, HS384 or HS512 here",
            ),
        );
    }
    let shared: Vec<&str> = ours
        .iter()
        .copied()
        .filter(|name| listed.contains(name))
        .collect();
    if shared.is_empty() {
        return Finding::problem(
            id,
            format!(
                "{} is accepted, and the provider signs with {}",
                shown(&ours),
                shown(&listed)
            ),
            Remedy::set(setting, "write auto, which accepts what the provider lists"),
        );
    }
    Finding::fits(id, shown(&shared))
}

/// Whether the provider publishes a key for an algorithm we accept.
pub(super) fn keys(
    keys: &Result<KeySetProbe, ProviderError>,
    accepted: &[SigningAlgorithm],
) -> Option<Finding> {
    let id = "signing_keys";
    let public = |algorithm: &&SigningAlgorithm| !algorithm.name().starts_with("HS");
    let accepted: Vec<SigningAlgorithm> = accepted.iter().filter(public).copied().collect();
    if accepted.is_empty() {
        return None; // tokens are signed with the client secret
    }
    let names: Vec<&str> = accepted.iter().map(|algorithm| algorithm.name()).collect();
    let keys = match keys {
        Ok(keys) => keys,
        Err(error) => {
            return Some(Finding::problem(
                id,
                chassis::findings::chain(error),
                Remedy::elsewhere("the jwks_uri of the discovery document has to be reachable from here"),
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
        return Some(Finding::fits(id, fitting.join(", ")));
    }
    let kinds: Vec<&str> = keys.kinds.iter().map(String::as_str).collect();
    Some(Finding::problem(
        id,
        format!("no key for {}; the key set has {}", shown(&names), shown(&kinds)),
        Remedy::set(
            "OIDC_ID_TOKEN_SIGNING_ALG",
            "write the algorithm of the keys there, or have the provider publish a key for this one",
        ),
    ))
}

/// Whether the token endpoint takes our way to show who we are.
pub(super) fn client_authentication(document: DiscoveryDocument<'_>, auth: &ClientAuth) -> Finding {
    let id = "client_authentication";
    let ours = auth.method();
    let listed = document.list("token_endpoint_auth_methods_supported");
    // What is not said is this (RFC 8414 section 2).
    let listed = listed.unwrap_or_else(|| vec!["client_secret_basic"]);
    let is_listed = listed.contains(&ours)
        || ours == "tls_client_auth" && listed.contains(&"self_signed_tls_client_auth");
    if is_listed {
        return assertion_algorithm(document, auth).unwrap_or_else(|| Finding::fits(id, ours));
    }
    if ours == "none" {
        // Many take public clients without saying so.
        return Finding::unknown(
            id,
            "none: a public client, which the provider does not list and may take all the same",
        );
    }
    let known = [
        "private_key_jwt",
        "tls_client_auth",
        "client_secret_basic",
        "client_secret_post",
        "none",
    ];
    let usable: Vec<&str> = known
        .into_iter()
        .filter(|method| listed.contains(method))
        .collect();
    Finding::problem(
        id,
        format!("{ours}, and the provider takes {}", shown(&listed)),
        Remedy::set(
            "OIDC_CLIENT_AUTH_METHOD",
            format!(
                "write the one the client is registered for, of {}",
                shown(&usable)
            ),
        ),
    )
}

fn assertion_algorithm(document: DiscoveryDocument<'_>, auth: &ClientAuth) -> Option<Finding> {
    let ClientAuth::PrivateKeyJwt(keys) = auth else {
        return None;
    };
    let listed = document.list("token_endpoint_auth_signing_alg_values_supported")?;
    let ours = keys.signing_by(&listed).algorithm().name();
    (!listed.contains(&ours)).then(|| {
        Finding::problem(
            "client_authentication",
            format!(
                "assertions are signed with {ours}, and the provider takes {}",
                shown(&listed)
            ),
            Remedy::set(
                "OIDC_CLIENT_KEY_FILE",
                "use a key of another kind: P-256 signs ES256, Ed25519 signs EdDSA",
            ),
        )
    })
}

/// Whether tokens can be bound to a key (RFC 9449); nothing where they are not to be.
pub(super) fn bound_tokens(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Option<Finding> {
    let id = "bound_tokens";
    let ours = settings.dpop_key.as_ref()?.algorithm().name();
    let off = |advice: &str| Remedy::set("OIDC_DPOP", advice);
    Some(match document.list("dpop_signing_alg_values_supported") {
        None => Finding::problem(
            id,
            "OIDC_DPOP is on, and the provider offers no DPoP",
            off("write off: tokens of this provider are bearer tokens"),
        ),
        Some(listed) if !listed.contains(&ours) => Finding::problem(
            id,
            format!(
                "proofs are signed with {ours}, and the provider takes {}",
                shown(&listed)
            ),
            Remedy::set(
                "OIDC_DPOP_KEY_FILE",
                "use a key of another kind: RSA signs RS256, P-256 signs ES256, Ed25519 signs EdDSA",
            ),
        ),
        Some(_) => Finding::fits(id, format!("DPoP ({ours})")),
    })
}

/// Whether tokens can be refreshed, and taken back.
pub(super) fn refresh(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Vec<Finding> {
    let id = "refresh";
    let asked = settings.scope.split(' ').any(|scope| scope == "offline_access");
    let grants = document.list("grant_types_supported");
    let offered = document
        .list("scopes_supported")
        .is_some_and(|scopes| scopes.contains(&"offline_access"));
    let refresh = match grants {
        Some(grants) if !grants.contains(&"refresh_token") => {
            let found = "the provider does not list the grant refresh_token: sessions go on when the access token has expired, and calls that need one ask for a sign-in";
            if asked {
                Finding::warning(
                    id,
                    found,
                    Remedy::set(
                        "OIDC_SCOPE",
                        "leave out offline_access, or have the provider allow refresh tokens",
                    ),
                )
            } else {
                Finding::information(id, found)
            }
        }
        _ if !asked && offered => Finding::information(
            id,
            "the provider offers offline_access, and OIDC_SCOPE does not ask for it: it may give no refresh token",
        )
        .with(Remedy::set(
            "OIDC_SCOPE",
            "add offline_access if applications need access tokens for longer than one lasts",
        )),
        None => Finding::unknown(id, "the provider does not say whether it gives refresh tokens"),
        Some(_) => Finding::fits(
            id,
            if asked {
                "asked for by offline_access"
            } else {
                "as the provider grants it"
            },
        ),
    };
    let revocation = match document.text("revocation_endpoint") {
        Some(_) => Finding::fits("revocation", "tokens are taken back when a session ends"),
        None => Finding::information(
            "revocation",
            "not in the discovery document: unless the one of RFC 8414 names it, tokens of ended sessions live until they expire",
        ),
    };
    vec![refresh, revocation]
}
