//! Settings: declared once as tables, given as flags, environment variables or secret files, read in one go.
//!
//! Invariants: a flag overrides the environment. An empty variable counts as unset. Reading continues after a
//! mistake, so that all are reported. No message holds a secret. Deliberately absent: one file of all
//! settings ([`toml_file`] is for tables that settings name), and undeclared settings.

mod command;
mod declared;
mod listen_address;
mod mistakes;
mod nearest;
mod reader;
mod source;
mod table;
pub mod toml_file;

pub(crate) use command::{Action, CommandLine, parse_command_line};
pub use declared::{Service, Setting, Topic, setting};
pub use mistakes::{SettingNotice, SettingsError};
pub use nearest::unknown;
pub use reader::{Reader, Zero};
pub use source::Source;
pub(crate) use table::markdown;

/// The topic with a service's admin address and drain delay: `process_topic!("EDGE_", "127.0.0.1:9300")`.
#[macro_export]
macro_rules! process_topic {
    ($prefix:literal, $admin:literal) => {
        $crate::settings::Topic {
            title: "Process",
            settings: &[
                $crate::settings::setting(
                    concat!($prefix, "ADMIN_LISTEN"),
                    $admin,
                    "ADDRESS",
                    "Address of /livez, /readyz and /metrics over plain HTTP, or off. Do not expose it to the public. An IPv6 address needs brackets, an IPv4 address may have them: [fd00::5]:9300, [10.0.0.7]:9300.",
                ),
                $crate::settings::setting(
                    "DRAIN_DELAY",
                    "0",
                    "SECONDS",
                    "How long the program accepts new requests after SIGTERM, so that load balancers notice. In this time /readyz already answers 503. Use 0 if something else waits, such as a preStop hook.",
                ),
            ],
        }
    };
}
