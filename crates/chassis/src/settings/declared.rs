//! How settings are declared, and those of every service.

/// One setting, as declared by its topic.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The environment variable, for example `EDGE_BASE_URL`.
    pub name: &'static str,
    /// The value if nothing is given; empty means none.
    pub default: &'static str,
    /// The kind or unit, one word: `URL`, `SECONDS`, `MS`, `LIST`, `FILE`, `BOOL`, … `help` lists choices.
    pub value: &'static str,
    /// Whether the value is secret: never shown, and also accepted as `NAME_FILE`.
    pub secret: bool,
    /// The description in the manual. `One of: a, b.` lists all choices; the Helm chart reads them there.
    pub help: &'static str,
}

/// A setting that is no secret, for the tables: name, default, kind or unit, what it does.
#[must_use]
pub const fn setting(
    name: &'static str,
    default: &'static str,
    value: &'static str,
    help: &'static str,
) -> Setting {
    Setting {
        name,
        default,
        value,
        secret: false,
        help,
    }
}

impl Setting {
    /// The flag without its dashes: kebab case, without a prefix of the service.
    pub(crate) fn flag(&self, prefixes: &[&str]) -> String {
        let own = prefixes.iter().find_map(|prefix| self.name.strip_prefix(prefix));
        own.unwrap_or(self.name).to_ascii_lowercase().replace('_', "-")
    }

    /// The flag as messages name it; empty for a standard variable, which has none.
    pub(super) fn shown_flag(&self, prefixes: &[&str]) -> String {
        if self.name.starts_with("OTEL_") {
            return String::new();
        }
        format!("--{}", self.flag(prefixes))
    }

    /// The variables it is read from, in order of priority. Proxy variables may be in lower case, as in other
    /// programs. The collector's address and protocol have a second variable that is for traces only.
    pub(crate) fn variables(&self) -> Vec<String> {
        let own = self.name.to_owned();
        match self.name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => vec!["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT".to_owned(), own],
            "OTEL_EXPORTER_OTLP_PROTOCOL" => vec!["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL".to_owned(), own],
            name if name.ends_with("_PROXY") => vec![own, name.to_ascii_lowercase()],
            _ => vec![own],
        }
    }

    /// The variable naming a file to read the secret from.
    pub fn file_variable(&self) -> String {
        format!("{}_FILE", self.name)
    }

    pub(super) fn is_boolean(&self) -> bool {
        self.value == "BOOL"
    }
}

/// Settings that belong together, shown under one title.
#[derive(Debug, Clone, Copy)]
pub struct Topic {
    /// The title in the manual.
    pub title: &'static str,
    /// The settings, in the order of the manual.
    pub settings: &'static [Setting],
}

/// A program: its name and all its settings. The settings of logs and of the audit log are added.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    /// The binary's name.
    pub name: &'static str,
    /// The prefixes of its own variables, for example `EDGE_`. Flags omit them.
    pub prefixes: &'static [&'static str],
    /// The prefix of variables shared with other services, if any; typing mistakes there are reported too.
    pub shared_prefix: Option<&'static str>,
    /// One sentence for the manual.
    pub about: &'static str,
    /// The settings that a first start needs: `-h` shows these alone.
    pub first_settings: &'static [&'static str],
    /// Its topics, in the order of the manual.
    pub topics: &'static [&'static Topic],
    /// Settings that the program reads and no user can set: their defaults are their values.
    pub fixed: &'static [Setting],
}

impl Service {
    /// All topics, including the shared ones.
    pub(crate) fn all_topics(&self) -> impl Iterator<Item = &'static Topic> + use<> {
        self.topics.iter().copied().chain([&LOG, &AUDIT])
    }

    /// All settings, including the shared ones and the standard variables.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.all_topics()
            .flat_map(|topic| topic.settings.iter())
            .chain(OPEN_TELEMETRY)
    }

    /// The setting of that variable name.
    pub(crate) fn setting(&self, name: &str) -> Option<&'static Setting> {
        self.settings()
            .chain(self.fixed)
            .find(|setting| setting.name == name)
    }
}

/// The log settings every service has.
pub(crate) static LOG: Topic = Topic {
    title: "Logs",
    settings: &[
        setting(
            "LOG_FORMAT",
            "",
            "FORMAT",
            "Format of log records. One of: json, pretty. The default is pretty on a terminal, and json otherwise.",
        ),
        setting(
            "RUST_LOG",
            "info",
            "FILTER",
            "Filter for log records, such as info or warn,auth_edge=debug.",
        ),
    ],
};

/// OpenTelemetry variables that every service supports or rejects by name. Platforms set them for all
/// programs, so they have no flags; docs/operating.md lists them.
static OPEN_TELEMETRY: &[Setting] = &[
    standard("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
    standard("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    standard("OTEL_TRACES_EXPORTER", "otlp"),
    standard("OTEL_SDK_DISABLED", "false"),
    standard("OTEL_PROPAGATORS", "tracecontext,baggage"),
    standard("OTEL_EXPORTER_OTLP_CERTIFICATE", ""),
    standard("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", ""),
    standard("OTEL_EXPORTER_OTLP_CLIENT_KEY", ""),
];

const fn standard(name: &'static str, default: &'static str) -> Setting {
    setting(name, default, "", "")
}

/// The audit settings every service has.
pub(crate) static AUDIT: Topic = Topic {
    title: "Audit log",
    settings: &[setting(
        "AUDIT_LOG",
        "stdout",
        "TARGET",
        "Where audit records go: stdout, off or a file. On stdout they are among the log records; LOG_FORMAT=pretty also applies to them. If the file is moved away, the program opens a new one within a second.",
    )],
};
