//! Whom we listen to for security events; whom we tell of endings, and where they come to us.

use chassis::settings::{Reader, Topic, setting};
use chassis::tls::TlsFiles;

use oidc::ForwardProxy;
use provider_settings::ConfiguredProviders;

use crate::receiver::{self, ListenedTransmitters};
use crate::transmitter::{self, SignalTransmitterSettings};

const TRANSMITTERS: &str = "SESSION_TRANSMITTERS";
const LISTEN: &str = "SESSION_SIGNALS_LISTEN";
const RECEIVERS: &str = "SESSION_RECEIVERS";

pub(super) static TOPIC: Topic = Topic {
    title: "Shared Signals",
    settings: &[
        setting(
            TRANSMITTERS,
            "",
            "FILE",
            "TOML list of whom to listen to for security events (OpenID Shared Signals): a [[transmitter]] table for each, and a [policy] of what is done about which event. Edges take what is pushed, at /api/auth/events.",
        ),
        setting(
            RECEIVERS,
            "",
            "FILE",
            "TOML list of systems that are told of endings by signed events (OpenID Shared Signals): issuer, signing_key_file and a [[receiver]] table for each, docs/signals.md. Without it nobody is told.",
        ),
        setting(
            LISTEN,
            "off",
            "ADDRESS",
            "Where receivers find our metadata and keys, manage their streams and fetch events, over HTTP; required with SESSION_RECEIVERS. TLS is that of SESSION_TLS_CERT_FILE, without certificates of clients.",
        ),
    ],
};

/// The transmitter; the mistakes of its file are mistakes of the setting.
pub(super) fn transmitter(
    reader: &mut Reader<'_>,
    tls: Option<&TlsFiles>,
) -> Option<SignalTransmitterSettings> {
    let listen = reader.socket_addr(LISTEN);
    let Some(path) = reader.path(RECEIVERS) else {
        if listen.is_some() {
            reader.wrong(LISTEN, "needs SESSION_RECEIVERS: there is nobody who would come");
        }
        return None;
    };
    let receivers = reader.toml_file(RECEIVERS, &path, transmitter::parse);
    if listen.is_none() && !reader.is_wrong(LISTEN) {
        reader.wrong(
            LISTEN,
            "is required with SESSION_RECEIVERS: receivers verify events by the keys that are there",
        );
    }
    let listen = listen?;
    if tls.is_none() && !listen.ip().is_loopback() && !reader.flag("SESSION_INSECURE") {
        reader.wrong(
            LISTEN,
            "is not loopback: set SESSION_TLS_CERT_FILE and SESSION_TLS_KEY_FILE, or SESSION_INSECURE to allow plaintext",
        );
    }
    Some(SignalTransmitterSettings {
        listen,
        tls: tls.map(|files| TlsFiles {
            client_ca: None,
            ..files.clone()
        }),
        receivers: receivers?,
    })
}

/// Whom to listen to, through this proxy; mistakes of the file are mistakes of the setting.
pub(crate) fn transmitters(
    reader: &mut Reader<'_>,
    proxy: Option<&ForwardProxy>,
    providers: Option<&ConfiguredProviders>,
) -> Option<ListenedTransmitters> {
    let path = reader.path(TRANSMITTERS)?;
    let mut file = reader.toml_file(TRANSMITTERS, &path, receiver::parse)?;
    for transmitter in &mut file.transmitters {
        transmitter.settings.proxy = proxy.cloned();
        let is_known = |providers: &ConfiguredProviders| {
            providers
                .settings()
                .any(|settings| settings.issuer == transmitter.provider)
        };
        if !providers.is_none_or(is_known) {
            let (id, provider) = (&transmitter.id, &transmitter.provider);
            reader.warn(
                TRANSMITTERS,
                format!("transmitter {id:?} tells of sessions of {provider}, which is no provider that is configured: set provider to the issuer people sign in at"),
            );
        }
    }
    Some(ListenedTransmitters { path, file })
}
