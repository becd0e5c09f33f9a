//! Why a session ended: one of a closed list. Records have its name. Events and the stored form have its number, which is that of
//! `session.v1.Cause`.

named! {
    all;
    /// Why a session ended.
    pub enum Cause {
        /// The person signed out in this browser.
        Logout = 1 => "logout",
        /// The person signed this browser out from another one.
        OtherDevice = 2 => "other_device",
        /// The provider said so behind the browser's back.
        BackChannelLogout = 3 => "back_channel_logout",
        /// The provider said so in the browser.
        FrontChannelLogout = 4 => "front_channel_logout",
        /// Whoever runs the service ended it.
        Operator = 5 => "operator",
        /// The person signed in anew in the same browser.
        Replaced = 6 => "replaced",
        /// The person had more sessions than allowed.
        SessionLimit = 7 => "session_limit",
        /// A refresh brought the tokens of somebody else.
        TokenMismatch = 8 => "token_mismatch",
        /// The sign-in it came from was given up.
        Abandoned = 9 => "abandoned",
        /// A copy of its cookie was used.
        Theft = 11 => "theft",
        /// A security event said so.
        SecurityEvent = 12 => "security_event",
        /// The provider refused its refresh token, and sessions are revalidated.
        Refused = 13 => "refused",
        /// Anything else: what a later release says, or a caller of an earlier one said in words of its own.
        Other = 10 => "other",
    }
}

impl Cause {
    /// The cause of this number; `Other` for a number of a later release.
    #[must_use]
    pub(crate) fn of_number(number: u32) -> Self {
        let mut all = Self::ALL.iter().copied();
        all.find(|cause| *cause as u32 == number).unwrap_or(Self::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_known_by_its_number_and_other_numbers_are_other() {
        for cause in Cause::ALL {
            assert_eq!(Cause::of_number(*cause as u32), *cause);
        }
        for number in [0, 14, u32::MAX] {
            assert_eq!(Cause::of_number(number), Cause::Other);
        }
    }
}
