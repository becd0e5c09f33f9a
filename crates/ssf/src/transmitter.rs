//! A transmitter of security events, and the verification of its tokens.
//!
//! A transmitter has its own metadata and keys, even if it is also the sign-in provider (SSF 1.0 section 7).
//! Only issuer and key set are read, so a vendor's odd optional members do no harm.
//!
//! Deliberately absent: `critical_subject_members`. With an unmatched member, an event is for all user sessions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oidc::{BuildError, Credentials, ForwardProxy, ProviderSettings, RelyingParty};
use url::Url;

use crate::strict_json::strict_object;
use crate::{RevocationToken, SecurityEventError, SecurityEventToken};
use crate::{revocation, token};

/// The metadata path, between the issuer's host and path (SSF 1.0 section 7.2.1).
const WELL_KNOWN: &str = "/.well-known/ssf-configuration";
/// Bound on each HTTP exchange with a transmitter: a push waits for it.
const HTTP_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of a transmitter.
#[derive(Clone, Debug)]
pub struct TransmitterSettings {
    /// Issuer identifier, compared byte by byte.
    pub issuer: String,
    /// Address of its metadata; `None` is the address of SSF 1.0 section 7.2.1.
    pub configuration_url: Option<Url>,
    /// Whether it sends events of drafts: no `sub_id`, a `subject` in the event, and perhaps no `typ`.
    pub drafts: bool,
    /// PEM file of the certification authorities for the transmitter, which replace the public ones.
    pub ca_file: Option<PathBuf>,
    /// The proxy for calls to the transmitter.
    pub proxy: Option<ForwardProxy>,
}

impl TransmitterSettings {
    /// Settings with the defaults.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            configuration_url: None,
            drafts: false,
            ca_file: None,
            proxy: None,
        }
    }
}

/// A transmitter whose events are received. Clones are cheap and share caches.
#[derive(Clone)]
pub struct Transmitter {
    settings: Arc<TransmitterSettings>,
    /// Reads the transmitter's keys. It is never used to sign in.
    keys: RelyingParty,
}

impl Transmitter {
    /// Creates it without network access; metadata and keys are read on first use.
    ///
    /// # Errors
    /// An issuer or URL is neither https nor on loopback, or the file of certification authorities has none.
    pub fn new(settings: TransmitterSettings) -> Result<Self, BuildError> {
        let mut url = Url::parse(&settings.issuer).map_err(|_| BuildError::Issuer)?;
        let path = format!("{WELL_KNOWN}{}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        let document = settings.configuration_url.clone().unwrap_or(url);
        let keys = RelyingParty::new(ProviderSettings {
            ca_file: settings.ca_file.clone(),
            credentials: Credentials {
                proxy: settings.proxy.clone(),
                ..Credentials::default()
            },
            http_timeout: HTTP_TIMEOUT,
            ..ProviderSettings::of_signer(settings.issuer.as_str(), document)
        })?;
        Ok(Self {
            settings: Arc::new(settings),
            keys,
        })
    }

    /// Verifies a token of this transmitter for a receiver with these names (`aud`); `now` is in seconds
    /// since the Unix epoch. The caller prevents replays.
    ///
    /// # Errors
    /// Why it is rejected; without a [`SecurityEventError::code`] there is no verdict now.
    pub async fn verify(
        &self,
        raw: &str,
        audiences: &[String],
        now: u64,
    ) -> Result<SecurityEventToken, SecurityEventError> {
        let drafts = self.settings.drafts;
        let unverified = token::parse(raw, drafts)?;
        let claims = unverified.payload().and_then(|bytes| strict_object(&bytes));
        let claims = claims.ok_or_else(SecurityEventError::malformed)?;
        let token = SecurityEventToken::validate(&claims, &self.settings.issuer, audiences, drafts, now)?;
        self.keys.verify_signature(&unverified).await?;
        Ok(token)
    }

    /// Verifies the JWT of a Global Token Revocation request for a receiver with these names (`aud`); `now` is
    /// in seconds since the Unix epoch. The caller prevents replays.
    ///
    /// # Errors
    /// As for [`Self::verify`]; the code of a rejection is always [`crate::ErrorCode::AuthenticationFailed`].
    pub async fn verify_revocation(
        &self,
        raw: &str,
        audiences: &[String],
        now: u64,
    ) -> Result<RevocationToken, SecurityEventError> {
        let verify = async {
            let unverified = revocation::parse(raw)?;
            let claims = unverified.payload().and_then(|bytes| strict_object(&bytes));
            let claims = claims.ok_or_else(SecurityEventError::malformed)?;
            let token = RevocationToken::validate(&claims, &self.settings.issuer, audiences, now)?;
            self.keys.verify_signature(&unverified).await?;
            Ok(token)
        };
        verify.await.map_err(SecurityEventError::of_credential)
    }
}

#[cfg(test)]
#[path = "transmitter_tests.rs"]
mod tests;
