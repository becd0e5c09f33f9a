//! The schema of audit records: events, fields and their meaning.
//!
//! `docs/audit-log.md` documents the same; a test compares the two. Adding a field raises the minor version.
//! Renaming, removing or redefining a field raises the major version.

/// The version of the schema, in every record.
pub(crate) const VERSION: &str = "1.1";

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Event {
    /// A process started.
    #[default]
    ProcessStart,
    /// A process stopped.
    ProcessStop,
    /// A file with settings, keys or certificates was reloaded, or refused.
    ConfigurationReload,
    /// Records were dropped because the queue was full; `count` says how many.
    AuditLoss,
    /// A user signed in, or the sign-in was refused.
    SignIn,
    /// A user signed out.
    SignOut,
    /// The provider signed a user out, or its message was refused.
    ProviderLogout,
    /// A call to the session service that changes something, returns a token, reads user data without the
    /// session secret, or was refused.
    ApiCall,
    /// A watch ended.
    WatchEnd,
    /// A session ended.
    SessionEnd,
    /// A session's tokens were refreshed, or the refresh failed.
    TokenRefresh,
    /// A session was bound to its device, or a client with its cookie could not prove possession of the key.
    DeviceBinding,
    /// A transmitter sent a security event.
    SecurityEvent,
    /// A header for an application, or a claim in it, could not be written.
    HeaderLeftOut,
}

impl Event {
    /// The event's name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProcessStart => "process.start",
            Self::ProcessStop => "process.stop",
            Self::ConfigurationReload => "configuration.reload",
            Self::AuditLoss => "audit.loss",
            Self::SignIn => "sign_in",
            Self::SignOut => "sign_out",
            Self::ProviderLogout => "provider_logout",
            Self::ApiCall => "api.call",
            Self::WatchEnd => "api.watch_end",
            Self::SessionEnd => "session.end",
            Self::TokenRefresh => "token.refresh",
            Self::DeviceBinding => "device_binding",
            Self::SecurityEvent => "security_event",
            Self::HeaderLeftOut => "header_left_out",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::{Context, SubscriberExt as _};
    use tracing_subscriber::registry::Registry;

    use super::*;
    use crate::audit::{AuditRecord, Outcome};

    const MANUAL: &str = include_str!("../../../../docs/audit-log.md");

    /// Fields that the log format adds to a record.
    const OF_THE_LOG: [&str; 5] = ["target", "schema", "service", "timestamp", "error.sources"];

    const EVENTS: [Event; 14] = [
        Event::ProcessStart,
        Event::ProcessStop,
        Event::ConfigurationReload,
        Event::AuditLoss,
        Event::SignIn,
        Event::SignOut,
        Event::ProviderLogout,
        Event::ApiCall,
        Event::WatchEnd,
        Event::SessionEnd,
        Event::TokenRefresh,
        Event::DeviceBinding,
        Event::SecurityEvent,
        Event::HeaderLeftOut,
    ];

    /// The first cell of every row of the table below a heading.
    fn rows(heading: &str) -> BTreeSet<String> {
        let (_, below) = MANUAL.split_once(&format!("\n## {heading}\n")).unwrap();
        let section = below.split("\n## ").next().unwrap();
        let named = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        named.map(|(name, _)| name.to_owned()).collect()
    }

    #[derive(Clone, Default)]
    struct FieldNames(Arc<Mutex<BTreeSet<String>>>);

    impl tracing_subscriber::Layer<Registry> for FieldNames {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, Registry>) {
            let names = event
                .metadata()
                .fields()
                .iter()
                .map(|field| field.name().to_owned());
            self.0.lock().unwrap().extend(names);
        }
    }

    #[test]
    fn the_manual_has_every_event_and_field_and_no_other() {
        let events: BTreeSet<String> = EVENTS.iter().map(|event| event.name().to_owned()).collect();
        assert_eq!(rows("Events"), events);

        let names = FieldNames::default();
        let subscriber = Registry::default().with(names.clone());
        tracing::subscriber::with_default(subscriber, || {
            AuditRecord::new(Event::SignIn, Outcome::Success).write();
        });
        let mut fields = names.0.lock().unwrap().clone();
        assert!(fields.remove("message"), "for people who read records as lines");
        fields.extend(OF_THE_LOG.map(str::to_owned));
        assert_eq!(rows("Fields"), fields);
        assert!(
            MANUAL.contains(&format!("schema {VERSION}")),
            "the manual names the version"
        );
    }

    #[test]
    fn every_event_is_mapped_to_a_class_of_ocsf() {
        for event in EVENTS {
            let begin = format!("| `{}` |", event.name());
            let row = MANUAL.lines().find(|line| line.starts_with(&begin)).unwrap();
            let class = row.rsplit(" | ").next().unwrap();
            let uid = class.get(..4).and_then(|uid| uid.parse::<u16>().ok());
            assert!(uid.is_some() && class.contains(": "), "{row}");
        }
    }
}
