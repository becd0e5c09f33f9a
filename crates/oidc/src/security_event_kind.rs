//! What has happened: the events of CAEP 1.0 (section 3), RISC 1.0 (section 2) and of streams themselves (OpenID Shared Signals
//! Framework 1.0 sections 8.1.4.1 and 8.1.5), with what they say of themselves. They have no `Debug` output: much of it is about
//! people.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What has happened to the subject.
#[derive(Clone, PartialEq)]
pub enum SecurityEventKind {
    /// The session, or whatever sessions the subject matches, was revoked (CAEP 1.0 section 3.1).
    SessionRevoked,
    /// Claims of a token have changed (CAEP 1.0 section 3.2).
    TokenClaimsChange {
        /// The claims that have changed with their new values, at least one.
        claims: Map<String, Value>,
    },
    /// A credential was created, changed, revoked or deleted (CAEP 1.0 section 3.3).
    CredentialChange(CredentialChange),
    /// Somebody has authenticated in a stronger or a weaker way (CAEP 1.0 section 3.4).
    AssuranceLevelChange(AssuranceLevelChange),
    /// A device complies with the rules for devices, or does so no more (CAEP 1.0 section 3.5).
    DeviceComplianceChange {
        /// Before.
        previous: DeviceCompliance,
        /// Now.
        current: DeviceCompliance,
    },
    /// The transmitter has established a session (CAEP 1.0 section 3.6).
    SessionEstablished(EstablishedSession),
    /// The transmitter has seen a session in use (CAEP 1.0 section 3.7).
    SessionPresented {
        /// A fingerprint of the browser; it identifies no session.
        user_agent: Option<String>,
        /// The session this one belongs to.
        external_id: Option<String>,
    },
    /// The subject is judged to be a greater or a smaller risk (CAEP 1.0 section 3.8).
    RiskLevelChange(RiskLevelChange),
    /// The account had to change a credential (RISC 1.0 section 2.1).
    AccountCredentialChangeRequired,
    /// The account was deleted for good (RISC 1.0 section 2.2).
    AccountPurged,
    /// The account was disabled (RISC 1.0 section 2.3).
    AccountDisabled {
        /// Why: `hijacking` or `bulk-account`.
        reason: Option<String>,
    },
    /// The account was enabled (RISC 1.0 section 2.4).
    AccountEnabled,
    /// An email address or a telephone number, which is the subject, has changed (RISC 1.0 section 2.5).
    IdentifierChanged {
        /// The new one.
        new_value: Option<String>,
    },
    /// An email address or a telephone number belongs to somebody else now (RISC 1.0 section 2.6).
    IdentifierRecycled,
    /// A credential is known to be compromised (RISC 1.0 section 2.7).
    CredentialCompromise {
        /// The type of credential, of those of CAEP 1.0 section 3.3.1.
        credential_type: String,
    },
    /// The account takes part in the exchange of RISC events (RISC 1.0 section 2.8.1).
    OptIn,
    /// The account wants to take part no more (RISC 1.0 section 2.8.2).
    OptOutInitiated,
    /// The account takes part all the same (RISC 1.0 section 2.8.3).
    OptOutCancelled,
    /// The account takes part no more (RISC 1.0 section 2.8.4).
    OptOutEffective,
    /// The account has begun to be recovered (RISC 1.0 section 2.9).
    RecoveryActivated,
    /// What the account is recovered by has changed (RISC 1.0 section 2.10).
    RecoveryInformationChanged,
    /// All sessions of the account were revoked: the deprecated form of [`Self::SessionRevoked`] (RISC 1.0 section 2.11).
    SessionsRevoked,
    /// The stream works (SSF 1.0 section 8.1.4.1); the subject is its id.
    Verification {
        /// What the receiver has given with its request; absent where the transmitter verifies of its own accord.
        state: Option<String>,
    },
    /// The transmitter has changed the status of the stream (SSF 1.0 section 8.1.5); the subject is its id.
    StreamUpdated {
        /// The status now.
        status: StreamStatus,
        /// Why.
        reason: Option<String>,
    },
    /// Something of a type that is not known here.
    Other,
}

/// A change of a credential (CAEP 1.0 section 3.3.1).
#[derive(Clone, PartialEq, Eq)]
pub struct CredentialChange {
    /// `password`, `pin`, `x509`, `fido2-platform`, `fido2-roaming`, `fido-u2f`, `verifiable-credential`, `phone-voice`,
    /// `phone-sms`, `app`, or what else transmitter and receiver have agreed on.
    pub credential_type: String,
    /// What has happened to it.
    pub change: CredentialChangeType,
    /// What its holder calls it.
    pub friendly_name: Option<String>,
    /// Issuer of an X.509 certificate (RFC 5280).
    pub x509_issuer: Option<String>,
    /// Serial number of an X.509 certificate (RFC 5280).
    pub x509_serial: Option<String>,
    /// Which model of authenticator it is on (AAGUID of WebAuthn).
    pub fido2_aaguid: Option<String>,
}

/// What has happened to a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CredentialChangeType {
    /// It is new.
    Create,
    /// It must not be used any more.
    Revoke,
    /// It was replaced.
    Update,
    /// It is gone.
    Delete,
}

/// A change of the way somebody has authenticated (CAEP 1.0 section 3.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssuranceLevelChange {
    /// What the levels are levels of: `RFC8176`, `NIST-AAL` and others.
    pub namespace: String,
    /// The level now.
    pub current_level: String,
    /// The level before; `None` where the transmitter does not know it.
    pub previous_level: Option<String>,
    /// Which way it has changed, where the transmitter says so.
    pub direction: Option<ChangeDirection>,
}

/// Which way a level has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeDirection {
    /// It is higher than before.
    Increase,
    /// It is lower than before.
    Decrease,
}

/// Whether a device complies with the rules for devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceCompliance {
    /// It does.
    Compliant,
    /// It does not.
    NotCompliant,
}

/// A session of the transmitter (CAEP 1.0 section 3.6.1).
#[derive(Clone, PartialEq, Eq)]
pub struct EstablishedSession {
    /// A fingerprint of the browser; it identifies no session.
    pub user_agent: Option<String>,
    /// The class of the authentication, as in an ID token.
    pub acr: Option<String>,
    /// The methods of the authentication, as in an ID token; empty where it is not told.
    pub amr: Vec<String>,
    /// The session this one belongs to.
    pub external_id: Option<String>,
}

/// A change of how the subject is judged (CAEP 1.0 section 3.8.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RiskLevelChange {
    /// What has contributed to it.
    pub reason: Option<String>,
    /// What kind of principal is a risk: `USER`, `DEVICE`, `SESSION`, `TENANT`, `ORG_UNIT`, `GROUP` or another of SSF 1.0.
    pub principal: String,
    /// The level now.
    pub current: RiskLevel,
    /// The level before; `None` where the transmitter does not know it.
    pub previous: Option<RiskLevel>,
}

/// How great a risk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RiskLevel {
    /// Small.
    Low,
    /// Considerable.
    Medium,
    /// Great.
    High,
}

/// The status of a stream (SSF 1.0 section 8.1.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamStatus {
    /// Events are sent.
    Enabled,
    /// Events are held, as far as the transmitter does.
    Paused,
    /// Events are neither sent nor held.
    Disabled,
}
