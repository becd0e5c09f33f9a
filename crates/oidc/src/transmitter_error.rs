//! What can go wrong where a transmitter is asked to manage a stream, or for events.
//!
//! No variant holds a token or a secret, and of the transmitter's own words only those whose characters and length are bounded.

use crate::{OAuthError, ProviderError};

/// A transmitter did not do what it was asked for; each says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum TransmitterError {
    /// Its configuration cannot be had.
    #[error(
        "the transmitter's configuration can not be had: ask again later, and check its issuer if that does not help"
    )]
    Configuration(#[source] ProviderError),
    /// Its configuration names no such endpoint, or one that must not be used (SSF 1.0 section 7.2.4).
    #[error(
        "the transmitter's configuration has no {endpoint} that can be used: arrange with its operator what that is for"
    )]
    NotOffered {
        /// Its name in the configuration.
        endpoint: &'static str,
    },
    /// The authorization server could not be asked for a token.
    #[error(
        "no access token for the transmitter can be had: ask again later, and check token_endpoint if that does not help"
    )]
    Token(#[source] ProviderError),
    /// The authorization server refused a token (RFC 6749 section 5.2).
    #[error("an access token for the transmitter was refused ({0}): check client, secret and scope")]
    TokenRefused(OAuthError),
    /// The authorization server's answer holds no bearer token (RFC 6749 section 5.1).
    #[error(
        "the answer of the token endpoint holds no bearer token: check that this client is registered for the grant client_credentials and for bearer tokens"
    )]
    TokenUnusable,
    /// 401, by a token that is new too.
    #[error("the transmitter does not take the credentials of this receiver (status 401): give it others")]
    Unauthorized,
    /// 403.
    #[error(
        "the transmitter does not allow this to this receiver (status 403): ask its operator for the right, or for another scope"
    )]
    Forbidden,
    /// 404.
    #[error(
        "the transmitter knows no such stream of this receiver (status 404): forget it, and create another one"
    )]
    NoSuchStream,
    /// 409 (SSF 1.0 section 8.1.1.1).
    #[error(
        "the transmitter allows this receiver one stream, and it exists already (status 409): delete it there, or receive by it"
    )]
    StreamExists,
    /// 400.
    #[error(
        "the transmitter finds the request wrong (status 400): check the way of delivery, its address and the types of events"
    )]
    Rejected,
    /// 429 (SSF 1.0 section 8.1.4.2).
    #[error("the transmitter was asked too often (status 429): ask again{}", after(*.retry_after_secs))]
    TooManyRequests {
        /// How long to wait, where it says so.
        retry_after_secs: Option<u64>,
    },
    /// 202: taken and not done yet (SSF 1.0 sections 8.1.1.3 and 8.1.2.2).
    #[error(
        "the transmitter has taken the change and not made it yet (status 202): the same request tells later whether it has"
    )]
    Pending,
    /// No answer, or none that can be read.
    #[error("the transmitter gave no usable answer: ask again later")]
    Unanswered(#[source] ProviderError),
    /// The answer is another issuer's (SSF 1.0 sections 8.1.1.1 to 8.1.1.4).
    #[error(
        "the transmitter's answer names another issuer than its configuration: it must not be used, ask its operator"
    )]
    Issuer,
    /// The answer is about another stream than the one it was asked about.
    #[error("the transmitter's answer is about another stream: it must not be used, ask its operator")]
    OtherStream,
    /// The stream that was created is for none of the receiver's names; it was deleted again.
    #[error(
        "the stream is for {named:?}, which is no name of this receiver; it was deleted again: configure that audience, or arrange another one with the transmitter's operator"
    )]
    Audience {
        /// Whom it is for, as far as it can be shown.
        named: String,
    },
    /// The stream that was created delivers events in another way than the one asked for; it was deleted again.
    #[error(
        "the stream delivers events in another way than the one asked for, or without https; it was deleted again: ask for a way that the transmitter offers"
    )]
    Delivery,
    /// The address to poll at is not https although the transmitter is not on loopback.
    #[error("the transmitter's address to poll at does not use https: it must not be used, ask its operator")]
    InsecurePollEndpoint,
}

fn after(secs: Option<u64>) -> String {
    secs.map_or_else(|| " later".to_owned(), |secs| format!(" in {secs} s"))
}

impl TransmitterError {
    /// A short name that stays, for logs and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Configuration(_) => "configuration",
            Self::NotOffered { .. } => "not_offered",
            Self::Token(_) => "token",
            Self::TokenRefused(_) => "token_refused",
            Self::TokenUnusable => "token_unusable",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NoSuchStream => "no_such_stream",
            Self::StreamExists => "stream_exists",
            Self::Rejected => "rejected",
            Self::TooManyRequests { .. } => "too_many_requests",
            Self::Pending => "pending",
            Self::Unanswered(_) => "unanswered",
            Self::Issuer => "issuer",
            Self::OtherStream => "other_stream",
            Self::Audience { .. } => "audience",
            Self::Delivery => "delivery",
            Self::InsecurePollEndpoint => "insecure_poll_endpoint",
        }
    }

    /// Whether a long poll ended since nothing came in time, which is no failure.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Unanswered(ProviderError::Timeout { .. }))
    }

    /// Whether the answer was longer than fewer events would make it.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Unanswered(ProviderError::TooLarge { .. }))
    }
}
