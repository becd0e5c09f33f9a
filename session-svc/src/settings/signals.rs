//! One file for both directions: transmitters of security events, and receivers of ours.

pub(super) mod fields;
mod receivers;
mod transmitters;

use chassis::settings::toml_file::{self, FileMistakes};
use chassis::settings::{Reader, Topic, setting};

use oidc::ForwardProxy;
use provider_settings::ConfiguredProviders;

use crate::receiver::TransmittersFile;
use crate::transmitter::Receivers;

pub(crate) const SIGNALS: &str = "SESSION_SIGNALS";

/// Security events of other systems.
pub static TOPIC: Topic = Topic {
    title: "Shared Signals",
    settings: &[setting(
        SIGNALS,
        "",
        "FILE",
        "Partners in OpenID Shared Signals (TOML file, docs/signals.md). Each trusted transmitter of security events has a [[transmitter]] table, with a [policy] that says what each event does. Transmitters push to the edge, at /api/auth/events. Each system that receives signed events when sessions end has a [[receiver]] table. Receivers need issuer and signing_key_file.",
    )],
};

/// The contents of the file.
#[derive(Debug, Default)]
pub struct Signals {
    /// Trusted transmitters of security events.
    pub transmitters: Option<TransmittersFile>,
    /// Receivers of events about ended sessions.
    pub receivers: Option<Receivers>,
}

/// Reads the text of the file.
///
/// # Errors
/// Every mistake, in the order of the file.
pub fn parse(text: &str) -> Result<Signals, FileMistakes> {
    toml_file::parse(text, |file| {
        let signals = Signals {
            transmitters: transmitters::read(file),
            receivers: receivers::read(file),
        };
        if signals.transmitters.is_none() && signals.receivers.is_none() {
            file.wrong("there is no partner: add a [[transmitter]] or a [[receiver]] table for each");
        }
        signals
    })
}

/// Reads the file. Its mistakes are mistakes of the setting.
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Signals> {
    let path = reader.path(SIGNALS)?;
    reader.toml_file(SIGNALS, &path, parse)
}

/// Sets the proxy for fetching the keys of transmitters. Warns if a transmitter's provider is not configured.
pub(super) fn fit_to_providers(
    reader: &mut Reader<'_>,
    file: &mut TransmittersFile,
    proxy: Option<&ForwardProxy>,
    providers: &ConfiguredProviders,
) {
    for transmitter in &mut file.transmitters {
        transmitter.settings.proxy = proxy.cloned();
        let mut issuers = providers.settings().map(|settings| &settings.issuer);
        if !issuers.any(|issuer| *issuer == transmitter.provider) {
            let (id, provider) = (&transmitter.id, &transmitter.provider);
            reader.warn(
                SIGNALS,
                format!("transmitter {id:?} reports on sessions of {provider}, which is not configured: set provider to the issuer where users sign in"),
            );
        }
    }
}
