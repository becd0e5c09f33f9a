//! A sign-in as it will be asked for: answer, proof of the code, pushed and signed requests, scope and claims.

use chassis::findings::{Finding, Remedy};
use oidc::{Par, ProviderSettings, ResponseMode};

use super::UserinfoReading;
use super::document::{DiscoveryDocument, shown};

/// Claims that scopes promise (OpenID Connect Core 5.4): one of them says that the provider has them.
const PROMISED: [(&str, &[&str]); 4] = [
    (
        "profile",
        &[
            "name",
            "preferred_username",
            "given_name",
            "family_name",
            "nickname",
        ],
    ),
    ("email", &["email"]),
    ("address", &["address"]),
    ("phone", &["phone_number"]),
];

/// Whether the provider has the flow we speak: a code, given to whoever can prove that they asked for it (RFC 7636).
pub(super) fn code_flow(document: DiscoveryDocument<'_>) -> Finding {
    let id = "code_flow";
    let lacks = |name: &str, value: &str| {
        document
            .list(name)
            .filter(|listed| !listed.contains(&value))
            .map(|listed| shown(&listed))
    };
    let other = |found: String| {
        Finding::problem(
            id,
            found,
            Remedy::elsewhere(
                "this provider cannot be used until it offers the code flow with PKCE and S256",
            ),
        )
    };
    if let Some(listed) = lacks("response_types_supported", "code") {
        return other(format!(
            "the provider does not list the response type code, but {listed}"
        ));
    }
    if let Some(listed) = lacks("grant_types_supported", "authorization_code") {
        return other(format!(
            "the provider does not list the grant authorization_code, but {listed}"
        ));
    }
    if let Some(listed) = lacks("code_challenge_methods_supported", "S256") {
        return other(format!("the provider does not list PKCE with S256, but {listed}"));
    }
    match document.list("code_challenge_methods_supported") {
        Some(_) => Finding::fits(id, "code with PKCE (S256)"),
        None => Finding::fits(
            id,
            "code; the provider does not say whether it checks PKCE, which is sent",
        ),
    }
}

/// Whether the provider lists the way its answer comes back. Some understand more than they list, so it is no problem yet.
pub(super) fn response_mode(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let id = "response_mode";
    let ours = match settings.response_mode {
        ResponseMode::Query => "query",
        ResponseMode::FormPost => "form_post",
    };
    // What is not said is this (OpenID Connect Discovery 3).
    let listed = document
        .list("response_modes_supported")
        .unwrap_or_else(|| vec!["query", "fragment"]);
    if listed.contains(&ours) {
        return Finding::fits(id, ours);
    }
    let other = if listed.contains(&"query") {
        "query"
    } else {
        "form_post"
    };
    Finding::warning(
        id,
        format!("{ours}, and the provider lists {}", shown(&listed)),
        Remedy::set(
            "OIDC_RESPONSE_MODE",
            format!("write {other}, unless sign-in works"),
        ),
    )
}

/// Whether both agree on pushed requests (RFC 9126).
pub(super) fn pushed_requests(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let id = "pushed_requests";
    let offered = document.text("pushed_authorization_request_endpoint").is_some();
    let required = document
        .says("require_pushed_authorization_requests")
        .unwrap_or(false);
    match (settings.par, offered, required) {
        (Par::Off, _, true) => Finding::problem(
            id,
            "OIDC_PAR is off, and the provider takes pushed requests alone",
            Remedy::set("OIDC_PAR", "write auto"),
        ),
        (Par::Require, false, _) => Finding::problem(
            id,
            "OIDC_PAR is require, and the provider offers no endpoint for them",
            Remedy::set("OIDC_PAR", "write auto"),
        ),
        (Par::Auto, false, true) => Finding::problem(
            id,
            "the provider takes pushed requests alone, and names no endpoint for them",
            Remedy::elsewhere(
                "the provider's metadata has to name its pushed_authorization_request_endpoint",
            ),
        ),
        (Par::Off, true, false) => Finding::information(id, "offered, and off by OIDC_PAR"),
        (_, true, _) => Finding::fits(id, "used"),
        (_, false, _) => Finding::fits(id, "not offered, not needed"),
    }
}

