//! `check-store`: can the store be reached, may the service do there what it needs, are the servers set up to keep sessions?

use chassis::findings::Report;
use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgMatches, Command};

use super::memory_size;
use super::store::{self, StoreAccess};
use crate::settings;
use crate::store::url::StoreSettings;

/// The command.
pub(super) struct CheckStoreTool;

impl Tool for CheckStoreTool {
    fn command(&self) -> Command {
        Command::new("check-store")
            .about("Checks the store: that it can be reached, that its rights are enough, and how its servers are set up")
            .arg(
                Arg::new("server-memory")
                    .long("server-memory")
                    .env("OPERATOR_SERVER_MEMORY")
                    .hide_env_values(true)
                    .value_name("MEMORY")
                    .value_parser(memory_size::parse)
                    .help("How much each server of the store may take, if that is less than its machine has: the memory limit of its container (512Mi, or bytes), which the server does not know"),
            )
            .after_help(
                "Writes a record of its own and removes it. A file has to be free: stop its service first. \
                 Exit codes: 0 healthy, 1 there is a problem, 2 used wrongly, 78 wrong settings.",
            )
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<Warning>), SettingsError> {
        let server_memory = given.get_one::<u64>("server-memory").copied();
        let access = read(&mut reader);
        let (access, warnings) = reader.finish(access)?;
        let work = async move {
            let sections = vec![store::examine(&access, server_memory).await];
            Report { sections }.print()
        };
        Ok((Box::pin(work), warnings))
    }
}

/// Reads where the store is. A store that ends with its process is refused.
fn read(reader: &mut Reader<'_>) -> StoreAccess {
    let (store, keys, _) = settings::store_and_keys(reader);
    let store = settings::with_ending_replicas(reader, store);
    if matches!(store, StoreSettings::Memory) {
        reader.wrong(
            "SESSION_STORE",
            "is memory:, which no other process can look into: name the store the service uses",
        );
    }
    StoreAccess {
        store,
        keys: keys.len(),
        may_be_served: false,
    }
}
