//! What the provider makes of this client: its secret or key, its redirect URI, its requests.

use chassis::findings::{Finding, Remedy, chain};
use oidc::{AuthorizationProbe, ClientAuth, ClientVerdict, OAuthError, ProviderError, ProviderSettings};

/// What a provider answers to a request in which it may not ask anybody anything (OpenID Connect Core 3.1.2.6): it took it.
const NOBODY_THERE: [&str; 4] = [
    "login_required",
    "interaction_required",
    "consent_required",
    "account_selection_required",
];

/// Whether the provider believes who we are.
pub(super) fn credentials(
    settings: &ProviderSettings,
    verdict: &Result<ClientVerdict, ProviderError>,
) -> Finding {
    let id = "client_credentials";
    let method = settings.client_auth.method();
    let code = |error: &OAuthError| error.code().to_owned();
    match verdict {
        Ok(ClientVerdict::Believed) => Finding::fits(
            id,
            match settings.client_auth {
                ClientAuth::None => "the provider knows the client".to_owned(),
                _ => format!("the provider believes who we are ({method})"),
            },
        ),
        Ok(ClientVerdict::NotBelieved(error)) => {
            let found = format!(
                "the provider does not believe who we are ({method}): {}",
                code(error)
            );
            Finding::problem(id, found, mend(settings))
        }
        Err(ProviderError::ClientRefused { status: 401, .. }) => {
            let found = format!("the provider does not believe who we are ({method}): status 401");
            Finding::problem(id, found, mend(settings))
        }
        Ok(ClientVerdict::NotAllowed(error)) => Finding::problem(
            id,
            format!(
                "the provider knows the client, which may not do this: {}",
                code(error)
            ),
            Remedy::elsewhere(
                "allow the client the authorization code flow and refresh tokens, in the provider's console",
            ),
        ),
        Ok(ClientVerdict::Unclear(error)) => Finding::unknown(
            id,
            format!(
                "the token endpoint refused a made-up grant for another reason: {}; its log says more",
                code(error)
            ),
        ),
        Err(error) => Finding::unknown(id, chain(error)),
    }
}

/// What to look at when the provider does not believe who we are.
fn mend(settings: &ProviderSettings) -> Remedy {
    match settings.client_auth {
        ClientAuth::SecretByMetadata(_) | ClientAuth::SecretBasic(_) | ClientAuth::SecretPost(_) => {
            Remedy::set(
                "OIDC_CLIENT_SECRET",
                format!(
                    "copy the secret of the client {:?} again; see that OIDC_CLIENT_ID is right",
                    settings.client_id
                ),
            )
        }
        ClientAuth::PrivateKeyJwt(_) => Remedy::set(
            "OIDC_CLIENT_KEY_FILE",
            "register the public half of the first key: the client JWKS URL, which the provider has to reach, or its content; the clocks have to agree, and OIDC_CLIENT_ID has to be right",
        ),
        ClientAuth::TlsClientAuth { .. } => Remedy::set(
            "OIDC_CLIENT_CERT_FILE",
            "register the certificate's subject (tls_client_auth_subject_dn); see that OIDC_CLIENT_ID is right",
        ),
        ClientAuth::None => Remedy::set(
            "OIDC_CLIENT_ID",
            "see that it is right; a client with a secret has to show it: OIDC_CLIENT_AUTH_METHOD",
        ),
    }
}

