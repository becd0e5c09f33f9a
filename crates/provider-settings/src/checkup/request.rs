//! A sign-in as it will be asked for: answer, proof of the code, pushed and signed requests, scope and claims.

use chassis::findings::Finding;
use oidc::{Par, ProviderSettings, ResponseMode};

use super::UserinfoReading;
use super::document::{DiscoveryDocument, shown};

/// What the code flow with PKCE needs (RFC 7636), by the lists that have to name it.
const CODE_FLOW: [(&str, &str); 3] = [
    ("response_types_supported", "code"),
    ("grant_types_supported", "authorization_code"),
    ("code_challenge_methods_supported", "S256"),
];

/// Whether the provider has the flow we speak: a code, given to whoever can prove that they asked for it (RFC 7636).
pub(super) fn code_flow(document: DiscoveryDocument<'_>) -> Finding {
    for (name, needed) in CODE_FLOW {
        if let Some(listed) = document.list(name).filter(|listed| !listed.contains(&needed)) {
            return Finding::problem(
                format!(
                    "the provider does not list {needed} in {name}, but {}",
                    shown(&listed)
                ),
                "this provider cannot be used until it offers the code flow with PKCE and S256",
            );
        }
    }
    Finding::fits("code with PKCE (S256)")
}

/// Whether the provider lists the way its answer comes back. Some understand more than they list, so it is no problem yet.
pub(super) fn response_mode(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let (ours, other) = match settings.response_mode {
        ResponseMode::Query => ("query", "form_post"),
        ResponseMode::FormPost => ("form_post", "query"),
    };
    // What is not said is this (OpenID Connect Discovery 3).
    let listed = document
        .list("response_modes_supported")
        .unwrap_or_else(|| vec!["query", "fragment"]);
    if listed.contains(&ours) {
        return Finding::fits(ours);
    }
    Finding::warning(
        format!("{ours}, and the provider lists {}", shown(&listed)),
        format!("OIDC_RESPONSE_MODE: write {other}, unless sign-in works"),
    )
}

/// Whether both agree on pushed requests (RFC 9126).
pub(super) fn pushed_requests(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let offered = document.text("pushed_authorization_request_endpoint").is_some();
    let required = document.says("require_pushed_authorization_requests") == Some(true);
    match (settings.par, offered, required) {
        (Par::Off, _, true) => Finding::problem(
            "OIDC_PAR is off, and the provider takes pushed requests alone",
            "OIDC_PAR: write auto",
        ),
        (Par::Require, false, _) => Finding::problem(
            "OIDC_PAR is require, and the provider offers no endpoint for them",
            "OIDC_PAR: write auto",
        ),
        (Par::Auto, false, true) => Finding::problem(
            "the provider takes pushed requests alone, and names no endpoint for them",
            "the provider's metadata has to name its pushed_authorization_request_endpoint",
        ),
        (Par::Off, true, false) => Finding::information("offered, and off by OIDC_PAR"),
        (_, true, _) => Finding::fits("used"),
        (_, false, _) => Finding::fits("not offered, not needed"),
    }
}

/// Whether both agree on signed requests (RFC 9101); nothing where neither speaks of them.
pub(super) fn signed_requests(
    document: DiscoveryDocument<'_>,
    settings: &ProviderSettings,
) -> Option<Finding> {
    let Some(keys) = &settings.credentials.request_keys else {
        return (document.says("require_signed_request_object") == Some(true)).then(|| {
            Finding::problem(
                "the provider takes signed requests alone, and ours are not",
                "OIDC_SIGNED_REQUESTS: write true, and name the key in OIDC_CLIENT_KEY_FILE",
            )
        });
    };
    let Some(listed) = document.list("request_object_signing_alg_values_supported") else {
        // What is not said is "no" (OpenID Connect Discovery 3).
        return Some(match document.says("request_parameter_supported") {
            Some(true) => Finding::fits("taken"),
            _ => Finding::problem(
                "OIDC_SIGNED_REQUESTS is true, and the provider does not take them",
                "OIDC_SIGNED_REQUESTS: write false",
            ),
        });
    };
    let ours = keys.signing_by(&listed).algorithm().name();
    Some(signing_key("requests", ours, &listed, "OIDC_CLIENT_KEY_FILE"))
}

/// Whether the provider takes what a key of ours signs; `what` is signed by it, and `setting` names it.
pub(super) fn signing_key(what: &str, ours: &str, listed: &[&str], setting: &str) -> Finding {
    if listed.contains(&ours) {
        return Finding::fits(format!("{what} signed with {ours}"));
    }
    Finding::problem(
        format!(
            "{what} signed with {ours}, and the provider takes {}",
            shown(listed)
        ),
        format!(
            "{setting}: use a key of another kind: RSA signs RS256, P-256 signs ES256, Ed25519 signs EdDSA"
        ),
    )
}

/// Whether the scope is among what the provider lists. It need not list all it knows (OpenID Connect Discovery 3).
pub(super) fn scope(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let ours = settings.scope.trim();
    let Some(listed) = document.list("scopes_supported") else {
        return Finding::unknown(format!("{ours}; the provider does not say which it knows"));
    };
    let is_missing = |scope: &&str| !listed.contains(scope);
    let missing: Vec<&str> = ours.split_whitespace().filter(is_missing).collect();
    if missing.is_empty() {
        return Finding::fits(ours);
    }
    let missing = shown(&missing);
    Finding::warning(
        format!("{ours}, of which the provider does not list {missing}"),
        format!("OIDC_SCOPE: leave out {missing} unless the provider knows it and only does not list it"),
    )
}

/// What a sign-in learns of people at userinfo (OpenID Connect Core 5.4); nothing where that needs no word.
pub(super) fn userinfo(document: DiscoveryDocument<'_>, reading: UserinfoReading) -> Option<Finding> {
    match (document.text("userinfo_endpoint"), reading) {
        (None, UserinfoReading::Always) => Some(Finding::problem(
            "EDGE_USERINFO_AT_LOGIN is always, and the provider has no userinfo endpoint",
            "EDGE_USERINFO_AT_LOGIN: write auto",
        )),
        (Some(_), UserinfoReading::Never) => Some(
            Finding::information("many providers give name and address at the userinfo endpoint only")
                .advise("EDGE_USERINFO_AT_LOGIN: write auto if profiles are empty"),
        ),
        _ => None,
    }
}

/// Whether the provider tells of sign-outs elsewhere (OpenID Connect Back-Channel Logout 1.0).
pub(super) fn back_channel_logout(document: DiscoveryDocument<'_>) -> Finding {
    match document.says("backchannel_logout_supported") {
        Some(true) => Finding::fits("offered"),
        Some(false) | None => Finding::information(
            "not offered: set SESSION_REVALIDATE_SECS (900, say), or a session lives on to its end after its account or its session at the provider was closed",
        ),
    }
}
