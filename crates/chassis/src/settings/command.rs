//! The command line, built from the settings' tables.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Service, Setting};

/// Longest line of the help, in columns.
const HELP_WIDTH: usize = 100;

/// The action that the command line requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Action {
    /// Run the service.
    #[default]
    Run,
    /// Validate the settings and exit.
    CheckConfig,
    /// Print the table of settings and exit.
    SettingsTable,
    /// Do what [`CommandLine::command`] names.
    Command,
}

/// The parsed command line.
#[derive(Default)]
pub(crate) struct CommandLine {
    /// The action.
    pub(crate) action: Action,
    /// Values given by flags, by variable name (`…_FILE` for a secret's file).
    pub(crate) values: BTreeMap<String, String>,
    /// The command given instead of serving, with its own arguments.
    pub(crate) command: Option<(String, ArgMatches)>,
}

/// Parses the command line (program name first). Errors: an unknown flag, or `--help` and `--version`,
/// which clap treats as errors that print to standard output and exit with 0.
pub(crate) fn parse_command_line(
    service: &Service,
    commands: impl IntoIterator<Item = Command>,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<CommandLine, clap::Error> {
    let commands = commands
        .into_iter()
        .map(|command| with_settings(service, command));
    let mut matches = command(service, commands.collect()).try_get_matches_from(arguments)?;
    let mut values = BTreeMap::new();
    take_settings(service, &matches, &mut values);
    let action = if matches.get_flag("settings-table") {
        Action::SettingsTable
    } else if matches.get_flag("check-config") {
        Action::CheckConfig
    } else if matches.subcommand_name().is_some() {
        Action::Command
    } else {
        Action::Run
    };
    Ok(CommandLine {
        action,
        values,
        command: matches.remove_subcommand(),
    })
}

/// Takes the settings' flags. A flag after a command overrides the same flag before it.
fn take_settings(service: &Service, matches: &ArgMatches, values: &mut BTreeMap<String, String>) {
    for setting in service.settings() {
        for id in [setting.name.to_owned(), setting.file_variable()] {
            // A command with subcommands has no settings, and only a secret has a file.
            if let Ok(Some(value)) = matches.try_get_one::<String>(&id) {
                values.insert(id, value.clone());
            }
        }
    }
    if let Some((_, matches)) = matches.subcommand() {
        take_settings(service, matches, values);
    }
}

/// Adds a flag for every setting to a command. Its help refers to the service's help for them.
fn with_settings(service: &Service, command: Command) -> Command {
    if command.has_subcommands() {
        return command.mut_subcommands(|inner| with_settings(service, inner));
    }
    let pointer = format!(
        "Every setting of the service is also a flag of this command: see `{} --help`.",
        service.name
    );
    let after = match command.get_after_help() {
        Some(own) => format!("{own}\n\n{pointer}"),
        None => pointer,
    };
    let topics = service.all_topics();
    let hidden = topics
        .flat_map(|topic| topic.settings.iter())
        .flat_map(|setting| arguments(service, setting));
    command
        .after_help(after)
        .max_term_width(HELP_WIDTH)
        .args(hidden.map(|argument| argument.hide(true)))
}

fn command(service: &Service, commands: Vec<Command>) -> Command {
    let mut command = Command::new(service.name)
        .about(service.about)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .max_term_width(HELP_WIDTH)
        .subcommands(commands)
        .arg(switch("check-config").help("Check the settings, report every mistake, and exit"))
        .arg(switch("settings-table").hide(true))
        .after_help("A first start needs only these settings. --help explains all of them.")
        .after_long_help(
            "Every setting is a flag and an environment variable. A flag overrides its variable; an empty variable counts as unset. \
             Commas separate the members of a list. Durations are whole seconds unless the name ends in _MS. \
             Traces go to OTEL_EXPORTER_OTLP_ENDPOINT; docs/operating.md lists the supported OTEL_ variables. \
             Exit codes: 0 after a clean shutdown, 1 after a failure, 2 for an unknown flag, \
             78 for wrong settings.",
        );
    for topic in service.all_topics() {
        command = command.next_help_heading(topic.title);
        let settings = topic.settings.iter();
        command = command.args(settings.flat_map(|setting| arguments(service, setting)));
    }
    command
}

fn switch(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue)
}

/// The flag of a setting, and that of its file if it is a secret.
fn arguments(service: &Service, setting: &Setting) -> impl Iterator<Item = Arg> + use<> {
    let file = setting.secret.then(|| file_argument(service, setting));
    let is_first = service.first_settings.contains(&setting.name);
    std::iter::once(argument(service, setting))
        .chain(file)
        .map(move |argument| argument.hide_short_help(!is_first))
}

fn argument(service: &Service, setting: &Setting) -> Arg {
    let default = match setting.default {
        "" => String::new(),
        // A long list needs spaces to wrap.
        default => format!(" [default: {}]", default.replace(',', ", ")),
    };
    let origin = format!("[env: {}]{default}", setting.name);
    let first_sentence = setting.help.split_inclusive(". ").next().unwrap_or_default();
    let argument = Arg::new(setting.name)
        .long(setting.flag(service.prefixes))
        .value_name(setting.value)
        .help(format!("{} {origin}", first_sentence.trim_end()))
        .long_help(format!("{} {origin}", setting.help));
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
    let flag = format!("{}-file", setting.flag(service.prefixes));
    let help = format!(
        "File that contains {}. Read again when it changes [env: {variable}]",
        setting.name
    );
    Arg::new(variable).long(flag).value_name("FILE").help(help)
}
