//! Error answers of a provider (RFC 6749 section 5.2).

use serde_json::{Map, Value};

use crate::{ClientAuth, IssuerUse, ProviderSettings};

/// An OAuth error answer (RFC 6749 section 5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthError {
    code: String,
    description: Option<String>,
    hint: Option<&'static str>,
    /// HTTP status of the answer, if there is one.
    status: Option<u16>,
}

impl OAuthError {
    /// Keeps the legal characters of an error code, at most 64 of them.
    pub fn new(code: &str) -> Self {
        const LONGEST: usize = 64; // registered codes have at most 30 characters
        let legal = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        Self {
            code: code.chars().filter(legal).take(LONGEST).collect(),
            description: None,
            hint: None,
            status: None,
        }
    }

    /// The error of an answer with this status. It keeps the provider's description. If the provider rejected
    /// the client, it also has advice for an operator.
    pub(crate) fn of_answer(
        code: &str,
        document: &Map<String, Value>,
        status: u16,
        settings: &ProviderSettings,
    ) -> Self {
        let description = document.get("error_description").and_then(Value::as_str);
        let mut error = Self::new(code).with_description(description);
        error.status = Some(status);
        error.hint = error.is_about_client().then(|| client_hint(settings));
        error
    }

    /// Adds the provider's description: printable ASCII (RFC 6749 section 5.2), at most 200 characters.
    pub(crate) fn with_description(self, text: Option<&str>) -> Self {
        const LONGEST: usize = 200; // a line or two of a terminal
        let cleaned = |text: &str| -> String {
            let legal = text.chars().map(|c| if matches!(c, ' '..='~') { c } else { ' ' });
            let legal: String = legal.take(LONGEST).collect();
            legal.trim().to_owned()
        };
        let description = text.map(cleaned).filter(|text| !text.is_empty());
        Self { description, ..self }
    }

    /// The provider's description; only for operators.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The error code, such as `invalid_grant`.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Whether the provider rejects the client: `invalid_client`, or status 401 with another OAuth code. RFC 6749
    /// section 5.2 defines 401 only for this. Codes about a grant do not count: the provider accepted the client.
    /// Texts that are no OAuth code (`Unauthorized`) do not count either.
    pub fn is_about_client(&self) -> bool {
        const CODES: [&str; 7] = [
            "invalid_request",
            "unauthorized_client",
            "unsupported_grant_type",
            "invalid_scope",
            "invalid_target",
            "access_denied",
            "invalid_token",
        ];
        let is_code = || CODES.contains(&self.code());
        self.code == "invalid_client" || (self.status == Some(401) && is_code())
    }

    /// Whether the provider issues no token for this audience or resource (RFC 8693, 2.2.2; RFC 8707, 2).
    pub fn is_about_target(&self) -> bool {
        self.code == "invalid_target"
    }

    /// Whether the provider rejects the subject token of an exchange: `invalid_request` (RFC 8693, section
    /// 2.2.2), which has other causes too, or codes some providers use for a dead token.
    pub fn is_about_subject_token(&self) -> bool {
        match self.code() {
            "invalid_grant" | "invalid_token" => true,
            "invalid_request" => !self.is_about_client(),
            _ => false,
        }
    }

    /// Whether the requested scope is unknown, or exceeds what the user granted.
    pub fn is_about_scope(&self) -> bool {
        self.code == "invalid_scope"
    }

    /// Whether only a new sign-in helps: the grant is dead, or the user has to act (OpenID Connect Core
    /// 3.1.2.6). A retry with the same refresh token cannot succeed. Status 200 with an error counts as well,
    /// unless its code is about this client.
    pub fn is_final(&self) -> bool {
        const FINAL: [&str; 5] = [
            "invalid_grant",
            "interaction_required",
            "login_required",
            "consent_required",
            "account_selection_required",
        ];
        let is_odd = self.status == Some(200) && self.code != "invalid_client";
        FINAL.contains(&self.code()) || is_odd
    }
}

impl std::fmt::Display for OAuthError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.code)?;
        self.hint.map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}

/// Possible reasons why a client's proof was rejected.
pub(crate) fn client_hint(settings: &ProviderSettings) -> &'static str {
    if settings.issuer_use == IssuerUse::ApiTokens {
        return "check the client's ID and credentials at the API's authorization server: SESSION_API_SERVERS";
    }
    match &settings.credentials.auth {
        ClientAuth::PrivateKeyJwt(_) => {
            "the client's assertion was not accepted: the public half of OIDC_CLIENT_KEY_FILE has to be registered there"
        }
        ClientAuth::SecretByMetadata(_) | ClientAuth::SecretBasic(_) => {
            "check OIDC_CLIENT_ID and OIDC_CLIENT_SECRET, and whether the provider wants the secret in the body: OIDC_CLIENT_AUTH_METHOD=client_secret_post"
        }
        ClientAuth::SecretPost(_) => {
            "check OIDC_CLIENT_ID and OIDC_CLIENT_SECRET, and whether the provider wants the secret in the header: OIDC_CLIENT_AUTH_METHOD=client_secret_basic"
        }
        ClientAuth::TlsClientAuth { .. } => {
            "the provider did not accept the certificate of OIDC_CLIENT_CERT_FILE: its subject has to be registered there"
        }
        ClientAuth::AssertionFile { .. } => {
            "the provider did not accept the assertion of OIDC_CLIENT_ASSERTION_FILE: its issuer, subject and audience have to be trusted there"
        }
        ClientAuth::None => "the provider requires client authentication: OIDC_CLIENT_AUTH_METHOD is none",
    }
}
