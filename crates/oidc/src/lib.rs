//! The relying-party half of OpenID Connect: every request this product sends to an identity provider and
//! every check of its responses.
//!
//! Invariants
//! - No HTTP server, no session, no clock: callers pass the time as `now`, in seconds since the Unix epoch.
//! - Data from the provider counts only after it is bounded, parsed strictly and, if signed, verified.
//! - Only `response_type=code` with PKCE (S256) exists; there is no switch for another flow.
//! - Tokens, codes, secrets and verifiers appear in no `Debug` output, error or log line.
//!
//! The `openidconnect` crate makes browser requests, nonces and secrets; `aws-lc-rs` verifies signatures. Code
//! here covers what the crate lacks or handles too strictly (`docs/decisions/openidconnect.md`).

mod client;
mod error;
#[cfg(test)]
mod fuzz_tests;
mod grants;
mod json;
mod logout;
mod provider;
mod random;
mod relying_party;
mod settings;
#[cfg(test)]
mod shown_tests;
mod tokens;

pub use client::algorithm::{SigningAlgorithm, UnknownAlgorithm};
pub use client::assertion_file::{AssertionFileError, AssertionType};
pub use client::client_auth::{ClientAuth, ClientProofError};
pub use client::client_key::{ClientKey, ClientKeys, SigningFailed};
pub use client::dpop::DpopKey;
pub use error::oauth_error::OAuthError;
pub use error::{
    AccessTokenError, BuildError, CrossAppError, GrantError, GroupsError, IdTokenError, IssuerParameterError,
    Outage, ProviderError, UserinfoError,
};
pub use grants::authorization::{AuthorizationRequest, PROTOCOL_PARAMETERS};
pub use grants::revocation::{RevocationResult, TokenHint};
pub use json::{UniqueMembers, numeric_date};
pub use logout::end_session::EndSessionRequest;
pub use logout::logout_template::{LogoutTemplate, LogoutTemplateError};
pub use logout::logout_token::LogoutToken;
pub use openidconnect::{ClientSecret, RedirectUrl};
pub use provider::http_client::client_builder;
pub use provider::issuer_parameter::check_issuer_parameter;
pub use provider::metadata::{DISCOVERY_DOCUMENT, Metadata};
pub use provider::probe::{AuthorizationProbe, ClientVerdict, DiscoveryProbe, KeySetProbe};
pub use relying_party::RelyingParty;
pub use settings::accepted_algorithms::AcceptedAlgorithms;
pub use settings::access_token_shape::{ACCESS_TOKEN_SHAPES, AccessTokenShape};
pub use settings::endpoint::endpoint_is_secure;
pub use settings::observer::RequestObserver;
pub use settings::proxy::ForwardProxy;
pub use settings::tenants::{AllowedTenants, TenantRule};
pub use settings::token_target::{ApiTokenGrant, TokenTarget, is_resource};
pub use settings::{
    Credentials, DEFAULT_TOKEN_LIFETIME_SECS, IssuerUse, Par, ProviderSettings, ResponseMode,
};
pub use tokens::access_token::{TokenBinding, VerifiedAccessToken};
pub use tokens::claims::{PROTOCOL_CLAIMS, user_claim};
pub use tokens::device_proof::{DeviceProof, unverified_challenge, verify_refresh, verify_registration};
pub use tokens::dpop_proof::{ExpectedProof, PROOF_WINDOW_SECS, VerifiedProof, verify_proof};
pub use tokens::id_token::{ExpectedIdToken, ExpectedRefreshedIdToken, IdToken};
pub use tokens::jws::{MAX_TOKEN_BYTES, UnverifiedToken, unverified_issuer};
pub use tokens::proof::ProofError;
pub use tokens::token_set::{RefreshedTokens, TokenSet};
