//! The types of events, and how an event of each is read.
//!
//! An event whose type is not known is no error: whoever receives it passes it over. One whose type is known has all that its
//! definition requires, or is refused with the name of what is missing (RFC 8935 section 2.4, `invalid_request`); what is
//! optional and malformed counts as absent, so that nobody's session outlives its revocation for the sake of a remark.
//!
//! Deliberately absent: types of drafts, and the `subject` within an event, since `sub_id` is there whenever it is (SSF 1.0
//! section 3.1.1).

use serde::de::{DeserializeOwned, IntoDeserializer as _, value};
use serde_json::{Map, Value};

use crate::SecurityEventError;
use crate::security_event_kind::{
    AssuranceLevelChange, CredentialChange, EstablishedSession, RiskLevelChange, SecurityEventKind,
};

/// Longest text of an event in bytes.
const MAX_TEXT_BYTES: usize = 1_024;
/// Most authentication methods of a session (`amr`); RFC 8176 names twenty.
const MAX_METHODS: usize = 32;

macro_rules! caep {
    ($name:literal) => {
        concat!("https://schemas.openid.net/secevent/caep/event-type/", $name)
    };
}

macro_rules! risc {
    ($name:literal) => {
        concat!("https://schemas.openid.net/secevent/risc/event-type/", $name)
    };
}

macro_rules! ssf {
    ($name:literal) => {
        concat!("https://schemas.openid.net/secevent/ssf/event-type/", $name)
    };
}

/// The types of events that are known, as a stream is asked for them (`events_requested`, SSF 1.0 section 8.1.1).
pub const SECURITY_EVENT_TYPES: [&str; 24] = [
    caep!("session-revoked"),
    caep!("token-claims-change"),
    caep!("credential-change"),
    caep!("assurance-level-change"),
    caep!("device-compliance-change"),
    caep!("session-established"),
    caep!("session-presented"),
    caep!("risk-level-change"),
    risc!("account-credential-change-required"),
    risc!("account-purged"),
    risc!("account-disabled"),
    risc!("account-enabled"),
    risc!("identifier-changed"),
    risc!("identifier-recycled"),
    risc!("credential-compromise"),
    risc!("opt-in"),
    risc!("opt-out-initiated"),
    risc!("opt-out-cancelled"),
    risc!("opt-out-effective"),
    risc!("recovery-activated"),
    risc!("recovery-information-changed"),
    risc!("sessions-revoked"),
    ssf!("verification"),
    ssf!("stream-updated"),
];

impl SecurityEventKind {
    /// Reads the event of this type.
    ///
    /// # Errors
    /// [`SecurityEventError::Payload`]: the type is known and what it requires is absent or malformed.
    pub(crate) fn of(event_type: &str, members: &Map<String, Value>) -> Result<Self, SecurityEventError> {
        let known = SECURITY_EVENT_TYPES
            .into_iter()
            .find(|known| *known == event_type);
        let Some(event_type) = known else {
            return Ok(Self::Other);
        };
        let payload = Payload { event_type, members };
        Ok(match event_type {
            caep!("session-revoked") => Self::SessionRevoked,
            caep!("token-claims-change") => Self::TokenClaimsChange {
                claims: payload.required_members("claims")?,
            },
            caep!("credential-change") => Self::CredentialChange(payload.credential_change()?),
            caep!("assurance-level-change") => Self::AssuranceLevelChange(payload.assurance_level_change()?),
            caep!("device-compliance-change") => Self::DeviceComplianceChange {
                previous: payload.required_choice("previous_status")?,
                current: payload.required_choice("current_status")?,
            },
            caep!("session-established") => Self::SessionEstablished(payload.established_session()),
            caep!("session-presented") => Self::SessionPresented {
                user_agent: payload.text("fp_ua"),
                external_id: payload.text("ext_id"),
            },
            caep!("risk-level-change") => Self::RiskLevelChange(payload.risk_level_change()?),
            risc!("account-credential-change-required") => Self::AccountCredentialChangeRequired,
            risc!("account-purged") => Self::AccountPurged,
            risc!("account-disabled") => Self::AccountDisabled {
                reason: payload.text("reason"),
            },
            risc!("account-enabled") => Self::AccountEnabled,
            risc!("identifier-changed") => Self::IdentifierChanged {
                new_value: payload.text("new-value"),
            },
            risc!("identifier-recycled") => Self::IdentifierRecycled,
            risc!("credential-compromise") => Self::CredentialCompromise {
                credential_type: payload.required_text("credential_type")?,
            },
            risc!("opt-in") => Self::OptIn,
            risc!("opt-out-initiated") => Self::OptOutInitiated,
            risc!("opt-out-cancelled") => Self::OptOutCancelled,
            risc!("opt-out-effective") => Self::OptOutEffective,
            risc!("recovery-activated") => Self::RecoveryActivated,
            risc!("recovery-information-changed") => Self::RecoveryInformationChanged,
            risc!("sessions-revoked") => Self::SessionsRevoked,
            ssf!("verification") => Self::Verification {
                state: payload.text_if_any("state")?,
            },
            ssf!("stream-updated") => Self::StreamUpdated {
                status: payload.required_choice("status")?,
                reason: payload.text("reason"),
            },
            _ => Self::Other,
        })
    }
}

