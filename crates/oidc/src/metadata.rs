//! Provider metadata (OpenID Connect Discovery 1.0 sections 3 and 4).

use url::Url;

/// What of the provider's metadata this product uses. Every endpoint has passed the https rule.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Issuer, equal to the configured one byte by byte.
    pub issuer: String,
    /// Where logins go.
    pub authorization_endpoint: Url,
    /// Where codes and refresh tokens are exchanged.
    pub token_endpoint: Url,
    /// Where the signing keys are.
    pub jwks_uri: Url,
    /// Userinfo, when offered.
    pub userinfo_endpoint: Option<Url>,
    /// RP-initiated logout, when offered.
    pub end_session_endpoint: Option<Url>,
    /// Token revocation, when offered.
    pub revocation_endpoint: Option<Url>,
    /// Pushed authorization requests, when offered.
    pub pushed_authorization_request_endpoint: Option<Url>,
    /// Whether the provider accepts only pushed authorization requests.
    pub requires_pushed_requests: bool,
    /// Whether every authorization response carries `iss` (RFC 9207).
    pub iss_parameter_promised: bool,
    /// Whether S256 may be used: advertised, or no methods advertised at all.
    pub supports_s256: bool,
}
