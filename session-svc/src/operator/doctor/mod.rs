//! `doctor`: do the settings of the service fit its store and its providers?
//!
//! Invariants
//! - It reads the settings and speaks to others by the very code that serves.
//! - It changes no session: what it writes into the store is a record of its own, which is gone afterwards.
//! - Every wait is bounded, and what hangs is a finding.

mod callers;
mod store;

use chassis::clock::{Clock as _, SystemClock};
use chassis::findings::{Report, Section};
use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{ArgMatches, Command};
use provider_settings::checkup::{self, Part};

use super::store_access::StoreAccess;
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
        let now = SystemClock.now_secs();
        let (mut checks, party) = checkup::examine(&provider.settings, Part::Refresh, now).await;
        if let Some(party) = party {
            checks.push(checkup::try_refresh(&party, SystemClock.now_secs()).await);
        }
        let title = checkup::title(provider, settings.providers.listed);
        sections.push(Section { title, checks });
    }
    let access = StoreAccess::new(settings.store.clone());
    sections.push(Section {
        title: format!("Store ({})", access.kind()),
        checks: store::examined(settings, &access).await,
    });
    sections.push(Section {
        title: format!("Who may call, at {}", settings.listen),
        checks: callers::examined(settings),
    });
    Report { sections }
}
