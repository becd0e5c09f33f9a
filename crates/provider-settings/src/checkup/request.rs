//! Checks of the sign-in request: answer, proof of the code, pushed and signed requests, scope and claims.

use chassis::findings::Finding;
use oidc::{Par, ProviderSettings, ResponseMode};

use super::UserinfoReading;
use super::document::{DiscoveryDocument, format_list};

/// The values that the code flow with PKCE (RFC 7636) needs, each with the metadata list that has to contain it.
const CODE_FLOW: [(&str, &str); 3] = [
    ("response_types_supported", "code"),
    ("grant_types_supported", "authorization_code"),
    ("code_challenge_methods_supported", "S256"),
];

/// Whether the provider has the code flow with PKCE (RFC 7636).
pub(super) fn code_flow(document: DiscoveryDocument<'_>) -> Finding {
    for (name, needed) in CODE_FLOW {
        if let Some(listed) = document.list(name).filter(|listed| !listed.contains(&needed)) {
            return Finding::problem(
                format!(
                    "the provider's {name} does not contain {needed}, only {}",
                    format_list(&listed)
                ),
                "this provider cannot be used until it offers the code flow with PKCE and S256",
            );
        }
    }
    Finding::fits("code with PKCE (S256)")
}

/// Whether the provider lists our response mode. Some support more than they list, so this is only a warning.
pub(super) fn response_mode(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let (ours, other) = match settings.response_mode {
        ResponseMode::Query => ("query", "form_post"),
        ResponseMode::FormPost => ("form_post", "query"),
    };
    // The default of an absent list (OpenID Connect Discovery 3).
    let listed = document
        .list("response_modes_supported")
        .unwrap_or_else(|| vec!["query", "fragment"]);
    if listed.contains(&ours) {
        return Finding::fits(ours);
    }
    Finding::warning(
        format!("{ours}, and the provider lists {}", format_list(&listed)),
        format!("OIDC_RESPONSE_MODE: write {other}, unless sign-in works"),
    )
}

/// Whether provider and settings agree on pushed requests (RFC 9126).
pub(super) fn pushed_requests(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let offered = document.text("pushed_authorization_request_endpoint").is_some();
    let required = document.says("require_pushed_authorization_requests") == Some(true);
    match (settings.par, offered, required) {
        (Par::Off, _, true) => Finding::problem(
            "OIDC_PAR is off, and the provider accepts only pushed requests",
            "OIDC_PAR: write auto",
        ),
        (Par::Require, false, _) => Finding::problem(
            "OIDC_PAR is require, and the provider offers no endpoint for them",
            "OIDC_PAR: write auto",
        ),
        (Par::Auto, false, true) => Finding::problem(
            "the provider accepts only pushed requests, and names no endpoint for them",
            "the provider's metadata has to name its pushed_authorization_request_endpoint",
        ),
        (Par::Off, true, false) => Finding::information("offered, and off by OIDC_PAR"),
        (_, true, _) => Finding::fits("used"),
        (_, false, _) => Finding::fits("not offered, not needed"),
    }
}

/// Whether provider and settings agree on signed requests (RFC 9101); `None` if neither uses them.
pub(super) fn signed_requests(
    document: DiscoveryDocument<'_>,
    settings: &ProviderSettings,
) -> Option<Finding> {
    let Some(keys) = &settings.credentials.request_keys else {
        return (document.says("require_signed_request_object") == Some(true)).then(|| {
            Finding::problem(
                "the provider accepts only signed requests, and ours are unsigned",
                "OIDC_SIGNED_REQUESTS: write true, and name the key in OIDC_CLIENT_KEY_FILE",
            )
        });
    };
    let Some(listed) = document.list("request_object_signing_alg_values_supported") else {
        // An absent member means `false` (OpenID Connect Discovery 3).
        return Some(match document.says("request_parameter_supported") {
            Some(true) => Finding::fits("accepted"),
            _ => Finding::problem(
                "OIDC_SIGNED_REQUESTS is true, and the provider does not accept them",
                "OIDC_SIGNED_REQUESTS: write false",
            ),
        });
    };
    let ours = keys.signing_by(&listed).algorithm().name();
    Some(signing_key("requests", ours, &listed, "OIDC_CLIENT_KEY_FILE"))
}

/// Whether the provider accepts signatures by our key. The key signs `what`; `setting` names the key's file.
pub(super) fn signing_key(what: &str, ours: &str, listed: &[&str], setting: &str) -> Finding {
    if listed.contains(&ours) {
        return Finding::fits(format!("{what} signed with {ours}"));
    }
    Finding::problem(
        format!(
            "{what} signed with {ours}, and the provider accepts {}",
            format_list(listed)
        ),
        format!(
            "{setting}: use a key of another kind: RSA signs RS256, P-256 signs ES256, Ed25519 signs EdDSA"
        ),
    )
}

/// Whether the provider lists the scopes. It need not list all that it knows (OpenID Connect Discovery 3).
pub(super) fn scope(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let ours = settings.scope.trim();
    let Some(listed) = document.list("scopes_supported") else {
        return Finding::unknown(format!("{ours}; the provider does not list the scopes it knows"));
    };
    let is_missing = |scope: &&str| !listed.contains(scope);
    let missing: Vec<&str> = ours.split_whitespace().filter(is_missing).collect();
    if missing.is_empty() {
        return Finding::fits(ours);
    }
    let missing = format_list(&missing);
    Finding::warning(
        format!("{ours}; the provider does not list {missing}"),
        format!("OIDC_SCOPE: remove {missing} unless the provider knows it without listing it"),
    )
}

/// Whether userinfo fits the setting (OpenID Connect Core 5.4); `None` if there is nothing to report.
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

/// Whether the provider reports sign-outs that start elsewhere (OpenID Connect Back-Channel Logout 1.0).
pub(super) fn back_channel_logout(document: DiscoveryDocument<'_>) -> Finding {
    match document.says("backchannel_logout_supported") {
        Some(true) => Finding::fits("offered"),
        Some(false) | None => Finding::information(
            "not offered: set SESSION_REVALIDATE_SECS, for example to 900; otherwise a session lives to its end even if its account or its session at the provider is closed",
        ),
    }
}
