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
    /// All of them.
    pub(crate) const ALL: [Self; 13] = [
        Self::Requests,
        Self::VisitorShare,
        Self::Logins,
        Self::Callbacks,
        Self::BackChannelLogouts,
        Self::SecurityEvents,
        Self::FrontChannelLogouts,
        Self::AccessTokens,
        Self::TokenChecks,
        Self::BodyBytes,
        Self::BodyTime,
        Self::WatchesOfPerson,
        Self::ListsOfPerson,
    ];

    /// Its label.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::VisitorShare => "visitor_share",
            Self::Logins => "logins",
            Self::Callbacks => "callbacks",
            Self::BackChannelLogouts => "back_channel_logouts",
            Self::SecurityEvents => "security_events",
            Self::FrontChannelLogouts => "front_channel_logouts",
            Self::AccessTokens => "access_tokens",
            Self::TokenChecks => "token_checks",
            Self::BodyBytes => "body_bytes",
            Self::BodyTime => "body_time",
            Self::WatchesOfPerson => "watches_of_person",
            Self::ListsOfPerson => "lists_of_person",
        }
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
