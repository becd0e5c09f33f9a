//! Provider metadata (OpenID Connect Discovery 1.0 sections 3 and 4).

use openidconnect::{AuthUrl, EndSessionUrl};
use serde_json::{Map, Value};
use url::Url;

use crate::ProviderError;
use crate::settings::endpoint::is_usable_of;

/// The name of the metadata document in errors and metrics.
pub const DISCOVERY_DOCUMENT: &str = "discovery document";

/// Google's issuer; its metadata lack `prompt_values_supported`.
const GOOGLE: &str = "https://accounts.google.com";

/// The document's path below an issuer (Discovery 4).
pub(crate) const OPENID_CONFIGURATION: &str = "/.well-known/openid-configuration";

/// The provider metadata that this product uses. All endpoints obey the https rule.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Issuer, equal to the configured one byte by byte.
    pub issuer: String,
    /// The authorization endpoint.
    pub authorization_endpoint: AuthUrl,
    /// The token endpoint, for codes and refresh tokens.
    pub token_endpoint: Url,
    /// The key set.
    pub jwks_uri: Url,
    /// Userinfo, when offered.
    pub userinfo_endpoint: Option<Url>,
    /// RP-initiated logout, when offered.
    pub end_session_endpoint: Option<EndSessionUrl>,
    /// Token revocation, when offered.
    pub revocation_endpoint: Option<Url>,
    /// Token introspection, when offered at an allowed address.
    pub introspection_endpoint: Option<Url>,
    /// Pushed authorization requests, when offered.
    pub pushed_authorization_request_endpoint: Option<Url>,
    /// `id_token_signing_alg_values_supported`; empty if absent.
    pub id_token_signing_algs: Vec<String>,
    /// `userinfo_signing_alg_values_supported`; empty if absent.
    pub userinfo_signing_algs: Vec<String>,
    /// `token_endpoint_auth_methods_supported`; empty if absent.
    pub token_endpoint_auth_methods: Vec<String>,
    /// `token_endpoint_auth_signing_alg_values_supported`; empty if absent.
    pub token_endpoint_auth_signing_algs: Vec<String>,
    /// `request_object_signing_alg_values_supported`; empty if absent.
    pub(crate) request_object_signing_algs: Vec<String>,
    /// `acr_values_supported`; empty if absent.
    pub acr_values: Vec<String>,
    /// `response_modes_supported`; empty if absent.
    pub response_modes: Vec<String>,
    /// `prompt_values_supported` (Initiating User Registration 1.0, section 4.1); empty if absent.
    pub(crate) prompts: Vec<String>,
    /// Whether the provider accepts only pushed authorization requests.
    pub(crate) requires_pushed_requests: bool,
    /// Whether every authorization response carries `iss` (RFC 9207).
    pub(crate) iss_parameter_promised: bool,
    /// Whether S256 may be used: it is advertised, or no methods are.
    pub(crate) supports_s256: bool,
}

impl Metadata {
    /// Validates a discovery document: exact issuer, https rule for all endpoints. With `mutual_tls`,
    /// endpoints for clients with a certificate take precedence (RFC 8705 section 5).
    ///
    /// # Errors
    /// The document is of another issuer, or an endpoint is missing or breaks the https rule.
    pub fn from_document(
        document: &Map<String, Value>,
        issuer: &str,
        mutual_tls: bool,
    ) -> Result<Self, ProviderError> {
        if document.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err(ProviderError::IssuerMismatch);
        }
        // Some providers write an empty text or list for missing features.
        let member = |name: &str| document.get(name).filter(|value| !is_empty(value));
        let optional = |endpoint: &'static str| -> Result<Option<Url>, ProviderError> {
            let alias = document
                .get("mtls_endpoint_aliases")
                .and_then(|aliases| aliases.get(endpoint).filter(|value| !is_empty(value)));
            let Some(value) = alias.filter(|_| mutual_tls).or_else(|| member(endpoint)) else {
                return Ok(None);
            };
            let url = value.as_str().and_then(|text| Url::parse(text).ok());
            let url = url.ok_or(ProviderError::Malformed(DISCOVERY_DOCUMENT))?;
            if !is_usable_of(issuer, &url) {
                return Err(ProviderError::InsecureEndpoint(endpoint));
            }
            Ok(Some(url))
        };
        let required = |endpoint| optional(endpoint)?.ok_or(ProviderError::MissingEndpoint(endpoint));
        let says = |name: &str| document.get(name).and_then(Value::as_bool).unwrap_or(false);
        let methods = member("code_challenge_methods_supported").and_then(Value::as_array);
        let list = |name: &str| -> Vec<String> {
            let values = member(name).and_then(Value::as_array);
            let texts = values.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Ok(Self {
            issuer: issuer.to_owned(),
            authorization_endpoint: AuthUrl::from_url(required("authorization_endpoint")?),
            token_endpoint: required("token_endpoint")?,
            jwks_uri: required("jwks_uri")?,
            userinfo_endpoint: optional("userinfo_endpoint")?,
            end_session_endpoint: optional("end_session_endpoint")?.map(EndSessionUrl::from_url),
            revocation_endpoint: optional("revocation_endpoint")?,
            // Sign-ins do not need it. Callers that do treat a disallowed address as missing.
            introspection_endpoint: optional("introspection_endpoint").unwrap_or_default(),
            pushed_authorization_request_endpoint: optional("pushed_authorization_request_endpoint")?,
            id_token_signing_algs: list("id_token_signing_alg_values_supported"),
            userinfo_signing_algs: list("userinfo_signing_alg_values_supported"),
            token_endpoint_auth_methods: list("token_endpoint_auth_methods_supported"),
            token_endpoint_auth_signing_algs: list("token_endpoint_auth_signing_alg_values_supported"),
            request_object_signing_algs: list("request_object_signing_alg_values_supported"),
            acr_values: list("acr_values_supported"),
            response_modes: list("response_modes_supported"),
            prompts: list("prompt_values_supported"),
            requires_pushed_requests: says("require_pushed_authorization_requests"),
            iss_parameter_promised: says("authorization_response_iss_parameter_supported"),
            supports_s256: methods.is_none_or(|methods| methods.iter().any(|method| method == "S256")),
        })
    }

    /// The `prompt` that makes this provider prompt a signed-in user: `login`, or `select_account` if it
    /// supports only that. Google documents this outside of its metadata, and rejects `login`.
    pub(crate) fn asking_prompt(&self) -> &'static str {
        let lists = |word: &str| self.prompts.iter().any(|prompt| prompt == word);
        let only_selects = lists("select_account") && !lists("login");
        if only_selects || self.issuer == GOOGLE {
            "select_account"
        } else {
            "login"
        }
    }

    /// The URL of an issuer's discovery document (Discovery 4.1): without a trailing slash before the path.
    pub(crate) fn address(issuer: &str) -> Option<Url> {
        Url::parse(&format!("{}{OPENID_CONFIGURATION}", issuer.trim_end_matches('/'))).ok()
    }
}

