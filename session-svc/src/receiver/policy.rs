//! What is done about which event: a table with a safe row for each.
//!
//! Deliberately absent: rows for events of other types, and for those of RISC about taking part in it. They are noted.

use std::collections::BTreeMap;

use chassis::settings::toml_file::{Table, Value};
use oidc::{
    ChangeDirection, CredentialChangeType, DeviceCompliance, RiskLevel, SecurityEvent, SecurityEventKind,
};

use crate::sessions::EventAction;

/// An action with a class of authentication begins with this.
const ACR: &str = "acr:";

/// Longest class of authentication, in bytes.
const ACR_BYTES_MAX: usize = 512;

/// What is done about an event.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PolicyAction {
    /// Sessions end.
    End,
    /// Their person has to sign in again.
    SignIn,
    /// The same, in this class of authentication.
    Acr(String),
    /// Their claims are brought up to date.
    Claims,
    /// Nothing but a record.
    Note,
}

impl PolicyAction {
    /// As the file writes it, but for the class.
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

/// The rows, and what is done unless the file says otherwise: what tells that somebody else may be in, or that an account is no more,
/// ends sessions; what tells that a sign-in was weaker, or of another time than it seemed, demands a new one.
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

/// What is done about which event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EventPolicy(BTreeMap<&'static str, PolicyAction>);

impl EventPolicy {
    /// Reads the table; a row that it does not have is as it is without it.
    pub(super) fn read(table: &Table<'_>) -> Self {
        let rows = ROWS.iter();
        let given = rows.filter_map(|(row, _)| Some((*row, action(table.get(row)?)?)));
        Self(given.collect())
    }

    /// What is done about an event, and the word for it in records: what this table says, or else that of `others`, or else what is usual.
    pub(super) fn action(&self, others: &Self, event: &SecurityEvent) -> (EventAction, &'static str) {
        let Some((row, usual)) = row(&event.kind).and_then(|row| ROWS.iter().find(|(name, _)| *name == row))
        else {
            return (EventAction::Note, PolicyAction::Note.name());
        };
        let action = self.0.get(row).or_else(|| others.0.get(row)).unwrap_or(usual);
        let ordered = match action {
            PolicyAction::End => EventAction::End,
            PolicyAction::SignIn => EventAction::DemandSignIn(None),
            PolicyAction::Acr(acr) => EventAction::DemandSignIn(Some(acr.clone())),
            PolicyAction::Claims => EventAction::RefreshClaims(match &event.kind {
                SecurityEventKind::TokenClaimsChange { claims } => claims.clone(),
                _ => serde_json::Map::new(),
            }),
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

/// The row of an event; `None` for one without. A change that says not which way it went is one for the worse.
fn row(kind: &SecurityEventKind) -> Option<&'static str> {
    Some(match kind {
        SecurityEventKind::SessionRevoked => "session-revoked",
        SecurityEventKind::SessionsRevoked => "sessions-revoked",
        SecurityEventKind::AccountDisabled { .. } => "account-disabled",
        SecurityEventKind::AccountPurged => "account-purged",
        SecurityEventKind::IdentifierRecycled => "identifier-recycled",
        SecurityEventKind::CredentialCompromise { .. } => "credential-compromise",
        SecurityEventKind::CredentialChange(change) if change.change == CredentialChangeType::Create => {
            "credential-created"
        }
        SecurityEventKind::CredentialChange(_) => "credential-change",
        SecurityEventKind::AccountCredentialChangeRequired => "account-credential-change-required",
        SecurityEventKind::AssuranceLevelChange(change)
            if change.direction == Some(ChangeDirection::Increase) =>
        {
            "assurance-level-increased"
        }
        SecurityEventKind::AssuranceLevelChange(_) => "assurance-level-change",
        SecurityEventKind::DeviceComplianceChange { current, .. } => match current {
            DeviceCompliance::Compliant => "device-compliant",
            DeviceCompliance::NotCompliant => "device-compliance-change",
        },
        SecurityEventKind::RiskLevelChange(change) if change.current == RiskLevel::High => "risk-level-high",
        SecurityEventKind::RiskLevelChange(_) => "risk-level-change",
        SecurityEventKind::TokenClaimsChange { .. } => "token-claims-change",
        SecurityEventKind::IdentifierChanged { .. } => "identifier-changed",
        SecurityEventKind::AccountEnabled => "account-enabled",
        SecurityEventKind::RecoveryActivated => "recovery-activated",
        SecurityEventKind::RecoveryInformationChanged => "recovery-information-changed",
        SecurityEventKind::SessionEstablished(_) => "session-established",
        SecurityEventKind::SessionPresented { .. } => "session-presented",
        SecurityEventKind::OptIn
        | SecurityEventKind::OptOutInitiated
        | SecurityEventKind::OptOutCancelled
        | SecurityEventKind::OptOutEffective
        | SecurityEventKind::Verification { .. }
        | SecurityEventKind::StreamUpdated { .. }
        | SecurityEventKind::Other => return None,
    })
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