/// Whether the provider takes the request of a sign-in and gives its answer to our redirect URI. `is_alike` says that it answers
/// in the same way for an address that is not registered.
pub(super) fn sign_in_request(
    probe: &Result<AuthorizationProbe, ProviderError>,
    redirect_uri: &str,
    is_believed: bool,
    is_alike: bool,
) -> Finding {
    let id = "sign_in_request";
    match probe {
        Ok(AuthorizationProbe::Returned(None)) => Finding::fits(id, "taken; the redirect URI is registered"),
        Ok(AuthorizationProbe::Returned(Some(error))) if NOBODY_THERE.contains(&error.code()) => {
            Finding::fits(id, "taken; the redirect URI is registered")
        }
        // It arrived at the redirect URI, which is registered, so a mended address changes nothing.
        Ok(AuthorizationProbe::Returned(Some(error))) => match remedy(error) {
            Some(remedy) => refused(id, error, remedy),
            None => Finding::unknown(
                id,
                format!(
                    "the redirect URI is registered; a request in which nobody may be asked is refused: {}; sign in once to see",
                    described(error)
                ),
            ),
        },
        Ok(AuthorizationProbe::Page(status @ 400..500)) => Finding::problem(
            id,
            format!(
                "the provider shows an error page (status {status}), as for a redirect URI or a client it does not know"
            ),
            register(redirect_uri),
        ),
        Ok(AuthorizationProbe::Page(..400) | AuthorizationProbe::Elsewhere) if is_alike => Finding::warning(
            id,
            "the provider answers as it does for an address that is not registered: it does not say whether ours is",
            register(redirect_uri),
        ),
        Ok(AuthorizationProbe::Page(_) | AuthorizationProbe::Elsewhere) => Finding::unknown(
            id,
            "the provider shows a page, though it was asked to show none: sign in once to see",
        ),
        // Told by the credentials already.
        Err(ProviderError::Refused { refusal, .. }) if refusal.is_about_client() && !is_believed => {
            Finding::unknown(id, "not judged: the provider does not believe who we are")
        }
        Err(ProviderError::Refused { refusal, .. }) => {
            let remedy = remedy(refusal).unwrap_or_else(|| register(redirect_uri));
            refused(id, refusal, remedy)
        }
        Err(error) => Finding::unknown(id, chain(error)),
    }
}

fn register(redirect_uri: &str) -> Remedy {
    Remedy::elsewhere(format!(
        "register the redirect URI {redirect_uri} for this client at the provider, letter by letter; if it is, see that OIDC_CLIENT_ID is right, or what the provider's log says"
    ))
}

fn refused(id: &'static str, error: &OAuthError, remedy: Remedy) -> Finding {
    Finding::problem(
        id,
        format!("the provider refuses it: {}", described(error)),
        remedy,
    )
}

/// The code of an error, and what the provider says to it.
fn described(error: &OAuthError) -> String {
    let description = error.description().map(|text| format!(" ({text})"));
    format!("{}{}", error.code(), description.unwrap_or_default())
}

/// What mends a request that is refused with this code, if the code says so.
fn remedy(error: &OAuthError) -> Option<Remedy> {
    Some(match error.code() {
        "invalid_scope" => Remedy::set(
            "OIDC_SCOPE",
            "leave out what the client may not ask for, or allow it at the provider",
        ),
        "invalid_target" => Remedy::set(
            "OIDC_RESOURCE",
            "leave out what the provider does not know, or register it there",
        ),
        "unauthorized_client" => {
            Remedy::elsewhere("allow the client the authorization code flow, in the provider's console")
        }
        "request_not_supported" | "invalid_request_object" => Remedy::set(
            "OIDC_SIGNED_REQUESTS",
            "write false, or register the key of OIDC_CLIENT_KEY_FILE",
        ),
        "invalid_dpop_proof" => Remedy::set("OIDC_DPOP", "write off, or see that the clocks agree"),
        _ => return None,
    })
}

/// Whether the provider lets a browser land where people are to land after they signed out.
pub(super) fn sign_out_request(status: &Result<Option<u16>, ProviderError>, landing: &str) -> Finding {
    let id = "sign_out_request";
    match status {
        Ok(None) => Finding::warning(
            id,
            "the provider names no end_session_endpoint: people are signed out here and stay signed in there",
            Remedy::set(
                "EDGE_IDP_LOGOUT",
                "write off if that is meant, or auth0 for a tenant of Auth0 without it",
            ),
        ),
        Ok(Some(status @ 400..500)) => Finding::warning(
            id,
            format!(
                "the provider shows an error page (status {status}), as for a post-logout redirect URI it does not know"
            ),
            Remedy::elsewhere(format!(
                "register the post-logout redirect URI {landing} for this client at the provider, letter by letter; some providers refuse every sign-out without a hint, as this one was, so sign out once to see"
            )),
        ),
        Ok(Some(status @ 500..)) => Finding::unknown(id, format!("status {status}")),
        Ok(Some(_)) => Finding::fits(id, "taken"),
        Err(error) => Finding::unknown(id, chain(error)),
    }
}
