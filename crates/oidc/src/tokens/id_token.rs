//! ID tokens: a login's expectations, and a valid token's content (OpenID Connect Core 2 and 3.1.3.7).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::{Nonce, NonceVerifier as _};
use serde_json::{Map, Value};

use crate::json::numeric_date;
use crate::tokens::claims::ClaimChecks;
use crate::{IdTokenError, ProviderSettings, SigningAlgorithm};

/// The values that the login requested.
#[derive(Clone, Copy, Default)]
pub struct ExpectedIdToken<'a> {
    /// The nonce sent; always required.
    pub nonce: &'a str,
    /// The access token issued together with the ID token, for `at_hash`.
    pub access_token: Option<&'a str>,
    /// `max_age` in seconds, if this login requested it; a configured one always applies.
    pub max_age: Option<u64>,
    /// `acr_values`, space-separated, if this login requested them; configured ones always apply.
    pub acr_values: Option<&'a str>,
    /// Organization that the login requested; a configured one takes precedence.
    pub organization: Option<&'a str>,
}

/// Values that a refresh's ID token must repeat (OpenID Connect Core 12.2). `None` is unknown and not compared.
#[derive(Clone, Copy)]
pub struct ExpectedRefreshedIdToken<'a> {
    /// Issuer of the session.
    pub iss: &'a str,
    /// Subject of the session.
    pub sub: &'a str,
    /// Nonce of the original authentication.
    pub nonce: Option<&'a str>,
    /// The access token of the same answer, for `at_hash`.
    pub access_token: &'a str,
}

/// A validated ID token.
#[derive(Clone, PartialEq)]
pub struct IdToken {
    /// All claims, including those of the protocol.
    pub claims: Map<String, Value>,
    /// Issuer.
    pub iss: String,
    /// Subject.
    pub sub: String,
    /// The provider's session, if the token names it.
    pub sid: Option<String>,
    /// The user's last authentication, in seconds since the Unix epoch.
    pub auth_time: Option<u64>,
    /// When the token was issued, in seconds since the Unix epoch.
    pub iat: u64,
    /// When the session must end at the latest (`session_expiry`), in seconds since the Unix epoch.
    pub session_expiry: Option<u64>,
}

impl std::fmt::Debug for IdToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdToken")
            .field("iss", &self.iss)
            .field("iat", &self.iat)
            .finish_non_exhaustive()
    }
}

impl IdToken {
    /// Validates the claims of a login's token after its signature was verified with this algorithm.
    pub(crate) fn of_login(
        (claims, algorithm): (Map<String, Value>, SigningAlgorithm),
        settings: &ProviderSettings,
        expected: &ExpectedIdToken<'_>,
        now: u64,
    ) -> Result<Self, IdTokenError> {
        let checks = ClaimChecks::new(&claims, settings, now);
        let nonce = checks.text("nonce").map(|nonce| Nonce::new(nonce.to_owned()));
        let sent = Nonce::new(expected.nonce.to_owned());
        if expected.nonce.is_empty() || sent.verify(nonce.as_ref()).is_err() {
            return Err(IdTokenError::Nonce);
        }
        access_token_hash(&checks, algorithm, expected.access_token)?;
        let auth_time = checks.authentication(expected.max_age.or(settings.configured_max_age()))?;
        if let Some(wanted) = expected.acr_values.or(settings.configured_acr_values()) {
            let acr = checks.text("acr");
            if !wanted.split(' ').any(|one| acr == Some(one)) {
                return Err(IdTokenError::Acr(wanted.to_owned()));
            }
        }
        checks.organization(settings.organization.as_deref().or(expected.organization))?;
        Self::common(&checks, settings, auth_time)
    }

    /// Validates the claims of a refresh's token: same user, and the sign-in's nonce if the token has one.
    pub(crate) fn of_refresh(
        (claims, algorithm): (Map<String, Value>, SigningAlgorithm),
        settings: &ProviderSettings,
        expected: &ExpectedRefreshedIdToken<'_>,
        now: u64,
    ) -> Result<Self, IdTokenError> {
        let checks = ClaimChecks::new(&claims, settings, now);
        checks.issuer(expected.iss)?;
        if checks.subject()? != expected.sub {
            return Err(IdTokenError::Subject);
        }
        checks.organization(settings.organization.as_deref())?;
        if let (Some(original), Some(nonce)) = (expected.nonce, claims.get("nonce"))
            && nonce.as_str() != Some(original)
        {
            return Err(IdTokenError::Nonce);
        }
        access_token_hash(&checks, algorithm, Some(expected.access_token))?;
        // Providers send the latest sign-in in any browser, so the caller keeps the session's own `auth_time`.
        let auth_time = checks.instant("auth_time");
        Self::common(&checks, settings, auth_time)
    }

    fn common(
        checks: &ClaimChecks<'_>,
        settings: &ProviderSettings,
        auth_time: Option<u64>,
    ) -> Result<Self, IdTokenError> {
        let iss = checks.issuer_of(settings, true)?.to_owned();
        checks.audience(settings)?;
        checks.validity()?;
        let iat = checks.issued_at()?;
        let sub = checks.subject()?.to_owned();
        Ok(Self {
            iss,
            sub,
            sid: checks
                .text("sid")
                .filter(|sid| !sid.is_empty())
                .map(str::to_owned),
            auth_time,
            iat,
            session_expiry: checks.claims.get("session_expiry").and_then(numeric_date),
            claims: checks.claims.clone(),
        })
    }
}

fn access_token_hash(
    checks: &ClaimChecks<'_>,
    algorithm: SigningAlgorithm,
    access_token: Option<&str>,
) -> Result<(), IdTokenError> {
    let (Some(claim), Some(access_token)) = (checks.claims.get("at_hash"), access_token) else {
        return Ok(());
    };
    let hash = aws_lc_rs::digest::digest(algorithm.digest(), access_token.as_bytes());
    let half = hash.as_ref().split_at(hash.as_ref().len() / 2).0;
    let expected = URL_SAFE_NO_PAD.encode(half);
    if claim.as_str() == Some(expected.as_str()) {
        Ok(())
    } else {
        Err(IdTokenError::AccessTokenHash)
    }
}
