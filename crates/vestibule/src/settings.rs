//! The program's settings: four of its own, and those of the services that make sense in one process.

use auth_edge::settings::{ADDRESSES, ANALYTICS, COOKIES, EdgeSettings, GATEWAY, PAGES, SIGN_IN, SIGN_OUT};
use chassis::process_topic;
use chassis::settings::{Reader, Service, Setting, Topic, setting};
use session_svc::settings::{
    API_SERVERS, DURATIONS, LIMITS, OPERATORS, STORE, Settings as SessionSettings, signals, transit,
};

/// The program and all its settings.
pub(crate) static SERVICE: Service = Service {
    name: "vestibule",
    prefixes: &["EDGE_", "OIDC_"],
    shared_prefix: Some("SESSION_"),
    about: "Guards an application on one machine: signs users in at an OpenID provider and forwards their requests.",
    first_settings: &[
        "EDGE_UPSTREAM",
        "EDGE_EMAIL_DOMAIN",
        "EDGE_ROUTES",
        "EDGE_DATA_DIR",
        "EDGE_LISTEN",
        "EDGE_BASE_URL",
        "EDGE_TRUSTED_PROXIES",
        "OIDC_ISSUER_URL",
        "OIDC_CLIENT_ID",
        "OIDC_CLIENT_SECRET",
    ],
    topics: &[
        &ONE_PROGRAM,
        &ADDRESSES,
        &PROCESS,
        &provider_settings::TOPIC,
        &COOKIES,
        &SIGN_IN,
        &SIGN_OUT,
        &PAGES,
        &GATEWAY,
        &STORE,
        &transit::TOPIC,
        &DURATIONS,
        &LIMITS,
        &API_SERVERS,
        &OPERATORS,
        &signals::TOPIC,
        &ANALYTICS,
    ],
    fixed: &[
        fixed("EDGE_SESSION_SVC_URL", "http://127.0.0.1"),
        fixed("EDGE_SESSION_SVC_CA_FILE", ""),
        fixed("EDGE_SESSION_SVC_CERT_FILE", ""),
        fixed("EDGE_SESSION_SVC_KEY_FILE", ""),
        fixed("EDGE_SESSION_CACHE_SECS", "5"),
        fixed("SESSION_LISTEN", "127.0.0.1:0"),
        fixed("SESSION_TLS_CERT_FILE", ""),
        fixed("SESSION_TLS_KEY_FILE", ""),
        fixed("SESSION_CLIENT_CA_FILE", ""),
        fixed("SESSION_CALLERS", ""),
        fixed("SESSION_INSECURE", "false"),
    ],
};

static PROCESS: Topic = process_topic!("EDGE_", "127.0.0.1:9300");

static ONE_PROGRAM: Topic = Topic {
    title: "One program",
    settings: &[
        setting(
            "EDGE_UPSTREAM",
            "",
            "URL",
            "Address of the application that the program guards, such as http://127.0.0.1:8080. Give this or EDGE_ROUTES.",
        ),
        setting(
            "EDGE_EMAIL_DOMAIN",
            "",
            "LIST",
            "Domains whose verified e-mail addresses may pass, such as example.com. *.example.com is every domain below it. Without it, every account of the provider may pass. With EDGE_ROUTES, write [allow] in that file instead.",
        ),
        setting(
            "EDGE_DATA_DIR",
            "vestibule-data",
            "DIRECTORY",
            "Folder for the sessions, the program's own secrets and its account pages. The first start creates it.",
        ),
    ],
};

/// A setting that has one value in one process.
const fn fixed(name: &'static str, value: &'static str) -> Setting {
    setting(name, value, "", "")
}

/// The settings of both services.
pub(crate) struct Settings {
    pub(crate) edge: EdgeSettings,
    pub(crate) sessions: SessionSettings,
}

/// Reads and validates all settings.
pub(crate) fn read(reader: &mut Reader<'_>) -> Settings {
    Settings {
        edge: auth_edge::settings::read(reader),
        sessions: session_svc::settings::read(reader),
    }
}
