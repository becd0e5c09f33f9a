//! Why a session ended: one word of a closed list, in events, in the audit log and at rest.

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The person signed out in this browser.
    Logout,
    /// The person signed this browser out from another one.
    OtherDevice,
    /// The provider said so behind the browser's back.
    BackChannelLogout,
    /// The provider said so in the browser.
    FrontChannelLogout,
    /// Whoever runs the service ended it.
    Operator,
    /// The person signed in anew in the same browser.
    Replaced,
    /// The person had more sessions than allowed.
    SessionLimit,
    /// A refresh brought the tokens of somebody else.
    TokenMismatch,
    /// The sign-in it came from was given up.
    Abandoned,
    /// A copy of its cookie was used.
    Theft,
    /// A security event said so.
    SecurityEvent,
    /// The provider refused its refresh token, and sessions are revalidated.
    Refused,
    /// Anything else: what a later release says, or a caller of an earlier one said in words of its own.
    Other,
}

impl Cause {
    /// All of them.
    pub(crate) const ALL: [Self; 13] = [
        Self::Logout,
        Self::OtherDevice,
        Self::BackChannelLogout,
        Self::FrontChannelLogout,
        Self::Operator,
        Self::Replaced,
        Self::SessionLimit,
        Self::TokenMismatch,
        Self::Abandoned,
        Self::Theft,
        Self::SecurityEvent,
        Self::Refused,
        Self::Other,
    ];

    /// As the audit log and sealed events write it.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Logout => "logout",
            Self::OtherDevice => "other_device",
            Self::BackChannelLogout => "back_channel_logout",
            Self::FrontChannelLogout => "front_channel_logout",
            Self::Operator => "operator",
            Self::Replaced => "replaced",
            Self::SessionLimit => "session_limit",
            Self::TokenMismatch => "token_mismatch",
            Self::Abandoned => "abandoned",
            Self::Theft => "theft",
            Self::SecurityEvent => "security_event",
            Self::Refused => "refused",
            Self::Other => "other",
        }
    }

    /// The cause of this name; `Other` for an unknown name.
    #[must_use]
    pub(crate) fn of_name(name: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|cause| cause.name() == name)
            .unwrap_or(Self::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_known_by_its_name_and_other_words_are_other() {
        for cause in Cause::ALL {
            assert_eq!(Cause::of_name(cause.name()), cause);
        }
        for word in ["", "stolen_laptop", "LOGOUT"] {
            assert_eq!(Cause::of_name(word), Cause::Other);
        }
    }
}
