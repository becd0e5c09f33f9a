//! The edge's own limits, with their labels in the metric `limit_hits_total`.

use super::HttpError;

/// The limit that rejected a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Concurrent requests, over all visitors.
    Requests,
    /// Concurrent requests of one visitor.
    VisitorShare,
    /// Sign-ins that start at one address, per minute.
    Logins,
    /// Callbacks without a pending sign-in from one address, per minute.
    Callbacks,
    /// Logout tokens from one address, per minute.
    BackChannelLogouts,
    /// Rejected security events and revocation requests from one address, per minute.
    SecurityEvents,
    /// Front-channel logouts from one address, per minute.
    FrontChannelLogouts,
    /// Rejected access tokens or proofs of one sender, per minute.
    AccessTokens,
    /// Access tokens that the edge verifies, or whose proofs it remembers, at one time.
    TokenChecks,
    /// Bytes of a request's body.
    BodyBytes,
    /// How long a client may pause within a request's body.
    BodyTime,
    /// Pages of one user that listen to their sessions.
    WatchesOfPerson,
    /// Concurrent calls of one user that read or end several sessions.
    ListsOfPerson,
}

impl Limit {
    /// The labels, in the order of the variants.
    pub(crate) const NAMES: [&str; 13] = [
        "requests",
        "visitor_share",
        "logins",
        "callbacks",
        "back_channel_logouts",
        "security_events",
        "front_channel_logouts",
        "access_tokens",
        "token_checks",
        "body_bytes",
        "body_time",
        "watches_of_person",
        "lists_of_person",
    ];

    /// The label of this limit.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl HttpError {
    /// The limit that rejected the request, if a limit did.
    #[must_use]
    pub(crate) fn limit(&self) -> Option<Limit> {
        match self {
            Self::RateLimited { limit, .. } | Self::Overloaded(limit) => Some(*limit),
            Self::TooLarge => Some(Limit::BodyBytes),
            Self::TooSlow => Some(Limit::BodyTime),
            _ => None,
        }
    }
}