/// Whether both agree on signed requests (RFC 9101); nothing where neither speaks of them.
pub(super) fn signed_requests(
    document: DiscoveryDocument<'_>,
    settings: &ProviderSettings,
) -> Option<Finding> {
    let id = "signed_requests";
    let required = document.says("require_signed_request_object").unwrap_or(false);
    let Some(keys) = &settings.request_keys else {
        return required.then(|| {
            Finding::problem(
                id,
                "the provider takes signed requests alone, and ours are not",
                Remedy::set(
                    "OIDC_SIGNED_REQUESTS",
                    "write true, and name the key in OIDC_CLIENT_KEY_FILE",
                ),
            )
        });
    };
    let listed = document.list("request_object_signing_alg_values_supported");
    let ours = keys
        .signing_by(listed.as_deref().unwrap_or_default())
        .algorithm()
        .name();
    Some(match listed {
        Some(listed) if !listed.contains(&ours) => Finding::problem(
            id,
            format!(
                "ours are signed with {ours}, and the provider takes {}",
                shown(&listed)
            ),
            Remedy::set(
                "OIDC_CLIENT_KEY_FILE",
                "use a key of another kind: RSA signs RS256, P-256 signs ES256, Ed25519 signs EdDSA",
            ),
        ),
        // What is not said is "no" (OpenID Connect Discovery 3).
        None if document.says("request_parameter_supported") != Some(true) => Finding::problem(
            id,
            "OIDC_SIGNED_REQUESTS is true, and the provider does not take them",
            Remedy::set("OIDC_SIGNED_REQUESTS", "write false"),
        ),
        _ => Finding::fits(id, ours),
    })
}

/// Whether the scope is among what the provider lists. It need not list all it knows (OpenID Connect Discovery 3).
pub(super) fn scope(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let id = "scope";
    let ours: Vec<&str> = settings
        .scope
        .split(' ')
        .filter(|scope| !scope.is_empty())
        .collect();
    let Some(listed) = document.list("scopes_supported") else {
        return Finding::unknown(
            id,
            format!("{}; the provider does not say which it knows", ours.join(" ")),
        );
    };
    let missing: Vec<&str> = ours
        .iter()
        .copied()
        .filter(|scope| !listed.contains(scope))
        .collect();
    if missing.is_empty() {
        return Finding::fits(id, ours.join(" "));
    }
    Finding::warning(
        id,
        format!(
            "{}, of which the provider does not list {}",
            ours.join(" "),
            shown(&missing)
        ),
        Remedy::set(
            "OIDC_SCOPE",
            format!(
                "leave out {} unless the provider knows it and only does not list it",
                shown(&missing)
            ),
        ),
    )
}

/// Whether the provider lists what the scopes promise.
pub(super) fn claims(document: DiscoveryDocument<'_>, settings: &ProviderSettings) -> Finding {
    let id = "claims";
    let Some(listed) = document.list("claims_supported") else {
        return Finding::unknown(id, "the provider does not say which it has");
    };
    let asked = |scope: &str| settings.scope.split(' ').any(|ours| ours == scope);
    let missing: Vec<&str> = PROMISED
        .iter()
        .filter(|(scope, claims)| asked(scope) && !claims.iter().any(|claim| listed.contains(claim)))
        .map(|(scope, _)| *scope)
        .collect();
    if missing.is_empty() {
        return Finding::fits(id, "what the scope promises is listed");
    }
    // The list need not be whole (OpenID Connect Discovery 3): no reason to warn at each start.
    Finding::unknown(
        id,
        format!(
            "the provider lists none of what the scope {} promises, and need not list all it has",
            shown(&missing)
        ),
    )
}

/// Where names and addresses of people come from (OpenID Connect Core 5.4).
pub(super) fn userinfo(document: DiscoveryDocument<'_>, reading: UserinfoReading) -> Finding {
    let id = "profile_claims";
    let setting = "EDGE_USERINFO_AT_LOGIN";
    let offered = document.text("userinfo_endpoint").is_some();
    match (offered, reading) {
        (true, UserinfoReading::Auto) => Finding::fits(
            id,
            "from the ID token, and from the userinfo endpoint what that lacks",
        ),
        (true, UserinfoReading::Always) => Finding::fits(id, "from the ID token and the userinfo endpoint"),
        (true, UserinfoReading::Never) => Finding::information(
            id,
            "from the ID token alone; many providers give name and address at the userinfo endpoint only",
        )
        .with(Remedy::set(setting, "write auto if profiles are empty")),
        (false, UserinfoReading::Always) => Finding::problem(
            id,
            "EDGE_USERINFO_AT_LOGIN is always, and the provider has no userinfo endpoint",
            Remedy::set(setting, "write auto"),
        ),
        (false, UserinfoReading::Auto | UserinfoReading::Never) => {
            Finding::fits(id, "from the ID token; there is no userinfo endpoint")
        }
    }
}

/// Whether the provider tells of sign-outs elsewhere (OpenID Connect Back-Channel Logout 1.0).
pub(super) fn back_channel_logout(document: DiscoveryDocument<'_>) -> Finding {
    let id = "back_channel_logout";
    match document.says("backchannel_logout_supported") {
        Some(true) => Finding::fits(id, "offered"),
        Some(false) | None => Finding::information(
            id,
            "not offered: set SESSION_REVALIDATE_SECS (900, say), or a session lives on to its end after its account or its session at the provider was closed",
        ),
    }
}
