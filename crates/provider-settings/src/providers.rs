//! One provider, or several with different issuers.

use oidc::ProviderSettings;

use crate::CredentialFiles;

/// The id of the provider that plain variables describe.
const ONLY: &str = "default";

/// A provider as configured.
#[derive(Clone, Debug)]
pub struct ConfiguredProvider {
    /// Its name in logs, in its callback's address, and as `connection` of a login.
    pub id: String,
    /// Its settings.
    pub settings: ProviderSettings,
    /// The files that contain its credentials, to follow their changes.
    pub credential_files: CredentialFiles,
    /// Hosts that only this provider has, in lower case. A port is included if it differs from the base URL's.
    pub hosts: Vec<String>,
    /// The path of its callback, if the file sets one. By default the path contains the id.
    pub callback_path: Option<String>,
}

/// All providers: at least one, each with its own issuer.
#[derive(Clone, Debug)]
pub struct ConfiguredProviders {
    /// Every provider, in the order of the file.
    pub all: Vec<ConfiguredProvider>,
    /// The index of the provider for sign-ins that name no other.
    pub default: usize,
    /// Whether a file lists them. Otherwise plain variables describe the only one.
    pub listed: bool,
}

impl ConfiguredProviders {
    /// The only provider, from plain variables.
    pub(crate) fn only(settings: ProviderSettings, credential_files: CredentialFiles) -> Self {
        let provider = ConfiguredProvider {
            id: ONLY.to_owned(),
            settings,
            credential_files,
            hosts: Vec::new(),
            callback_path: None,
        };
        Self {
            all: vec![provider],
            default: 0,
            listed: false,
        }
    }

    /// The ids in the file; empty if plain variables describe the only provider.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        let listed = self.all.iter().filter(|_| self.listed);
        listed.map(|provider| provider.id.clone()).collect()
    }

    /// The settings of each.
    pub fn settings(&self) -> impl Iterator<Item = &ProviderSettings> {
        self.all.iter().map(|provider| &provider.settings)
    }
}
