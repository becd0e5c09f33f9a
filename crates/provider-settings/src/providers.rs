//! One provider, or several, each with an issuer of its own.

use oidc::ProviderSettings;

use crate::CredentialFiles;

/// The provider that plain variables describe is known by this id.
const ONLY: &str = "default";

/// A provider as configured.
#[derive(Clone, Debug)]
pub struct ConfiguredProvider {
    /// What it is called here: in logs, in its callback's address, as `connection` of a login.
    pub id: String,
    /// What is configured about it.
    pub settings: ProviderSettings,
    /// The files its credentials came from, to follow their changes.
    pub credential_files: CredentialFiles,
    /// Hosts that are its own, in lower case, with a port where it is not the base URL's.
    pub hosts: Vec<String>,
    /// The path of its callback, where it is not made from its id.
    pub callback_path: Option<String>,
}

/// All providers: at least one, no two of one issuer.
#[derive(Clone, Debug)]
pub struct ConfiguredProviders {
    /// Every provider, in the order of the file.
    pub all: Vec<ConfiguredProvider>,
    /// Which of them applies when nothing names another.
    pub default: usize,
    /// Whether a file lists them; otherwise there is the one of the plain variables.
    pub listed: bool,
}

impl ConfiguredProviders {
    /// The one provider of the plain variables.
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

    /// The ids a file gives them; none where plain variables describe the one there is.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        let listed = self.all.iter().filter(|_| self.listed);
        listed.map(|provider| provider.id.clone()).collect()
    }

    /// What is configured about each.
    pub fn settings(&self) -> impl Iterator<Item = &ProviderSettings> {
        self.all.iter().map(|provider| &provider.settings)
    }
}
