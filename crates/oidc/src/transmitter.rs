//! A transmitter of security events (OpenID Shared Signals Framework 1.0), and the verification of its tokens.
//!
//! A transmitter has metadata and keys of its own, even if it is also the sign-in provider. They are cached and refreshed as those of a
//! provider are.
//!
//! Deliberately absent: the endpoint that receives pushes (RFC 8935), which belongs to the caller; the management of streams, which belongs
//! to the operator; polling (RFC 8936); algorithms with a shared secret.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use url::Url;

use crate::endpoint::endpoint_is_secure;
use crate::http_client::HttpClient;
use crate::issuer_settings::{IssuerSettings, check_issuer};
use crate::key_refetch::TokenOrigin;
use crate::provider_cache::{Documents, ProviderCache};
use crate::security_event_token::{self, ExpectedEvent, SecurityEventToken};
use crate::transmitter_metadata::{TRANSMITTER_CONFIGURATION, TransmitterMetadata};
use crate::{
    AcceptedAlgorithms, BuildError, ClientAuth, Credentials, ForwardProxy, ProviderError, ProviderSettings,
    SecurityEventError,
};

/// What has to be configured about a transmitter before the first request to it.
#[derive(Clone, Debug)]
pub struct TransmitterSettings {
    /// Issuer identifier, compared byte by byte with what the transmitter says.
    pub issuer: String,
    /// Where its configuration is; `None` is where SSF 1.0 section 7.2.1 has it. The issuer is compared all the same.
    pub configuration_url: Option<Url>,
    /// The algorithms its events may be signed with; `Auto` means all that a public key verifies, since its metadata lists none.
    pub signing_algs: AcceptedAlgorithms,
    /// Whether its events are those of drafts of the standard: without `sub_id`, with a `subject` in the event, and perhaps without `typ`.
    pub drafts: bool,
    /// Bound on each HTTP exchange with the transmitter, body included.
    pub http_timeout: Duration,
    /// Tolerance for clocks that differ, in seconds.
    pub clock_tolerance_secs: u64,
    /// PEM file of the certification authorities trusted for the transmitter instead of the public ones.
    pub ca_file: Option<PathBuf>,
    /// The proxy calls to the transmitter go through.
    pub proxy: Option<ForwardProxy>,
}

impl TransmitterSettings {
    /// Settings with the defaults of [`ProviderSettings`].
    pub fn new(issuer: impl Into<String>) -> Self {
        let ProviderSettings {
            issuer,
            signing_algs,
            http_timeout,
            clock_tolerance_secs,
            ..
        } = ProviderSettings::new(issuer, "");
        Self {
            issuer,
            configuration_url: None,
            drafts: false,
            signing_algs,
            http_timeout,
            clock_tolerance_secs,
            ca_file: None,
            proxy: None,
        }
    }

    fn http_client(&self) -> Result<HttpClient, BuildError> {
        let mut reached = ProviderSettings::new(self.issuer.clone(), "");
        reached.http_timeout = self.http_timeout;
        reached.ca_file.clone_from(&self.ca_file);
        let credentials = Credentials {
            auth: ClientAuth::None,
            request_keys: None,
            dpop_key: None,
            proxy: self.proxy.clone(),
        };
        HttpClient::new(&reached, &credentials)
    }
}

impl IssuerSettings for TransmitterSettings {
    type Metadata = TransmitterMetadata;

    const DOCUMENT: &'static str = TRANSMITTER_CONFIGURATION;

    fn document_url(&self) -> Option<Url> {
        let configured = self.configuration_url.clone();
        configured.or_else(|| TransmitterMetadata::address(&self.issuer))
    }

    fn judge(&self, document: &Map<String, Value>) -> Result<TransmitterMetadata, ProviderError> {
        TransmitterMetadata::from_document(document, &self.issuer)
    }

    fn jwks_uri(metadata: &TransmitterMetadata) -> &Url {
        &metadata.jwks_uri
    }

    fn http_timeout(&self) -> Duration {
        self.http_timeout
    }
}

/// A transmitter whose events are received. Clones are cheap and share caches.
#[derive(Clone)]
pub struct Transmitter {
    settings: Arc<TransmitterSettings>,
    http: HttpClient,
    cache: Arc<ProviderCache<TransmitterSettings>>,
}

impl Transmitter {
    /// Prepares without any network; its configuration is read when first needed.
    ///
    /// # Errors
    /// Settings that cannot be used: an issuer or an address of the configuration that is not https outside loopback, an
    /// algorithm under a shared secret, a file of certification authorities without any.
    pub fn new(settings: TransmitterSettings) -> Result<Self, BuildError> {
        let issuer = Url::parse(&settings.issuer).map_err(|_| BuildError::Issuer)?;
        check_issuer(&issuer)?;
        let configuration = settings.configuration_url.as_ref();
        if configuration.is_some_and(|url| !endpoint_is_secure(url)) {
            return Err(BuildError::InsecureIssuer);
        }
        let bytes = settings.signing_algs.least_secret_bytes();
        if bytes > 0 {
            return Err(BuildError::SymmetricSecret { bytes });
        }
        Ok(Self {
            http: settings.http_client()?,
            settings: Arc::new(settings),
            cache: Arc::default(),
        })
    }

    /// The settings it was made from.
    pub fn settings(&self) -> &TransmitterSettings {
        &self.settings
    }

    /// The transmitter's metadata, from the cache when fresh, stale when the transmitter is down.
    ///
    /// # Errors
    /// It cannot be had, or must not be used.
    pub async fn metadata(&self) -> Result<Arc<TransmitterMetadata>, ProviderError> {
        self.cache
            .metadata(Documents::First, &self.http, &self.settings)
            .await
    }

    /// Verifies a security event token of this transmitter for a receiver of these names (`aud`); `now` in seconds since the Unix
    /// epoch. The caller guards against replays.
    ///
    /// # Errors
    /// Why it is refused, or, where [`SecurityEventError::is_undecided`] says so, why it cannot be judged now.
    pub async fn verify(
        &self,
        raw: &str,
        audiences: &[String],
        now: u64,
    ) -> Result<SecurityEventToken, SecurityEventError> {
        let unverified = security_event_token::parse(raw, &self.settings.signing_algs, self.settings.drafts)?;
        let expected = ExpectedEvent {
            issuer: &self.settings.issuer,
            audiences,
            tolerance_secs: self.settings.clock_tolerance_secs,
            drafts: self.settings.drafts,
        };
        // Before the signature, so that only a token that would count makes anybody look for a key.
        let claims = security_event_token::claims(&unverified)?;
        let token = SecurityEventToken::validate(&claims, &expected, now)?;
        self.cache
            .verify(
                &self.http,
                &self.settings,
                &unverified,
                TokenOrigin::Unauthenticated,
            )
            .await?;
        let metadata = self.metadata().await.map_err(SecurityEventError::Provider)?;
        Ok(SecurityEventToken {
            subject: token.subject.unless_critical(&metadata.critical_subject_members),
            ..token
        })
    }
}

#[cfg(test)]
#[path = "transmitter_tests.rs"]
mod tests;
