//! Transmitters of security events, and receivers of ours.

use chassis::settings::{Reader, Topic, setting};

use oidc::ForwardProxy;
use provider_settings::ConfiguredProviders;

use crate::receiver::{self, TransmittersFile};
use crate::transmitter::{self, Receivers};

const TRANSMITTERS: &str = "SESSION_TRANSMITTERS";
pub(crate) const RECEIVERS: &str = "SESSION_RECEIVERS";

pub(super) static TOPIC: Topic = Topic {
    title: "Shared Signals",
    settings: &[
        setting(
            TRANSMITTERS,
            "",
            "FILE",
            "TOML list of trusted transmitters of security events (OpenID Shared Signals): a [[transmitter]] table for each, and a [policy] that says what each event does. Transmitters push to the edge, at /api/auth/events (docs/signals.md).",
        ),
        setting(
            RECEIVERS,
            "",
            "FILE",
            "TOML list of systems that get signed events of endings (OpenID Shared Signals): issuer, signing_key_file and a [[receiver]] table for each (docs/signals.md).",
        ),
    ],
};

/// The receivers; mistakes of the file are mistakes of the setting.
pub(crate) fn receivers(reader: &mut Reader<'_>) -> Option<Receivers> {
    let path = reader.path(RECEIVERS)?;
    reader.toml_file(RECEIVERS, &path, transmitter::parse)
}

/// The trusted transmitters, whose keys are fetched through the proxy; mistakes of the file are mistakes of the setting.
pub(super) fn transmitters(
    reader: &mut Reader<'_>,
    proxy: Option<&ForwardProxy>,
    providers: &ConfiguredProviders,
) -> Option<TransmittersFile> {
    let path = reader.path(TRANSMITTERS)?;
    let mut file = reader.toml_file(TRANSMITTERS, &path, receiver::parse)?;
    for transmitter in &mut file.transmitters {
        transmitter.settings.proxy = proxy.cloned();
        let mut issuers = providers.settings().map(|settings| &settings.issuer);
        if !issuers.any(|issuer| *issuer == transmitter.provider) {
            let (id, provider) = (&transmitter.id, &transmitter.provider);
            reader.warn(
                TRANSMITTERS,
                format!("transmitter {id:?} reports on sessions of {provider}, which is not a configured provider: set provider to the issuer people sign in at"),
            );
        }
    }
    Some(file)
}
