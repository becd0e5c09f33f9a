//! Why a session ended: a closed list. Records have the name. Events and the stored form have the number of
//! `session.v1.Cause`.

named! {
    all;
    /// Why a session ended.
    pub enum Cause {
        /// The person signed out in this browser.
        Logout = 1 => "logout",
        /// The person signed this browser out from another one.
        OtherDevice = 2 => "other_device",
        /// The provider ordered it by back-channel logout.
        BackChannelLogout = 3 => "back_channel_logout",
        /// The provider ordered it in the browser.
        FrontChannelLogout = 4 => "front_channel_logout",
        /// An operator ended it.
        Operator = 5 => "operator",
        /// The person signed in again in the same browser.
        Replaced = 6 => "replaced",
        /// The person had more sessions than allowed.
        SessionLimit = 7 => "session_limit",
        /// A refresh brought tokens of another user.
        TokenMismatch = 8 => "token_mismatch",
        /// Its sign-in was abandoned.
        Abandoned = 9 => "abandoned",
        /// A copy of its cookie was used.
        Theft = 11 => "theft",
        /// A security event ordered it.
        SecurityEvent = 12 => "security_event",
        /// The provider refused its refresh token, and sessions are revalidated.
        Refused = 13 => "refused",
        /// Any other cause: one of a later release, or free text of an earlier caller.
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
