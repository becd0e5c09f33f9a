//! Certificates and passwords that change while the service runs.
//!
//! Invariant: unusable settings change nothing, and new ones are used once a connection with them succeeds.
//! Deliberately absent: changing the kind of store, database or prefix, which needs a restart.

use std::error::Error;
use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chassis::audit;
use chassis::files;
use chassis::tls::CertificateGauges;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::store::url::{RedisSettings, StoreSettings};

use super::source::{ANSWER_TIMEOUT, ConnectionSource};

/// The setting that audit records name.
const SETTING: &str = "SESSION_STORE";

/// Pause after a failed attempt to connect with changed settings.
const RENEW_PAUSE: Duration = Duration::from_secs(2);

/// Follows the certificates of `settings`, and the file of the settings, if there are any.
pub(super) fn follow(
    sources: watch::Sender<Arc<ConnectionSource>>,
    settings: &RedisSettings,
    came_from: Option<&Path>,
    shown: Option<CertificateGauges>,
) -> Option<AbortOnDropHandle<()>> {
    let tls = settings.tls.as_ref();
    let certificates = tls.map(|tls| [&tls.ca_file, &tls.cert_file, &tls.key_file]);
    let certificates = certificates.into_iter().flatten().flatten();
    let paths: Vec<PathBuf> = came_from
        .map(Path::to_owned)
        .into_iter()
        .chain(certificates.cloned())
        .collect();
    if paths.is_empty() {
        return None;
    }
    let has_file = came_from.is_some();
    let (sources, mut settings) = (Arc::new(sources), settings.clone());
    let mut renewing: Option<AbortOnDropHandle<()>> = None;
    // The watch reports the contents at once, so that no change since the settings were read is missed.
    let watching = files::watch(files::POLL_INTERVAL, paths, move |contents| {
        let mut reload = || -> Result<(), Box<dyn Error>> {
            if let Some(text) = contents.first().filter(|_| has_file) {
                settings = changed(&settings, text)?;
            }
            let renewed = renew(Arc::clone(&sources), ConnectionSource::new(&settings)?);
            // Cancels an earlier attempt.
            drop(renewing.replace(AbortOnDropHandle::new(tokio::spawn(renewed))));
            if let Some(shown) = &shown {
                shown.loaded(settings.tls.as_ref().and_then(|tls| tls.cert_file.as_deref()));
            }
            Ok(())
        };
        audit::reloaded(
            SETTING,
            None,
            reload().as_ref().copied().map_err(|error| &**error),
        );
    });
    Some(AbortOnDropHandle::new(watching))
}

/// Uses a source once it connects.
async fn renew(sources: Arc<watch::Sender<Arc<ConnectionSource>>>, source: ConnectionSource) {
    while let Err(error) = source.connect(ANSWER_TIMEOUT).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the store does not accept its changed settings yet: the old ones stay in use"
        );
        tokio::time::sleep(RENEW_PAUSE).await;
    }
    sources.send_replace(Arc::new(source));
}

/// The settings in the changed file, if they can be used without a restart.
fn changed(settings: &RedisSettings, text: &[u8]) -> Result<RedisSettings, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    let parsed: StoreSettings = text.trim().parse().map_err(|error| format!("it {error}"))?;
    match parsed {
        StoreSettings::Redis(new)
            if discriminant(&new.topology) == discriminant(&settings.topology)
                && (new.database, &new.prefix) == (settings.database, &settings.prefix) =>
        {
            Ok(*new)
        }
        _ => Err("another kind of store, database or prefix needs a restart".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_password_or_server_is_gone_over_to_and_other_sessions_are_not() {
        let Ok(StoreSettings::Redis(settings)) = "redis://:old@one/1?prefix=a".parse() else {
            panic!("an address of a server")
        };
        for (text, taken) in [
            ("redis://:new@two:7000/1?prefix=a\n", true),
            ("rediss://one/1?prefix=a", true),
            ("redis://one/2?prefix=a", false),
            ("redis://one/1?prefix=b", false),
            ("redis://one/1", false),
            ("redis-cluster://one?prefix=a", false),
            ("memory:", false),
            ("nonsense", false),
        ] {
            assert_eq!(changed(&settings, text.as_bytes()).is_ok(), taken, "{text:?}");
        }
        assert!(changed(&settings, &[0xff]).is_err());
    }
}
