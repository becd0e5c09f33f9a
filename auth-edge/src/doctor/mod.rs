//! The command `auth-edge doctor`: checks the settings with every provider and the session service. Reports what does
//! not fit, how to fix it, and which addresses to register.
//!
//! Invariants
//! - It uses the running edge's code to read the settings and to call others.
//! - It signs no user in or out and changes nothing. Its calls of the session service cannot succeed.
//! - Every wait is bounded. A server that hangs is a finding.

mod addresses;
mod session_service;

use std::collections::BTreeSet;

use chassis::clock::{Clock as _, SystemClock};
use chassis::findings::{Check, Finding, Report, Section};
use chassis::tool::ReportTool;
use oidc::RedirectUrl;
use provider_settings::ConfiguredProvider;
use provider_settings::checkup;

use crate::providers::sites::Site;
use crate::settings::{self, EdgeSettings};
use crate::sign_in::ProviderLogout;

/// The command `doctor`.
pub static DOCTOR: ReportTool<EdgeSettings> = ReportTool {
    name: "doctor",
    about: "Contacts the provider and the session service with these settings, and reports what works and how to fix the rest",
    remarks: "Signs no user in and changes nothing. The provider's log shows one or two refused requests.",
    read: settings::read,
    examine: |settings| Box::pin(async move { examine(&settings).await }),
};

async fn examine(settings: &EdgeSettings) -> Report {
    let mut sections = Vec::new();
    for provider in &settings.providers.all {
        sections.push(Section {
            title: checkup::title(provider, settings.providers.listed),
            checks: examine_provider(settings, provider).await,
        });
        sections.push(addresses::to_register(settings, provider));
    }
    sections.push(Section {
        title: format!(
            "Session service {}",
            settings.session_service.addresses.join(", ")
        ),
        checks: session_service::examine(&settings.session_service).await,
    });
    let head_of_answers = Finding::information(format!(
        "at most {} bytes (EDGE_CHECK_HEAD_BYTES); the edge leaves out a longer header for an application, and the audit log names it (header_left_out)",
        settings.check_head_bytes
    ));
    sections.push(Section {
        title: "Checks for other proxies".to_owned(),
        checks: vec![("head_of_answers", head_of_answers)],
    });
    Report { sections }
}

/// Whether the provider lists the `acr` classes that routes require; `None` if no route requires one.
fn classes(settings: &EdgeSettings, provider: &ConfiguredProvider, listed: &[String]) -> Option<Finding> {
    let (routes, checks) = (settings.routes.routes.all(), settings.routes.checks.all());
    let rules = routes.iter().chain(checks).map(|route| &route.requirements);
    let of_provider =
        rules.filter(|required| required.connection.as_ref().is_none_or(|id| *id == provider.id));
    let required: BTreeSet<&String> = of_provider.flat_map(|required| &required.acr).collect();
    let required: Vec<String> = required.into_iter().cloned().collect();
    let mut missing = required.clone();
    missing.retain(|class| !listed.contains(class));
    Some(
        match (required.is_empty(), listed.is_empty(), missing.is_empty()) {
            (true, ..) => return None,
            (_, true, _) => Finding::unknown(format!(
                "{}; the provider does not list acr_values_supported",
                required.join(", ")
            )),
            (.., true) => Finding::fits(required.join(", ")),
            _ => Finding::warning(
                format!(
                    "routes require acr {}, which the provider does not list",
                    missing.join(", ")
                ),
                "EDGE_ROUTES: use values of acr_values_supported, or make the provider offer these",
            ),
        },
    )
}

async fn examine_provider(settings: &EdgeSettings, provider: &ConfiguredProvider) -> Vec<Check> {
    let now = SystemClock.now_secs();
    let reading = Some(settings.sign_in.userinfo_at_login);
    let (mut checks, party) = checkup::examine(&provider.settings, reading, now).await;
    let Some(party) = party else {
        return checks;
    };
    if let Ok(metadata) = party.metadata().await {
        let classes = classes(settings, provider, &metadata.acr_values);
        checks.extend(classes.map(|finding| ("authentication_classes", finding)));
    }
    let sites = settings.sites();
    // Sign-ins on a provider's own hosts differ only by the host.
    let Some(site) = sites.of_provider(&provider.settings.issuer).pop() else {
        return checks;
    };
    let redirect_uri = site.at(&settings.callback_path(provider));
    let landing = landing(settings, site, sites.main());
    if let Ok(redirect_uri) = RedirectUrl::new(redirect_uri) {
        let is_told = settings.sign_in.provider_logout == ProviderLogout::Oidc;
        let landing = is_told.then_some(landing.as_str());
        let now = SystemClock.now_secs();
        checks.extend(checkup::try_client(&party, &redirect_uri, landing, now).await);
    }
    checks
}

/// Where users land after sign-out at a site, unless `returnTo` says otherwise.
fn landing(settings: &EdgeSettings, site: &Site, main: &Site) -> String {
    site.here(main, &settings.sign_in.post_logout_redirect)
}
