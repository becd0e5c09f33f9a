//! `doctor`: checks that the settings of the service fit its store and its providers.
//!
//! Invariants
//! - It reads the settings and contacts the provider and the store with the same code as the service.
//! - It changes no session. It writes only its own record into the store, and removes it.
//! - Every wait is bounded. A timeout is a finding.

use chassis::clock::{Clock as _, SystemClock};
use chassis::findings::{Finding, Report, Section, chain};
use chassis::tool::ReportTool;
use provider_settings::checkup;

use super::store::{self, StoreAccess};
use crate::settings::{self, Settings};
use crate::transit::{self, KeyLoader};

/// The command.
pub(super) static DOCTOR: ReportTool<Settings> = ReportTool {
    name: "doctor",
    about: "Contacts the provider and the store with these settings, and reports what works and how to fix the rest",
    remarks: "Changes no session; the provider's log shows a refused request.",
    read: settings::read,
    examine: |settings| Box::pin(async move { examine(&settings).await }),
};

async fn examine(settings: &Settings) -> Report {
    let mut sections = Vec::new();
    for provider in &settings.providers.all {
        let now = SystemClock.now_secs();
        let (mut checks, party) = checkup::examine(&provider.settings, None, now).await;
        if let Some(party) = party {
            checks.push(checkup::try_refresh(&party, SystemClock.now_secs()).await);
        }
        let title = checkup::title(provider, settings.providers.listed);
        sections.push(Section { title, checks });
    }
    let access = StoreAccess {
        store: settings.store.clone(),
        keys: settings.keys.len(),
        may_be_served: true,
    };
    sections.push(store::examine(&access).await);
    if let Some(transit) = &settings.transit {
        sections.push(Section {
            title: format!("Vault {}", transit.address),
            checks: vec![("vault", unwrapping(settings).await)],
        });
    }
    sections.push(Section {
        title: format!("Who may call, at {}", settings.listen),
        checks: vec![("transport", transport(settings)), ("callers", callers(settings))],
    });
    Report { sections }
}

/// Unwraps the keys as a start does, once.
async fn unwrapping(settings: &Settings) -> Finding {
    if !transit::is_any_wrapped(&settings.keys) {
        return Finding::information("no key of SESSION_ENCRYPTION_KEY is wrapped");
    }
    let loaded = KeyLoader::new(settings.transit.clone(), None)
        .load(&settings.keys)
        .await;
    match loaded {
        Ok(_) => Finding::fits("unwraps the keys of SESSION_ENCRYPTION_KEY"),
        Err(error) => Finding::problem(
            chain(&error),
            "SESSION_VAULT_ADDR: see docs/vault.md; until it works, no session service can start",
        ),
    }
}

fn transport(settings: &Settings) -> Finding {
    match &settings.tls {
        Some(tls) if tls.client_ca.is_some() => Finding::fits("TLS, and every caller shows a certificate"),
        Some(_) => Finding::information("TLS; callers show no certificate"),
        None if settings.listen.ip().is_loopback() => Finding::fits("plaintext, on this machine alone"),
        None => Finding::warning(
            "plaintext: anyone who reaches the address can read and end sessions, and read what others send",
            "SESSION_TLS_CERT_FILE: set this, SESSION_TLS_KEY_FILE and SESSION_CLIENT_CA_FILE, or use a network policy that allows only the edge",
        ),
    }
}

fn callers(settings: &Settings) -> Finding {
    let by_certificate = settings.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    match &settings.callers {
        Some((path, policy)) => {
            let (count, path) = (policy.0.len(), path.display());
            Finding::fits(format!("{count} listed in {path}"))
        }
        None if by_certificate => Finding::information(
            "every client with a certificate of SESSION_CLIENT_CA_FILE may call everything",
        )
        .advise("SESSION_CALLERS: list the callers and their methods, if clients other than the edge have such a certificate"),
        None => Finding::information("every client that reaches the address may call everything"),
    }
}
