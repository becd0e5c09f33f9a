//! `doctor`: do the settings of the service fit its store and its providers?
//!
//! Invariants
//! - It reads the settings and speaks to others by the very code that serves.
//! - It changes no session: what it writes into the store is a record of its own, which is gone afterwards.
//! - Every wait is bounded, and what hangs is a finding.

mod callers;
mod store;

use chassis::clock::{Clock as _, SystemClock};
use chassis::findings::{Finding, Remedy, Report, Section, chain};
use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{ArgMatches, Command};
use oidc::RelyingParty;
use provider_settings::ConfiguredProvider;
use provider_settings::checkup::{self, Part};

use crate::settings::{self, Settings};

/// The command.
pub(super) struct DoctorTool;

impl Tool for DoctorTool {
    fn command(&self) -> Command {
        Command::new("doctor")
            .about("Contacts the provider and the store with these settings, and says what fits and what mends the rest")
            .after_help(
                "Changes no session; the provider's log shows a refused request. `check-store` looks at all that is in the store. \
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

async fn examined(settings: &Settings) -> Report {
    let mut sections = Vec::new();
    for provider in &settings.providers.all {
        let findings = of_provider(provider).await;
        sections.push(Section {
            title: checkup::title(provider, settings.providers.listed),
            findings,
        });
    }
    sections.push(Section {
        title: format!("Store ({})", store::kind(settings)),
        findings: store::examined(settings).await,
    });
    sections.push(Section {
        title: format!("Who may call, at {}", settings.listen),
        findings: callers::examined(settings),
    });
    Report { sections }
}

async fn of_provider(provider: &ConfiguredProvider) -> Vec<Finding> {
    let party = match RelyingParty::new(provider.settings.clone()) {
        Ok(party) => party,
        Err(error) => {
            let remedy = Remedy::set(
                "OIDC_ISSUER_URL",
                "see that the files named by the settings are still there",
            );
            return vec![Finding::problem("discovery", chain(&error), remedy)];
        }
    };
    let examined = checkup::examine(&party, Part::Refresh, SystemClock.now_secs()).await;
    let mut findings = examined.findings;
    findings.push(match examined.usable {
        true => checkup::try_refresh(&party, SystemClock.now_secs()).await,
        false => Finding::unknown("client_credentials", "not tried: what is above has to fit first"),
    });
    findings
}
