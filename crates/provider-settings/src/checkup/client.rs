//! Whether the provider accepts this client: its secret or key, its redirect URI, its requests.

use chassis::findings::{Finding, chain};
use oidc::{AuthorizationProbe, ClientAuth, ClientVerdict, OAuthError, ProviderError, ProviderSettings};

/// Answers to an accepted request without user interaction (OpenID Connect Core, section 3.1.2.6).
const NOBODY_THERE: [&str; 4] = [
    "login_required",
    "interaction_required",
    "consent_required",
    "account_selection_required",
];

/// Whether the provider accepts our credentials.
pub(super) fn credentials(
    settings: &ProviderSettings,
    verdict: &Result<ClientVerdict, ProviderError>,
) -> Finding {
    let method = settings.credentials.auth.method();
    let refused = match verdict {
        Ok(ClientVerdict::Believed) => {
            return Finding::fits(format!(
                "the provider accepts the client's credentials ({method})"
            ));
        }
        Ok(ClientVerdict::NotBelieved(error)) => error.code(),
        Err(ProviderError::ClientRefused(_, 401, _)) => "status 401",
        Ok(ClientVerdict::NotAllowed(error)) => {
            return Finding::problem(
                format!(
                    "the provider accepts the credentials, but does not allow the client this request: {}",
                    error.code()
                ),
                "allow the client the authorization code flow and refresh tokens, in the provider's console",
            );
        }
        Ok(ClientVerdict::Unclear(error)) => {
            return Finding::unknown(format!(
                "the token endpoint rejected a made-up grant for another reason: {}. See the provider's log",
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
            "OIDC_CLIENT_KEY_FILE: register the first public key: the client JWKS URL, which the provider has to reach, or its content; check that the clocks agree"
        }
        ClientAuth::AssertionFile { .. } => {
            "OIDC_CLIENT_ASSERTION_FILE: let the provider trust the issuer, subject and audience of this token"
        }
        ClientAuth::TlsClientAuth { .. } => {
            "OIDC_CLIENT_CERT_FILE: register the certificate's subject (tls_client_auth_subject_dn)"
        }
        ClientAuth::None => {
            "OIDC_CLIENT_ID: a client with a secret has to send it: set OIDC_CLIENT_AUTH_METHOD"
        }
    };
    Finding::problem(
        format!("the provider rejects the client's credentials ({method}): {refused}"),
        format!("{advice}; check OIDC_CLIENT_ID {:?}", settings.client_id),
    )
}

/// Whether the provider accepts a sign-in request and answers to our redirect URI. `is_alike` says whether the
/// provider gives the same answer for an unregistered address.
pub(super) fn sign_in_request(
    probe: &Result<AuthorizationProbe, ProviderError>,
    redirect_uri: &str,
    is_believed: bool,
    is_alike: bool,
) -> Finding {
    let register = || {
        format!(
            "register the redirect URI {redirect_uri} for this client at the provider, letter by letter; if it is registered, check OIDC_CLIENT_ID and the provider's log"
        )
    };
    let refused = |error: &OAuthError, advice: String| {
        Finding::problem(format!("the provider rejects it: {}", described(error)), advice)
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
                "the provider answers the same for an unregistered address, so its answer does not show whether ours is registered",
                register(),
            );
        }
        Ok(AuthorizationProbe::Page(_) | AuthorizationProbe::Elsewhere) => {
            return Finding::unknown(
                "the provider shows a page, although the request allows none: sign in once to check",
            );
        }
        // The check of the credentials reports this already.
        Err(ProviderError::Refused(_, refusal)) if refusal.is_about_client() && !is_believed => {
            return Finding::unknown("not checked: the provider rejects the client's credentials");
        }
        Err(ProviderError::Refused(_, refusal)) => {
            return refused(refusal, advice(refusal).map_or_else(register, str::to_owned));
        }
        Err(error) => return Finding::unknown(chain(error)),
    };
    match returned {
        // The answer arrived at the redirect URI, so that is registered, and another address would not help.
        Some(error) if !NOBODY_THERE.contains(&error.code()) => match advice(error) {
            Some(advice) => refused(error, advice.to_owned()),
            None => Finding::unknown(format!(
                "the redirect URI is registered; the provider rejects a request without user interaction: {}. Sign in once to check",
                described(error)
            )),
        },
        _ => Finding::fits("accepted; the redirect URI is registered"),
    }
}

/// The code of an error, and the provider's description.
fn described(error: &OAuthError) -> String {
    let description = error.description().map(|text| format!(" ({text})"));
    format!("{}{}", error.code(), description.unwrap_or_default())
}

/// How to fix a request that the provider rejects with this code, if the code shows it.
fn advice(error: &OAuthError) -> Option<&'static str> {
    Some(match error.code() {
        "invalid_scope" => "OIDC_SCOPE: remove what the client may not request, or allow it at the provider",
        "invalid_target" => "OIDC_RESOURCE: remove what the provider does not know, or register it there",
        "unauthorized_client" => "allow the client the authorization code flow, in the provider's console",
        "request_not_supported" | "invalid_request_object" => {
            "OIDC_SIGNED_REQUESTS: write false, or register the key of OIDC_CLIENT_KEY_FILE"
        }
        "invalid_dpop_proof" => "OIDC_DPOP: write off, or check that the clocks agree",
        _ => return None,
    })
}

/// Whether the provider accepts the address where users land after sign-out.
pub(super) fn sign_out_request(status: &Result<Option<u16>, ProviderError>, landing: &str) -> Finding {
    match status {
        Ok(None) => Finding::warning(
            "the provider names no end_session_endpoint: users are signed out here, but stay signed in there",
            "EDGE_IDP_LOGOUT: write off if that is intended, or auth0 for an Auth0 tenant without the endpoint",
        ),
        Ok(Some(status @ 400..500)) => Finding::warning(
            format!(
                "the provider shows an error page (status {status}), as for a post-logout redirect URI it does not know"
            ),
            format!(
                "register the post-logout redirect URI {landing} for this client at the provider, letter by letter; some providers reject every sign-out without a hint, like this one, so sign out once to check"
            ),
        ),
        Ok(Some(status @ 500..)) => Finding::unknown(format!("status {status}")),
        Ok(Some(_)) => Finding::fits("accepted"),
        Err(error) => Finding::unknown(chain(error)),
    }
}
