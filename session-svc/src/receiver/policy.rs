//! The policy: what each event does, with a safe default for each.
//!
//! Deliberately absent: rows for unknown events, and for the events of RISC about opting in and out. They are noted.

use std::collections::BTreeMap;

use chassis::settings::toml_file::{Table, Value};
use ssf::SecurityEvent;

use crate::sessions::EventAction;

/// The beginning of an action with an authentication class.
const ACR: &str = "acr:";

/// Longest authentication class, in bytes.
const ACR_BYTES_MAX: usize = 512;

/// What an event does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PolicyAction {
    /// Sessions end.
    End,
    /// Their user has to sign in again.
    SignIn,
    /// The same, in this authentication class.
    Acr(String),
    /// Their claims change.
    Claims,
    /// Nothing but a record.
    Note,
}

impl PolicyAction {
    /// Its word in the file and in records, without the class.
    fn name(&self) -> &'static str {
        match self {
            Self::End => "end",
            Self::SignIn => "sign_in",
            Self::Acr(_) => "acr",
            Self::Claims => "claims",
            Self::Note => "note",
        }
    }
}

/// The rows and their defaults. An event that another person may be signed in, or that an account is gone, ends sessions. An event that a
/// sign-in was weaker than it seemed demands a new one.
static ROWS: [(&str, PolicyAction); 22] = [
    ("session-revoked", PolicyAction::End),
    ("sessions-revoked", PolicyAction::End),
    ("account-disabled", PolicyAction::End),
    ("account-purged", PolicyAction::End),
    ("identifier-recycled", PolicyAction::End),
    ("credential-compromise", PolicyAction::End),
    ("credential-change", PolicyAction::SignIn),
    ("credential-created", PolicyAction::Note),
    ("account-credential-change-required", PolicyAction::SignIn),
    ("assurance-level-change", PolicyAction::SignIn),
    ("assurance-level-increased", PolicyAction::Note),
    ("device-compliance-change", PolicyAction::SignIn),
    ("device-compliant", PolicyAction::Note),
    ("risk-level-high", PolicyAction::SignIn),
    ("risk-level-change", PolicyAction::Note),
    ("token-claims-change", PolicyAction::Claims),
    ("identifier-changed", PolicyAction::Note),
    ("account-enabled", PolicyAction::Note),
    ("recovery-activated", PolicyAction::Note),
    ("recovery-information-changed", PolicyAction::Note),
    ("session-established", PolicyAction::Note),
    ("session-presented", PolicyAction::Note),
];

/// The rows of a file that differ from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventPolicy(BTreeMap<&'static str, PolicyAction>);

impl EventPolicy {
    /// Reads a table.
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let rows = ROWS.iter();
        let given = rows.filter_map(|(row, _)| Some((*row, action(table.get(row)?)?)));
        Self(given.collect())
    }

    /// What an event does, and the word for it in records: by this table, else by `others`, else by default.
    pub(super) fn action(&self, others: &Self, event: &SecurityEvent) -> (EventAction, &'static str) {
        let row = event.policy_row;
        let default = || {
            ROWS.iter()
                .find(|(name, _)| *name == row)
                .map(|(_, action)| action)
        };
        let action = self.0.get(row).or_else(|| others.0.get(row)).or_else(default);
        let action = action.unwrap_or(&PolicyAction::Note);
        let ordered = match action {
            PolicyAction::End => EventAction::End,
            PolicyAction::SignIn => EventAction::DemandSignIn(None),
            PolicyAction::Acr(acr) => EventAction::DemandSignIn(Some(acr.clone())),
            PolicyAction::Claims => EventAction::RefreshClaims(event.claims.clone()),
            PolicyAction::Note => EventAction::Note,
        };
        (ordered, action.name())
    }
}

fn action(value: Value<'_>) -> Option<PolicyAction> {
    let text = value.string()?;
    let acr = text.strip_prefix(ACR).map(str::trim);
    Some(match (text.as_str(), acr) {
        (_, Some(acr)) if !acr.is_empty() && acr.len() <= ACR_BYTES_MAX && !acr.contains(' ') => {
            PolicyAction::Acr(acr.to_owned())
        }
        ("end", _) => PolicyAction::End,
        ("sign_in", _) => PolicyAction::SignIn,
        ("claims", _) => PolicyAction::Claims,
        ("note", _) => PolicyAction::Note,
        _ => {
            value.wrong(format!(
                "action {text:?} is unknown: write \"end\", \"sign_in\", \"acr:CLASS\" with one class of authentication, \"claims\" or \"note\""
            ));
            return None;
        }
    })
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
