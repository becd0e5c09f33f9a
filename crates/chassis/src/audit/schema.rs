//! The schema of audit records: which events there are, which fields, and what they mean.
//!
//! `docs/audit-log.md` has the same for people; a test holds the two together. A field that is added raises the minor number, one
//! that is renamed, removed or means something else the major one.

/// The version of the schema, in every record.
pub(crate) const VERSION: &str = "1.0";

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Event {
    /// A process started.
    #[default]
    ProcessStart,
    /// A process stopped.
    ProcessStop,
    /// A file of settings, keys or certificates was read again, or refused.
    ConfigurationReload,
    /// Records found no room and were dropped; `count` says how many.
    AuditLoss,
    /// Somebody signed in, or was refused.
    SignIn,
    /// Somebody signed out.
    SignOut,
    /// The provider signed somebody out, or its message was refused.
    ProviderLogout,
    /// A call of the session service that changes something, hands out a token, reads what belongs to somebody without its secret, or was
    /// refused.
    ApiCall,
    /// A watch ended.
    WatchEnd,
    /// A session ended.
    SessionEnd,
    /// Tokens of a session were refreshed, or not.
    TokenRefresh,
    /// A session was bound to its device, or somebody with its cookie could not prove to be there.
    DeviceBinding,
    /// A transmitter of security events told of something.
    SecurityEvent,
    /// A header for an application, or a claim within one, could not be written.
    HeaderLeftOut,
}

impl Event {
    /// As records name it.
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

    /// What the format adds to a record, and what it makes of an error.
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
        assert_eq!(rows("OCSF"), rows("Events"));
    }
}
