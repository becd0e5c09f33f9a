//! Who may call this service, by its settings.

use chassis::findings::{Check, Finding};

use crate::settings::Settings;

/// What the settings say about callers.
pub(super) fn examined(settings: &Settings) -> Vec<Check> {
    vec![("transport", transport(settings)), ("callers", callers(settings))]
}

fn transport(settings: &Settings) -> Finding {
    match &settings.tls {
        Some(tls) if tls.client_ca.is_some() => Finding::fits("TLS, and every caller shows a certificate"),
        Some(_) => Finding::information("TLS; callers show no certificate"),
        None if settings.listen.ip().is_loopback() => Finding::fits("plaintext, on this machine alone"),
        None => Finding::warning(
            "plaintext: anyone who reaches the address can read and end sessions, and listen to those who do",
            "SESSION_TLS_CERT_FILE: set this, SESSION_TLS_KEY_FILE and SESSION_CLIENT_CA_FILE, or see that a network policy lets none but the edge in",
        ),
    }
}

fn callers(settings: &Settings) -> Finding {
    let by_certificate = settings.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    match &settings.callers {
        Some(listed) => {
            let count = listed.policy.len();
            let plural = if count == 1 { "" } else { "s" };
            Finding::fits(format!(
                "{count} caller{plural}, listed in {}",
                listed.path.display()
            ))
        }
        None if by_certificate => Finding::information(
            "every client with a certificate of SESSION_CLIENT_CA_FILE may call everything",
        )
        .advise("SESSION_CALLERS: list who may call what, if more than the edge has such a certificate"),
        None => Finding::information("whoever reaches the address may call everything"),
    }
}
