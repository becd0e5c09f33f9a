//! Does it fit? The command `auth-edge doctor`: contacts every provider and the session service with the settings of the edge, and
//! says what does not fit, what mends it, and which addresses are to be registered.
//!
//! Invariants
//! - It reads the settings and speaks to others by the very code that serves.
//! - It signs nobody in or out and changes nothing; its calls of the session service are such that none can succeed.
//! - Every wait is bounded, and what hangs is a finding.

mod addresses;
mod session_service;
mod trouble;

use std::collections::BTreeSet;

use chassis::clock::{Clock as _, SystemClock};
use chassis::findings::{Finding, Remedy, Report, Section};
use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{ArgMatches, Command};
use oidc::{RedirectUrl, RelyingParty};
use provider_settings::ConfiguredProvider;
use provider_settings::checkup::{self, SignInUris};

use crate::providers::sites::Site;
use crate::settings::{self, EdgeSettings};
use crate::sign_in::ProviderLogout;

/// The command `doctor`.
pub struct DoctorTool;

impl Tool for DoctorTool {
    fn command(&self) -> Command {
        Command::new("doctor")
            .about("Contacts the provider and the session service with these settings, and says what fits and what mends the rest")
            .after_help(
                "Signs nobody in and changes nothing; the provider's log shows a refused request or two. \
                 Exit codes: 0 everything fits (there may be warnings), 1 something does not fit, 2 used wrongly, 78 wrong settings.",
            )
    }

    fn prepare(
        &self,
        _given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<Warning>), SettingsError> {
        let settings = settings::read(&mut reader);
        let (settings, warnings) = reader.finish(settings)?;
        let work = async move { examined(&settings).await.print() };
        Ok((Box::pin(work), warnings))
    }
}

async fn examined(settings: &EdgeSettings) -> Report {
    let mut sections = Vec::new();
    for (at, provider) in settings.providers.all.iter().enumerate() {
        let findings = of_provider(settings, at, provider).await;
        sections.push(Section {
            title: checkup::title(provider, settings.providers.listed),
            findings,
        });
        sections.push(addresses::to_register(settings, at, provider));
    }
    sections.push(Section {
        title: format!("Session service {}", settings.session_service.join(", ")),
        findings: session_service::examined(settings).await,
    });
    sections.push(Section {
        title: "Checks of other proxies".to_owned(),
        findings: vec![head_of_answers(settings.check_head_bytes)],
    });
    Report { sections }
}

/// Whether the provider lists the classes that routes require of its people; nothing where none does.
fn classes(settings: &EdgeSettings, provider: &ConfiguredProvider, listed: &[String]) -> Option<Finding> {
    let id = "authentication_classes";
    let rules = settings
        .routes
        .routes
        .all()
        .iter()
        .chain(settings.routes.checks.all());
    let routes = rules.map(|route| &route.requirements);
    let of_provider =
        routes.filter(|required| required.connection.as_ref().is_none_or(|id| *id == provider.id));
    let required: BTreeSet<&str> = of_provider
        .flat_map(|required| &required.acr)
        .map(String::as_str)
        .collect();
    let missing: Vec<&str> = required
        .iter()
        .copied()
        .filter(|class| !listed.iter().any(|one| one == class))
        .collect();
    let all = || required.iter().copied().collect::<Vec<_>>().join(", ");
    match (required.is_empty(), listed.is_empty(), missing.is_empty()) {
        (true, ..) => None,
        (_, true, _) => Some(Finding::unknown(
            id,
            format!("{}; the provider does not list acr_values_supported", all()),
        )),
        (.., true) => Some(Finding::fits(id, all())),
        _ => Some(Finding::warning(
            id,
            format!(
                "routes require acr {}, which the provider does not list",
                missing.join(", ")
            ),
            Remedy::set(
                "EDGE_ROUTES",
                "write classes of acr_values_supported, or have the provider offer these",
            ),
        )),
    }
}

/// What becomes of headers that a proxy's buffer has no room for.
fn head_of_answers(most: usize) -> Finding {
    let found = format!(
        "at most {most} bytes (EDGE_CHECK_HEAD_BYTES); a longer header for an application is left out, and the audit log says which (header_left_out)"
    );
    Finding::information("head_of_answers", found)
}

async fn of_provider(settings: &EdgeSettings, at: usize, provider: &ConfiguredProvider) -> Vec<Finding> {
    let party = match RelyingParty::new(provider.settings.clone()) {
        Ok(party) => party,
        Err(error) => {
            let found = chassis::findings::chain(&error);
            let remedy = Remedy::set(
                "OIDC_ISSUER_URL",
                "see that the files named by the settings are still there",
            );
            return vec![Finding::problem("discovery", found, remedy)];
        }
    };
    let examined = checkup::examine(&party, settings.part(), SystemClock.now_secs()).await;
    let mut findings = examined.findings;
    if !examined.usable {
        findings.push(Finding::unknown(
            "client_credentials",
            "not tried: what is above has to fit first",
        ));
        return findings;
    }
    if let Ok(metadata) = party.metadata().await {
        findings.extend(classes(settings, provider, &metadata.acr_values));
    }
    let sites = settings.sites();
    // Sign-ins at a provider's own hosts differ from this one by the host alone.
    let Some(site) = addresses::sites_of(&sites, at).pop() else {
        return findings;
    };
    let redirect_uri = site.at(&settings.callback_path(provider));
    let landing = landing(settings, site, sites.main());
    if let Ok(redirect_uri) = RedirectUrl::new(redirect_uri) {
        let uris = SignInUris {
            redirect_uri: &redirect_uri,
            landing: (settings.sign_in.provider_logout == ProviderLogout::Oidc).then_some(landing.as_str()),
        };
        findings.extend(checkup::try_client(&party, uris, SystemClock.now_secs()).await);
    }
    findings
}

/// Where people land after signing out at a site, where no `returnTo` says otherwise.
fn landing(settings: &EdgeSettings, site: &Site, main: &Site) -> String {
    site.here(main, &settings.sign_in.post_logout_redirect)
}
