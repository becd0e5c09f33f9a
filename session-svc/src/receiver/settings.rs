//! Trusted transmitters as the file of signals configures them.

use std::path::PathBuf;

use chassis::files::POLL_INTERVAL;
use chassis::secret::{Reloading, Secret};
use ssf::TransmitterSettings;

use super::policy::EventPolicy;

/// Trusted transmitters, and what their events do.
#[derive(Clone, Debug)]
pub struct TransmittersFile {
    /// The transmitters: at least one, no two with the same issuer.
    pub transmitters: Vec<ConfiguredTransmitter>,
    /// What each event does.
    pub(crate) policy: EventPolicy,
}

impl TransmittersFile {
    /// Whether a transmitter may name people by email address.
    pub(crate) fn has_email(&self) -> bool {
        self.transmitters.iter().any(|one| one.by_email)
    }
}

/// A transmitter as configured.
#[derive(Clone, Debug)]
pub struct ConfiguredTransmitter {
    /// Its name in logs and metrics.
    pub id: String,
    /// Its issuer, and how its keys are fetched.
    pub settings: TransmitterSettings,
    /// Our names; a token has to be for one of them.
    pub audience: Vec<String>,
    /// Issuer of the provider whose sessions its events are about.
    pub provider: String,
    /// Whether verified email addresses find people.
    pub by_email: bool,
    /// The rows that differ from the policy of the file.
    pub(crate) policy: EventPolicy,
    /// Whether it may end all sessions of a user by one request (Global Token Revocation).
    pub(crate) has_global_token_revocation: bool,
    /// The Authorization header of its pushes, and the file with it; `None` accepts any.
    pub authorization: Option<(PathBuf, Reloading<Secret<String>>)>,
}

impl ConfiguredTransmitter {
    /// Whether a push has the header that the file has now. Without a file every push passes: the signature decides.
    pub(super) fn is_authorized(&self, given: &str) -> bool {
        let header = self.authorization.as_ref();
        header.is_none_or(|(_, header)| header.load().is(given))
    }

    /// Follows the file of the Authorization header. Needs a tokio runtime; ends with it.
    pub(super) fn follow_file(&self) {
        if let Some((path, header)) = &self.authorization {
            header.follow(POLL_INTERVAL, "authorization_file", path, parse_header);
        }
    }
}

/// The value of an Authorization header.
pub(crate) fn parse_header(text: &str) -> Result<Secret<String>, &'static str> {
    match text.trim() {
        "" => Err("the file has no text: write the value of the Authorization header into it"),
        text => Ok(Secret::new(text.to_owned())),
    }
}
