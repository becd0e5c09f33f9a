//! Loads the key ring from its list, and again when the file of the list changes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chassis::audit;
use chassis::clock::Clock;
use chassis::files;
use chassis::readiness::Condition;
use chassis::secret::{Reloading, Secret, split_list};
use tokio::sync::watch;

use super::client::{Transit, TransitSettings, UnwrapError};
use crate::vault::{KEY_BYTES, KeyRing, ListedKey, MalformedKey, parse_list};

const FILE_SETTING: &str = "SESSION_ENCRYPTION_KEY_FILE";

/// Pauses between attempts while Vault is away: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(10);

type Key = Secret<[u8; KEY_BYTES]>;

/// Why the list gives no key ring.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The list is malformed.
    #[error(transparent)]
    Malformed(#[from] MalformedKey),
    /// There is a wrapped key, but the settings name no Vault.
    #[error("a key is wrapped: set SESSION_VAULT_ADDR and SESSION_VAULT_TOKEN_FILE, and restart")]
    NoVault,
    /// Vault cannot be asked.
    #[error("the wrapped keys cannot be unwrapped")]
    Connect(#[source] UnwrapError),
    /// This member, counted from 1, cannot be unwrapped.
    #[error("key {0} cannot be unwrapped")]
    Unwrap(usize, #[source] UnwrapError),
    /// The changed file is not text.
    #[error("the file is not UTF-8")]
    NotText(#[source] std::str::Utf8Error),
}

impl KeysError {
    fn is_final(&self) -> bool {
        match self {
            // The token or the JWT is renewed while we wait.
            Self::Connect(_) => false,
            Self::Unwrap(_, error) => error.is_final(),
            Self::Malformed(_) | Self::NoVault | Self::NotText(_) => true,
        }
    }
}

/// Whether one of these keys is wrapped. A malformed list has none.
pub(crate) fn is_any_wrapped(texts: &[Secret<String>]) -> bool {
    let is_wrapped = |key: &ListedKey| matches!(key, ListedKey::Wrapped(_));
    parse_list(texts).is_ok_and(|keys| keys.iter().any(is_wrapped))
}

/// Loads key rings, and remembers which wrapped keys it has unwrapped.
pub(crate) struct KeyLoader {
    transit: Option<TransitSettings>,
    /// Reports whether Vault unwrapped the newest list.
    condition: Option<Condition>,
    /// The keys of the newest list by their ciphertexts. So Vault may be away while known keys move or go.
    unwrapped: HashMap<String, Key>,
}

impl KeyLoader {
    /// A loader that has unwrapped no key yet.
    pub(crate) fn new(transit: Option<TransitSettings>, condition: Option<Condition>) -> Self {
        Self {
            transit,
            condition,
            unwrapped: HashMap::new(),
        }
    }

    /// Loads a ring; asks Vault once for each wrapped key that is not known yet.
    ///
    /// # Errors
    /// The list is malformed, or Vault does not unwrap one of its keys.
    pub(crate) async fn load(&mut self, texts: &[Secret<String>]) -> Result<KeyRing, KeysError> {
        let (mut keys, mut unwrapped) = (Vec::new(), HashMap::new());
        let mut connection = None;
        for (at, member) in parse_list(texts)?.into_iter().enumerate() {
            let sealed = match member {
                ListedKey::Clear(key) => {
                    keys.push(key);
                    continue;
                }
                ListedKey::Wrapped(sealed) => sealed.into_inner(),
            };
            let key = match self.unwrapped.get(&sealed) {
                Some(key) => key.clone(),
                None => {
                    let settings = self.transit.as_ref().ok_or(KeysError::NoVault)?;
                    let transit = match connection.take() {
                        Some(transit) => transit,
                        None => Transit::connect(settings).await.map_err(KeysError::Connect)?,
                    };
                    let key = transit.unwrap_key(&sealed).await;
                    connection = Some(transit);
                    key.map_err(|error| KeysError::Unwrap(at + 1, error))?
                }
            };
            keys.push(key.clone());
            unwrapped.insert(sealed, key);
        }
        self.unwrapped = unwrapped;
        Ok(KeyRing::of(keys))
    }

    /// Loads a ring; retries while Vault is away.
    ///
    /// # Errors
    /// No retry can load this list.
    pub(crate) async fn wait_for(&mut self, texts: &[Secret<String>]) -> Result<KeyRing, KeysError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.load(texts).await {
                Err(error) if !error.is_final() => error,
                done => {
                    if let (Ok(_), Some(condition)) = (&done, &self.condition) {
                        condition.mark_met();
                    }
                    return done;
                }
            };
            if let Some(condition) = &self.condition {
                condition.unmet("Vault does not unwrap SESSION_ENCRYPTION_KEY: the log has the reason");
            }
            let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                pause_ms,
                "Vault does not unwrap SESSION_ENCRYPTION_KEY: the service waits and retries"
            );
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Replaces the ring when the file changes; checks it every `every`. The old ring stays while Vault is away, and
    /// permanently if the new list cannot be used. Needs a tokio runtime; ends with it.
    pub(crate) fn follow(
        mut self,
        ring: Reloading<KeyRing>,
        every: Duration,
        path: &Path,
        clock: Arc<dyn Clock>,
    ) {
        let path = path.to_owned();
        let (changed, mut changes) = watch::channel(Vec::new());
        files::watch(every, vec![path.clone()], move |contents| {
            changed.send_replace(contents.first().cloned().unwrap_or_default());
        });
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let content = changes.borrow_and_update().clone();
                let mut newer = changes.clone();
                let loaded = tokio::select! {
                    loaded = self.wait_for_text(&content) => loaded,
                    // A newer list replaces one that waits for Vault.
                    _ = newer.changed() => continue,
                };
                let outcome =
                    loaded.map(|new| ring.store(ring.load().replaced_by(new, clock.monotonic_ms())));
                let outcome = outcome
                    .as_ref()
                    .copied()
                    .map_err(|error| error as &dyn std::error::Error);
                audit::reloaded(FILE_SETTING, Some(&path), outcome);
            }
        });
    }

    async fn wait_for_text(&mut self, content: &[u8]) -> Result<KeyRing, KeysError> {
        let text = std::str::from_utf8(content).map_err(KeysError::NotText)?;
        self.wait_for(&split_list(text)).await
    }
}

#[cfg(test)]
#[path = "key_loader_tests.rs"]
mod tests;
