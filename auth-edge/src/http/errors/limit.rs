//! Limits of the edge's own that refuse requests, by the names the metric `limit_hits_total` has for them.

use super::HttpError;

/// Which limit refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Requests worked on at once, of everybody.
    Requests,
    /// Requests at once, of one visitor.
    VisitorShare,
    /// Sign-ins that one address begins in a minute.
    Logins,
    /// Callbacks without a pending sign-in from one address in a minute.
    Callbacks,
    /// Logout tokens from one address in a minute.
    BackChannelLogouts,
    /// Security events from one address that were refused, in a minute.
    SecurityEvents,
    /// Front-channel logouts from one address in a minute.
    FrontChannelLogouts,
    /// Access tokens or proofs of one sender that were worth nothing, in a minute.
    AccessTokens,
    /// Access tokens that are being verified, or whose proofs are remembered, at once.
    TokenChecks,
    /// Bytes of a request's body.
    BodyBytes,
    /// How long a request's body may be silent.
    BodyTime,
    /// Pages of one person that listen to their sessions.
    WatchesOfPerson,
    /// Calls of one person at once that read or end several sessions.
    ListsOfPerson,
}

impl Limit {
    /// Their labels, in the order of the variants.
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

    /// Its label.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl HttpError {
    /// The limit that refused the request, if one did.
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