/// Whether a member counts as absent.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(all) => all.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_optional_member_counts_as_absent() {
        for empty in [serde_json::json!(""), serde_json::json!([]), Value::Null] {
            let mut document = serde_json::json!({
                "issuer": "https://op.example",
                "authorization_endpoint": "https://op.example/a",
                "token_endpoint": "https://op.example/t",
                "jwks_uri": "https://op.example/k",
                "mtls_endpoint_aliases": { "token_endpoint": empty },
            });
            for name in [
                "userinfo_endpoint",
                "end_session_endpoint",
                "revocation_endpoint",
                "introspection_endpoint",
                "pushed_authorization_request_endpoint",
                "code_challenge_methods_supported",
                "id_token_signing_alg_values_supported",
                "userinfo_signing_alg_values_supported",
                "token_endpoint_auth_methods_supported",
                "token_endpoint_auth_signing_alg_values_supported",
                "response_modes_supported",
                "require_pushed_authorization_requests",
                "authorization_response_iss_parameter_supported",
            ] {
                document[name] = empty.clone();
            }
            let document = document.as_object().cloned().unwrap_or_default();
            let metadata = Metadata::from_document(&document, "https://op.example", true)
                .expect("nothing that is needed is absent");
            assert!(
                metadata.supports_s256 && metadata.end_session_endpoint.is_none(),
                "{empty}"
            );
            assert!(metadata.userinfo_endpoint.is_none() && metadata.revocation_endpoint.is_none());
            assert_eq!(metadata.token_endpoint.as_str(), "https://op.example/t");
            let mut lacking = document;
            lacking.insert("jwks_uri".to_owned(), empty);
            assert!(matches!(
                Metadata::from_document(&lacking, "https://op.example", false),
                Err(ProviderError::MissingEndpoint("jwks_uri"))
            ));
        }
    }

    // conformance: B-082
    #[test]
    fn the_document_is_below_the_issuers_path_and_its_closing_slash_is_only_compared() {
        for (issuer, address) in [
            (
                "https://op.example",
                "https://op.example/.well-known/openid-configuration",
            ),
            (
                "https://op.example/",
                "https://op.example/.well-known/openid-configuration",
            ),
            (
                "https://op.example/tenant1",
                "https://op.example/tenant1/.well-known/openid-configuration",
            ),
            (
                "https://op.example/tenant1/",
                "https://op.example/tenant1/.well-known/openid-configuration",
            ),
        ] {
            assert_eq!(
                Metadata::address(issuer).map(String::from).as_deref(),
                Some(address)
            );
        }
        for (said, configured) in [
            ("https://op.example", "https://op.example/"),
            ("https://op.example/", "https://op.example"),
            ("https://op.example/Tenant1", "https://op.example/tenant1"),
        ] {
            let document = serde_json::json!({ "issuer": said });
            let document = document.as_object().cloned().unwrap_or_default();
            let judged = Metadata::from_document(&document, configured, false);
            assert!(
                matches!(judged, Err(ProviderError::IssuerMismatch)),
                "{said} {configured}"
            );
        }
    }

    #[test]
    fn an_introspection_endpoint_that_must_not_be_used_stops_no_sign_in() {
        for (said, usable) in [
            ("http://op.example/introspect", false),
            ("/introspect", false),
            ("https://op.example/introspect", true),
        ] {
            let document = serde_json::json!({
                "issuer": "https://op.example",
                "authorization_endpoint": "https://op.example/a",
                "token_endpoint": "https://op.example/t",
                "jwks_uri": "https://op.example/k",
                "introspection_endpoint": said,
            });
            let document = document.as_object().cloned().unwrap_or_default();
            let judged = Metadata::from_document(&document, "https://op.example", false);
            let endpoint = judged.map(|metadata| metadata.introspection_endpoint.is_some());
            assert_eq!(endpoint.ok(), Some(usable), "{said}");
        }
    }

    #[test]
    fn only_a_provider_on_this_machine_may_point_at_this_machine_without_tls() {
        for (issuer, usable) in [("https://op.example", false), ("http://127.0.0.1:9000", true)] {
            let document = serde_json::json!({
                "issuer": issuer,
                "authorization_endpoint": "https://op.example/a",
                "token_endpoint": "https://op.example/t",
                "jwks_uri": "http://127.0.0.1:9000/k",
            });
            let document = document.as_object().cloned().unwrap_or_default();
            let judged = Metadata::from_document(&document, issuer, false);
            assert_eq!(judged.is_ok(), usable, "{issuer}");
        }
    }
}