/// What an event of a known type says of itself.
#[derive(Clone, Copy)]
struct Payload<'a> {
    event_type: &'static str,
    members: &'a Map<String, Value>,
}

impl Payload<'_> {
    fn missing(self, member: &'static str) -> SecurityEventError {
        let event_type = self.event_type;
        SecurityEventError::Payload { event_type, member }
    }

    /// A text; what is none, is empty or too long counts as absent.
    fn text(self, member: &str) -> Option<String> {
        let text = self.members.get(member).and_then(Value::as_str);
        text.filter(|text| !text.is_empty() && text.len() <= MAX_TEXT_BYTES)
            .map(str::to_owned)
    }

    fn required_text(self, member: &'static str) -> Result<String, SecurityEventError> {
        self.text(member).ok_or_else(|| self.missing(member))
    }

    /// A text that may be absent, but not malformed.
    fn text_if_any(self, member: &'static str) -> Result<Option<String>, SecurityEventError> {
        if !self.members.contains_key(member) {
            return Ok(None);
        }
        self.required_text(member).map(Some)
    }

    /// One of the texts that a definition names; what is none of them counts as absent.
    fn choice<T: DeserializeOwned>(self, member: &str) -> Option<T> {
        let text = self.members.get(member)?.as_str()?;
        T::deserialize(text.into_deserializer())
            .map_err(|_: value::Error| ())
            .ok()
    }

    fn required_choice<T: DeserializeOwned>(self, member: &'static str) -> Result<T, SecurityEventError> {
        self.choice(member).ok_or_else(|| self.missing(member))
    }

    /// An object with at least one member.
    fn required_members(self, member: &'static str) -> Result<Map<String, Value>, SecurityEventError> {
        let members = self.members.get(member).and_then(Value::as_object);
        let members = members.filter(|members| !members.is_empty()).cloned();
        members.ok_or_else(|| self.missing(member))
    }

    fn credential_change(self) -> Result<CredentialChange, SecurityEventError> {
        Ok(CredentialChange {
            credential_type: self.required_text("credential_type")?,
            change: self.required_choice("change_type")?,
            friendly_name: self.text("friendly_name"),
            x509_issuer: self.text("x509_issuer"),
            x509_serial: self.text("x509_serial"),
            fido2_aaguid: self.text("fido2_aaguid"),
        })
    }

    fn assurance_level_change(self) -> Result<AssuranceLevelChange, SecurityEventError> {
        Ok(AssuranceLevelChange {
            namespace: self.required_text("namespace")?,
            current_level: self.required_text("current_level")?,
            previous_level: self.text("previous_level"),
            direction: self.choice("change_direction"),
        })
    }

    fn established_session(self) -> EstablishedSession {
        let methods = self.members.get("amr").and_then(Value::as_array);
        let methods = methods.into_iter().flatten().filter_map(Value::as_str);
        let methods = methods
            .filter(|method| method.len() <= MAX_TEXT_BYTES)
            .take(MAX_METHODS);
        EstablishedSession {
            user_agent: self.text("fp_ua"),
            acr: self.text("acr"),
            amr: methods.map(str::to_owned).collect(),
            external_id: self.text("ext_id"),
        }
    }

    fn risk_level_change(self) -> Result<RiskLevelChange, SecurityEventError> {
        Ok(RiskLevelChange {
            reason: self.text("risk_reason"),
            principal: self.required_text("principal")?,
            current: self.required_choice("current_level")?,
            previous: self.choice("previous_level"),
        })
    }
}

#[cfg(test)]
#[path = "security_event_types_tests.rs"]
mod tests;
