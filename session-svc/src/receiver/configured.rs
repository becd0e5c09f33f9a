//! A transmitter as it is configured, ready to be asked for a stream and for events.

use std::path::{Path, PathBuf};

use chassis::audit;
use chassis::files::{Snapshot, read_bounded};
use chassis::secret::Secret;
use oidc::{
    BuildError, ClientAuth, ClientCredentials, ClientSecret, SECURITY_EVENT_TYPES, Transmitter,
    TransmitterCredentials,
};
use tokio::task::JoinHandle;
use url::Url;

use super::settings::{ConfiguredTransmitter, DeliveryMethod, StreamCredentials};

/// What audit records call the files of credentials; the path says which.
const CREDENTIALS: &str = "transmitter credentials";

/// A transmitter, with what its stream is created by.
#[derive(Clone)]
pub(crate) struct ReadyTransmitter {
    /// What it is called here.
    pub(crate) id: String,
    /// The transmitter.
    pub(crate) transmitter: Transmitter,
    /// Our names, one of which its stream has to be for.
    pub(crate) audience: Vec<String>,
    /// How its events come.
    pub(crate) delivery: Delivery,
    /// The types of events that are asked for.
    pub(crate) events: Vec<String>,
}

/// How events come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The transmitter sends each of them (RFC 8935).
    Push {
        /// Where to; a stream cannot be created without.
        endpoint_url: Option<Url>,
        /// The whole `Authorization` header they come with, where it is configured; else the tool that creates the stream makes one.
        authorization: Option<Secret<String>>,
    },
    /// We fetch them (RFC 8936).
    Poll,
}

/// Why a transmitter cannot be asked for anything.
#[derive(Debug, thiserror::Error)]
pub enum UnusableTransmitter {
    /// Its settings.
    #[error("transmitter {id:?}: its settings cannot be used")]
    Settings {
        /// Which one.
        id: String,
        /// Why.
        source: BuildError,
    },
    /// A file.
    #[error("transmitter {id:?}: the file {path} cannot be read")]
    Unreadable {
        /// Which one.
        id: String,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What is in a file.
    #[error("transmitter {id:?}: the file {path} {problem}")]
    File {
        /// Which one.
        id: String,
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Where a token would be requested.
    #[error("transmitter {id:?}: token_endpoint has to be https")]
    TokenEndpoint {
        /// Which one.
        id: String,
    },
}

impl ReadyTransmitter {
    /// Prepares a transmitter without any network: reads the files of its credentials.
    ///
    /// # Errors
    /// It cannot be asked for anything.
    pub(crate) fn new(configured: &ConfiguredTransmitter) -> Result<Self, UnusableTransmitter> {
        let id = configured.id.as_str();
        let mut settings = configured.settings.clone();
        if let Some(credentials) = &configured.credentials {
            settings.credentials = credentials.read(id)?;
        }
        let authorization = configured.authorization_file.as_deref();
        let delivery = match &configured.delivery {
            DeliveryMethod::Poll => Delivery::Poll,
            DeliveryMethod::Push(endpoint_url) => Delivery::Push {
                endpoint_url: endpoint_url.clone(),
                authorization: authorization.map(|path| secret(id, path)).transpose()?,
            },
        };
        let unusable = |source| UnusableTransmitter::Settings {
            id: id.to_owned(),
            source,
        };
        Ok(Self {
            id: id.to_owned(),
            transmitter: Transmitter::new(settings).map_err(unusable)?,
            audience: configured.audience.clone(),
            delivery,
            events: SECURITY_EVENT_TYPES.map(str::to_owned).to_vec(),
        })
    }

    /// Who it is.
    pub(crate) fn issuer(&self) -> &str {
        &self.transmitter.settings().issuer
    }
}

impl StreamCredentials {
    /// Reads them from their files.
    ///
    /// # Errors
    /// A file cannot be read, or holds nothing that can be used.
    pub(super) fn read(&self, id: &str) -> Result<TransmitterCredentials, UnusableTransmitter> {
        match self {
            Self::Token(path) => {
                let token = TransmitterCredentials::bearer(secret(id, path)?.expose());
                token.ok_or_else(|| UnusableTransmitter::File {
                    id: id.to_owned(),
                    path: path.clone(),
                    problem: "holds no bearer token: letters, digits and -._~+/= alone",
                })
            }
            Self::Client {
                token_endpoint,
                client_id,
                client_secret_file,
                scope,
            } => {
                let secret = secret(id, client_secret_file)?.into_inner();
                let grant = ClientCredentials {
                    token_endpoint: token_endpoint.clone(),
                    client_id: client_id.clone(),
                    auth: ClientAuth::SecretBasic(ClientSecret::new(secret)),
                    scope: scope.clone(),
                };
                let credentials = TransmitterCredentials::client_credentials(grant);
                credentials.ok_or_else(|| UnusableTransmitter::TokenEndpoint { id: id.to_owned() })
            }
        }
    }

    /// Hands to the transmitter what its file holds from now on. Needs a tokio runtime; ends with it.
    pub(super) fn follow(self, id: String, transmitter: Transmitter) -> JoinHandle<()> {
        let path = match &self {
            Self::Token(path) => path.clone(),
            Self::Client {
                client_secret_file, ..
            } => client_secret_file.clone(),
        };
        Snapshot::take(path.clone()).watch(move |_| {
            let read = self.read(&id).and_then(|credentials| {
                let replaced = transmitter.replace_credentials(credentials);
                replaced.map_err(|source| UnusableTransmitter::Settings {
                    id: id.clone(),
                    source,
                })
            });
            match &read {
                Ok(()) => tracing::info!(transmitter = id, "took over changed credentials of a transmitter"),
                Err(error) => {
                    let error = error as &dyn std::error::Error;
                    tracing::warn!(
                        transmitter = id,
                        error,
                        "changed credentials of a transmitter can not be used: those before stay in use"
                    );
                }
            }
            let told = read
                .as_ref()
                .copied()
                .map_err(|error| error as &dyn std::error::Error);
            audit::reloaded(CREDENTIALS, Some(&path), told);
        })
    }
}

/// A text in a file, white space around it cut.
///
/// # Errors
/// The file cannot be read, or nothing is in it.
pub(super) fn secret(id: &str, path: &Path) -> Result<Secret<String>, UnusableTransmitter> {
    let bytes = read_bounded(path).map_err(|source| UnusableTransmitter::Unreadable {
        id: id.to_owned(),
        path: path.to_owned(),
        source,
    })?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default().trim();
    if text.is_empty() {
        return Err(UnusableTransmitter::File {
            id: id.to_owned(),
            path: path.to_owned(),
            problem: "is empty, or no text: write the secret into it",
        });
    }
    Ok(Secret::new(text.to_owned()))
}
