//! What the provider makes of this client: its secret or key, its redirect URI, its requests.

use chassis::findings::{Finding, chain};
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
    let method = settings.credentials.auth.method();
    let refused = match verdict {
        Ok(ClientVerdict::Believed) => {
            return Finding::fits(format!("the provider believes who we are ({method})"));
        }
        Ok(ClientVerdict::NotBelieved(error)) => error.code(),
        Err(ProviderError::ClientRefused(_, 401, _)) => "status 401",
        Ok(ClientVerdict::NotAllowed(error)) => {
            return Finding::problem(
                format!(
                    "the provider knows the client, which may not do this: {}",
                    error.code()
                ),
                "allow the client the authorization code flow and refresh tokens, in the provider's console",
            );
        }
        Ok(ClientVerdict::Unclear(error)) => {
            return Finding::unknown(format!(
                "the token endpoint refused a made-up grant for another reason: {}; its log says more",
                error.code()
            ));
        }
        Err(error) => return Finding::unknown(chain(error)),
    };
    let advice = match settings.credentials.auth {
        ClientAuth::SecretByMetadata(_) | ClientAuth::SecretBasic(_) | ClientAuth::SecretPost(_) => {
            "OIDC_CLIENT_SECRET: copy the client's secret again"
        }
        ClientAuth::PrivateKeyJwt(_) => {
            "OIDC_CLIENT_KEY_FILE: register the public half of the first key: the client JWKS URL, which the provider has to reach, or its content; the clocks have to agree"
        }
        ClientAuth::TlsClientAuth { .. } => {
            "OIDC_CLIENT_CERT_FILE: register the certificate's subject (tls_client_auth_subject_dn)"
        }
        ClientAuth::None => "OIDC_CLIENT_ID: a client with a secret has to show it: OIDC_CLIENT_AUTH_METHOD",
    };
    Finding::problem(
        format!("the provider does not believe who we are ({method}): {refused}"),
        format!(
            "{advice}; see that OIDC_CLIENT_ID {:?} is right",
            settings.client_id
        ),
    )
}

/// Whether the provider takes the request of a sign-in and gives its answer to our redirect URI. `is_alike` says that it answers
/// in the same way for an address that is not registered.
pub(super) fn sign_in_request(
    probe: &Result<AuthorizationProbe, ProviderError>,
    redirect_uri: &str,
    is_believed: bool,
    is_alike: bool,
) -> Finding {
    let register = || {
        format!(
            "register the redirect URI {redirect_uri} for this client at the provider, letter by letter; if it is, see that OIDC_CLIENT_ID is right, or what the provider's log says"
        )
    };
    let refused = |error: &OAuthError, advice: String| {
        Finding::problem(format!("the provider refuses it: {}", described(error)), advice)
    };
    let returned = match probe {
        Ok(AuthorizationProbe::Returned(returned)) => returned.as_ref(),
        Ok(AuthorizationProbe::Page(status @ 400..500)) => {
            return Finding::problem(
                format!(
                    "the provider shows an error page (status {status}), as for a redirect URI or a client it does not know"
                ),
                register(),
            );
        }
        Ok(AuthorizationProbe::Page(..400) | AuthorizationProbe::Elsewhere) if is_alike => {
            return Finding::warning(
                "the provider answers as it does for an address that is not registered: it does not say whether ours is",
                register(),
            );
        }
        Ok(AuthorizationProbe::Page(_) | AuthorizationProbe::Elsewhere) => {
            return Finding::unknown(
                "the provider shows a page, though it was asked to show none: sign in once to see",
            );
        }
        // Told by the credentials already.
        Err(ProviderError::Refused(_, refusal)) if refusal.is_about_client() && !is_believed => {
            return Finding::unknown("not judged: the provider does not believe who we are");
        }
        Err(ProviderError::Refused(_, refusal)) => {
            return refused(refusal, advice(refusal).map_or_else(register, str::to_owned));
        }
        Err(error) => return Finding::unknown(chain(error)),
    };
    match returned {
        // It arrived at the redirect URI, which is registered, so a mended address changes nothing.
        Some(error) if !NOBODY_THERE.contains(&error.code()) => match advice(error) {
            Some(advice) => refused(error, advice.to_owned()),
            None => Finding::unknown(format!(
                "the redirect URI is registered; a request in which nobody may be asked is refused: {}; sign in once to see",
                described(error)
            )),
        },
        _ => Finding::fits("taken; the redirect URI is registered"),
    }
}

/// The code of an error, and what the provider says to it.
fn described(error: &OAuthError) -> String {
    let description = error.description().map(|text| format!(" ({text})"));
    format!("{}{}", error.code(), description.unwrap_or_default())
}

/// What mends a request that is refused with this code, if the code says so.
fn advice(error: &OAuthError) -> Option<&'static str> {
    Some(match error.code() {
        "invalid_scope" => {
            "OIDC_SCOPE: leave out what the client may not ask for, or allow it at the provider"
        }
        "invalid_target" => "OIDC_RESOURCE: leave out what the provider does not know, or register it there",
        "unauthorized_client" => "allow the client the authorization code flow, in the provider's console",
        "request_not_supported" | "invalid_request_object" => {
            "OIDC_SIGNED_REQUESTS: write false, or register the key of OIDC_CLIENT_KEY_FILE"
        }
        "invalid_dpop_proof" => "OIDC_DPOP: write off, or see that the clocks agree",
        _ => return None,
    })
}

/// Whether the provider lets a browser land where people are to land after they signed out.
pub(super) fn sign_out_request(status: &Result<Option<u16>, ProviderError>, landing: &str) -> Finding {
    match status {
        Ok(None) => Finding::warning(
            "the provider names no end_session_endpoint: people are signed out here and stay signed in there",
            "EDGE_IDP_LOGOUT: write off if that is meant, or auth0 for a tenant of Auth0 without it",
        ),
        Ok(Some(status @ 400..500)) => Finding::warning(
            format!(
                "the provider shows an error page (status {status}), as for a post-logout redirect URI it does not know"
            ),
            format!(
                "register the post-logout redirect URI {landing} for this client at the provider, letter by letter; some providers refuse every sign-out without a hint, as this one was, so sign out once to see"
            ),
        ),
        Ok(Some(status @ 500..)) => Finding::unknown(format!("status {status}")),
        Ok(Some(_)) => Finding::fits("taken"),
        Err(error) => Finding::unknown(chain(error)),
    }
}
