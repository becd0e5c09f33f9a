//! The relying-party half of OpenID Connect: every request this product sends to an identity provider and every
//! check of its responses.
//!
//! Invariants
//! - No HTTP server, no session, no clock: wall time comes in as `now`, in seconds since the Unix epoch.
//! - Nothing the provider sends is believed before it is bounded, parsed strictly and, where signed, verified.
//! - Only `response_type=code` with PKCE (S256) exists; there is no switch for another flow.
//! - Tokens, codes, secrets and verifiers appear in no `Debug` output, error or log line.
//!
//! Key sets, the requests a browser carries, nonces and secrets are those of the `openidconnect` crate; `ring` verifies all
//! signatures. What the crate leaves out or refuses too much of is here, and why is in `docs/decisions/openidconnect.md`.

mod accepted_algorithms;
mod access;
mod access_token;
mod access_token_shape;
mod algorithm;
mod authorization;
mod cached;
mod claims;
mod client_auth;
mod client_key;
mod device_proof;
mod dpop;
mod dpop_proof;
mod end_session;
mod endpoint;
mod error;
#[cfg(test)]
mod fuzz_tests;
mod grant;
mod http_client;
mod id_token;
mod introspection;
mod issuer_keys;
mod issuer_parameter;
mod issuer_settings;
mod json;
mod jws;
mod key_refetch;
mod key_set;
mod logout_template;
mod logout_token;
mod metadata;
mod oauth_error;
mod observer;
mod probe;
#[cfg(test)]
mod proof_key_tests;
mod provider_cache;
mod provider_key;
mod proxy;
mod random;
mod relying_party;
mod request_object;
mod revocation;
mod settings;
#[cfg(test)]
mod shown_tests;
mod span;
mod tenants;
mod token_set;
mod token_target;
mod userinfo;

pub use accepted_algorithms::AcceptedAlgorithms;
pub use access_token::{TokenBinding, VerifiedAccessToken};
pub use access_token_shape::{ACCESS_TOKEN_SHAPES, AccessTokenShape};
pub use algorithm::{SigningAlgorithm, UnknownAlgorithm};
pub use authorization::{AuthorizationRequest, PROTOCOL_PARAMETERS};
pub use claims::{PROTOCOL_CLAIMS, user_claim};
pub use client_auth::ClientAuth;
pub use client_key::{ClientKey, ClientKeys, SigningFailed};
pub use device_proof::{
    DeviceProof, DeviceProofError, unverified_challenge, verify_refresh, verify_registration,
};
pub use dpop::DpopKey;
pub use dpop_proof::{DpopProofError, ExpectedProof, PROOF_WINDOW_SECS, VerifiedProof, verify_proof};
pub use end_session::EndSessionRequest;
pub use endpoint::endpoint_is_secure;
pub use error::{
    AccessTokenError, BuildError, GroupsError, IdTokenError, IssuerParameterError, LogoutTokenError, Outage,
    ProviderError, RefreshError, TokenError, UserinfoError,
};
pub use http_client::client_builder;
pub use id_token::{Expected, ExpectedOfRefresh, IdToken};
pub use issuer_keys::{IssuerDocument, IssuerKeys};
pub use issuer_parameter::check_issuer_parameter;
pub use json::numeric_date;
pub use jws::{MAX_TOKEN_BYTES, UnverifiedToken, unverified_issuer};
pub use logout_template::{LogoutTemplate, LogoutTemplateError};
pub use logout_token::LogoutToken;
pub use metadata::{DISCOVERY_DOCUMENT, Metadata};
pub use oauth_error::OAuthError;
pub use observer::{RequestObserver, RequestOutcome};
pub use openidconnect::{ClientSecret, RedirectUrl};
pub use probe::{AuthorizationProbe, ClientVerdict, DiscoveryProbe, KeySetProbe};
pub use proxy::{ForwardProxy, NoHosts, parse_network};
pub use relying_party::RelyingParty;
pub use revocation::{Revoked, TokenHint};
pub use settings::{Credentials, DEFAULT_TOKEN_LIFETIME_SECS, Par, ProviderSettings, ResponseMode};
pub use tenants::{AllowedTenants, TenantRule};
pub use token_set::{RefreshedTokens, TokenSet};
pub use token_target::{ApiTokenGrant, TokenTarget, is_resource};
