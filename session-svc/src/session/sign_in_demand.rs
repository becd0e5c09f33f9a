//! A demand for a sign-in: something has happened since, or at, the one the session came from.

use prost::Message;

use super::Session;

/// What a sign-in has to be for a session to be good for anything guarded.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SignInDemand {
    /// A sign-in of then or before does not do, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "1")]
    pub since_ms: u64,
    /// The authentication context class it has to be; `None` for any.
    #[prost(string, optional, tag = "2")]
    pub acr: Option<String>,
}

impl SignInDemand {
    /// Whether the sign-in a session came from is what is demanded. One whose time nobody tells is not: the provider may have asked nobody.
    pub(crate) fn is_met_by(&self, session: &Session) -> bool {
        let has_acr = |acr: &String| session.user.text_of("acr").as_ref() == Some(acr);
        session
            .authenticated_at_ms
            .is_some_and(|at_ms| at_ms > self.since_ms)
            && self.acr.as_ref().is_none_or(has_acr)
    }

    /// Both demands in one: a sign-in that meets it meets each of them, but that of two classes the later one counts.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        let (later, earlier) = if self.since_ms >= other.since_ms {
            (self, other)
        } else {
            (other, self)
        };
        Self {
            since_ms: later.since_ms,
            acr: later.acr.or(earlier.acr),
        }
    }
}

impl Session {
    /// Owes what is demanded, and what was before; false if that is nothing new.
    pub(crate) fn owe(&mut self, demand: &SignInDemand) -> bool {
        let owed = match self.sign_in_demand.clone() {
            Some(known) => known.and(demand.clone()),
            None => demand.clone(),
        };
        let is_new = self.sign_in_demand.as_ref() != Some(&owed);
        self.sign_in_demand = Some(owed);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(since_ms: u64, acr: Option<&str>) -> SignInDemand {
        SignInDemand {
            since_ms,
            acr: acr.map(str::to_owned),
        }
    }

    #[test]
    fn of_two_demands_the_later_time_counts_and_a_class_is_not_lost() {
        for (one, other, both) in [
            (demand(1, None), demand(2, None), demand(2, None)),
            (demand(2, Some("gold")), demand(1, None), demand(2, Some("gold"))),
            (demand(1, Some("gold")), demand(2, None), demand(2, Some("gold"))),
            (
                demand(1, Some("gold")),
                demand(2, Some("silver")),
                demand(2, Some("silver")),
            ),
        ] {
            assert_eq!(one.clone().and(other.clone()), both);
            assert_eq!(other.and(one), both);
        }
    }
}
