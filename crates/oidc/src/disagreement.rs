//! Where the settings and the provider's metadata do not fit: said once, by what may be done about it, and never a reason to stop.

use crate::{AcceptedAlgorithms, ClientAuth, Metadata, ProviderSettings, ResponseMode, SigningAlgorithm};

/// Something configured that the provider does not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// Of the algorithms the provider lists for ID tokens none is accepted.
    #[error(
        "the provider lists no algorithm of ID tokens that a public key verifies: register the client there for RS256 or ES256, or name what it signs with in OIDC_ID_TOKEN_SIGNING_ALG"
    )]
    NoAlgorithm,
    /// A named algorithm is not listed.
    #[error(
        "OIDC_ID_TOKEN_SIGNING_ALG names {0}, which the provider does not list in id_token_signing_alg_values_supported: auto takes what it lists"
    )]
    AlgorithmNotListed(SigningAlgorithm),
    /// The algorithm of client assertions is not listed.
    #[error(
        "assertions of private_key_jwt are signed with {0}, which the provider does not list in token_endpoint_auth_signing_alg_values_supported: an RSA key signs with what OIDC_CLIENT_KEY_ALG names, other keys have one algorithm"
    )]
    AssertionAlgorithmNotListed(SigningAlgorithm),
    /// Answers are wanted as a form, and the provider does not list that (OAuth 2.0 Form Post Response Mode).
    #[error(
        "OIDC_RESPONSE_MODE is form_post, which the provider does not list in response_modes_supported: if sign-in ends on its error page, set query"
    )]
    FormPostNotListed,
}

impl Disagreement {
    /// All there are between these two.
    pub fn between(settings: &ProviderSettings, metadata: &Metadata) -> Vec<Self> {
        let listed = &metadata.id_token_signing_algs;
        let mut all = Vec::new();
        match &settings.signing_algs {
            auto @ AcceptedAlgorithms::Auto if auto.shared_with(listed).is_empty() => {
                all.push(Self::NoAlgorithm);
            }
            AcceptedAlgorithms::Named(named) if !listed.is_empty() => {
                let is_listed = |one: &SigningAlgorithm| listed.iter().any(|name| name == one.name());
                let others = named.iter().filter(|one| !is_listed(one));
                all.extend(others.copied().map(Self::AlgorithmNotListed));
            }
            AcceptedAlgorithms::Auto | AcceptedAlgorithms::Named(_) => {}
        }
        let listed = &metadata.token_endpoint_auth_signing_algs;
        if let ClientAuth::PrivateKeyJwt(keys) = &settings.client_auth {
            let signs = keys.signing().algorithm();
            if !listed.is_empty() && !listed.iter().any(|name| name == signs.name()) {
                all.push(Self::AssertionAlgorithmNotListed(signs));
            }
        }
        let form_post = metadata.response_modes.iter().any(|mode| mode == "form_post");
        if settings.response_mode == ResponseMode::FormPost && !form_post {
            all.push(Self::FormPostNotListed);
        }
        all
    }
}
