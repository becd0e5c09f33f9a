//! The policy: the action for each event, with a safe default.
//!
//! Unknown events and RISC's opt-in and opt-out events deliberately have no row: their action is `note`.

use std::collections::BTreeMap;

use chassis::settings::toml_file::{Table, Value};
use ssf::SecurityEvent;

use crate::sessions::EventAction;

/// The prefix of an action that demands an authentication class.
const ACR: &str = "acr:";

/// Longest authentication class, in bytes.
const ACR_BYTES_MAX: usize = 512;

/// The rows and their defaults. An event ends sessions if the account is gone or another person may be signed
/// in. An event demands a new sign-in if the earlier one may be too weak now.
static ROWS: [(&str, &str); 22] = [
    ("session-revoked", "end"),
    ("sessions-revoked", "end"),
    ("account-disabled", "end"),
    ("account-purged", "end"),
    ("identifier-recycled", "end"),
    ("credential-compromise", "end"),
    ("credential-change", "sign_in"),
    ("credential-created", "note"),
    ("account-credential-change-required", "sign_in"),
    ("assurance-level-change", "sign_in"),
    ("assurance-level-increased", "note"),
    ("device-compliance-change", "sign_in"),
    ("device-compliant", "note"),
    ("risk-level-high", "sign_in"),
    ("risk-level-change", "note"),
    ("token-claims-change", "claims"),
    ("identifier-changed", "note"),
    ("account-enabled", "note"),
    ("recovery-activated", "note"),
    ("recovery-information-changed", "note"),
    ("session-established", "note"),
    ("session-presented", "note"),
];

/// The rows that a settings file contains, each with its action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventPolicy(BTreeMap<&'static str, String>);

impl EventPolicy {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let rows = ROWS.iter();
        let given = rows.filter_map(|(row, _)| Some((*row, action(table.get(row)?)?)));
        Self(given.collect())
    }

    /// The action for an event, and its word in records: from this policy, else from `others`, else the default.
    pub(super) fn action(&self, others: &Self, event: &SecurityEvent) -> (EventAction, &'static str) {
        let row = event.policy_row;
        let given = self.0.get(row).or_else(|| others.0.get(row));
        let default = ROWS.iter().find(|(name, _)| *name == row);
        let default = default.map_or("note", |(_, action)| *action);
        match given.map_or(default, String::as_str) {
            "end" => (EventAction::End, "end"),
            "sign_in" => (EventAction::DemandSignIn(None), "sign_in"),
            "claims" => (EventAction::RefreshClaims(event.claims.clone()), "claims"),
            "note" => (EventAction::Note, "note"),
            acr => {
                let acr = acr.strip_prefix(ACR).unwrap_or(acr).trim();
                (EventAction::DemandSignIn(Some(acr.to_owned())), "acr")
            }
        }
    }
}

/// An action of a row: `end`, `sign_in`, `acr:` with one class, `claims` or `note`.
fn action(value: Value<'_>) -> Option<String> {
    let text = value.string()?;
    let is_class = |acr: &str| !acr.is_empty() && acr.len() <= ACR_BYTES_MAX && !acr.contains(' ');
    let has_class = text.strip_prefix(ACR).is_some_and(|acr| is_class(acr.trim()));
    if has_class || ["end", "sign_in", "claims", "note"].contains(&text.as_str()) {
        return Some(text);
    }
    value.wrong(format!(
        "action {text:?} is unknown: write \"end\", \"sign_in\", \"acr:CLASS\" with one class of authentication, \"claims\" or \"note\""
    ));
    None
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
