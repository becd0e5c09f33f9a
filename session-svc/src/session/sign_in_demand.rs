//! A demand for a new sign-in: an event made the session's sign-in insufficient.

use prost::Message;

use super::Session;

/// The required sign-in before guarded routes accept a session.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SignInDemand {
    /// A sign-in at or before this time is not enough, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "1")]
    pub since_ms: u64,
    /// The required authentication context class; `None` for any.
    #[prost(string, optional, tag = "2")]
    pub acr: Option<String>,
}

impl SignInDemand {
    /// Whether the session's sign-in meets the demand; false if the provider does not report its time.
    pub(crate) fn is_met_by(&self, session: &Session) -> bool {
        let has_acr = |acr: &String| session.user.text_of("acr").as_ref() == Some(acr);
        session
            .authenticated_at_ms
            .is_some_and(|at_ms| at_ms > self.since_ms)
            && self.acr.as_ref().is_none_or(has_acr)
    }

    /// Combines two demands: a sign-in that meets the result meets both. If both name a class, the later one
    /// wins.
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
    /// Adds a demand to the earlier one; false if nothing changes.
    pub(crate) fn add_sign_in_demand(&mut self, demand: &SignInDemand) -> bool {
        let combined = match self.sign_in_demand.clone() {
            Some(known) => known.and(demand.clone()),
            None => demand.clone(),
        };
        let is_new = self.sign_in_demand.as_ref() != Some(&combined);
        self.sign_in_demand = Some(combined);
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
