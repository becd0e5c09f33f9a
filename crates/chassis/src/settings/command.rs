//! The command line, built from the settings' tables.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

use super::{Service, Setting};

/// What the command line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Action {
    /// Run the service.
    #[default]
    Run,
    /// Validate the settings and exit.
    CheckConfig,
    /// Print the table of settings and exit.
    SettingsTable,
}

/// The command line, taken apart.
#[derive(Default)]
pub struct Given {
    /// What to do.
    pub action: Action,
    /// Values given by flags, by variable name (`…_FILE` for a secret's file).
    pub values: BTreeMap<String, String>,
}

/// Takes the command line apart (program name first). Errors: an unknown flag, or `--help` and `--version`, which
/// clap treats as errors that print to standard output and exit with 0.
pub fn given(service: &Service, arguments: impl IntoIterator<Item = OsString>) -> Result<Given, clap::Error> {
    let matches = command(service).try_get_matches_from(arguments)?;
    let mut values = BTreeMap::new();
    for setting in service.settings() {
        let mut take = |id: &str| {
            if let Some(value) = matches.get_one::<String>(id) {
                values.insert(id.to_owned(), value.clone());
            }
        };
        take(setting.name);
        if setting.secret {
            take(&setting.file_variable());
        }
    }
    let action = if matches.get_flag("settings-table") {
        Action::SettingsTable
    } else if matches.get_flag("check-config") {
        Action::CheckConfig
    } else {
        Action::Run
    };
    Ok(Given { action, values })
}

fn command(service: &Service) -> Command {
    let mut command = Command::new(service.name)
        .about(service.about)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .max_term_width(110)
        .arg(switch("check-config").help("Validate the settings, say what is wrong with them, and exit"))
        .arg(switch("settings-table").hide(true))
        .after_help(
            "Every setting is a flag and an environment variable; the flag wins, an empty variable counts as unset. \
             Lists are separated by commas. Durations are whole seconds unless the name ends in _MS. \
             Exit codes: 0 after a drained shutdown, 1 when running failed, 2 for an unknown flag, \
             78 for wrong settings.",
        );
    for topic in service.all_topics() {
        command = command.next_help_heading(topic.title);
        for setting in topic.settings {
            command = command.arg(argument(service, setting));
            if setting.secret {
                command = command.arg(file_argument(service, setting));
            }
        }
    }
    command
}

fn switch(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue)
}

fn argument(service: &Service, setting: &Setting) -> Arg {
    let default = match setting.default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    let help = format!("{} [env: {}]{default}", setting.help, setting.name);
    let argument = Arg::new(setting.name)
        .long(setting.flag(service.prefix))
        .value_name(setting.value)
        .help(help);
    if setting.is_boolean() {
        argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
    } else {
        argument
    }
}

fn file_argument(service: &Service, setting: &Setting) -> Arg {
    let variable = setting.file_variable();
    let flag = format!("{}-file", setting.flag(service.prefix));
    let help = format!(
        "A file holding {}, re-read when it changes [env: {variable}]",
        setting.name
    );
    Arg::new(variable).long(flag).value_name("FILE").help(help)
}
