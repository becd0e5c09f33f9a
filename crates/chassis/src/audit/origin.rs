//! The request that an audit record refers to: its ID, its caller, and the operator who orders it.
//!
//! [`Origin`] belongs to the task that answers the request, so each record of the task names request and caller.
//! A task that this task spawns receives it through [`carried`].

use std::fmt;
use std::sync::Arc;

/// Digits of a request ID.
const DIGITS: usize = 32;

/// The request ID in responses, error pages, logs, traces, audit records and upstream requests: 32
/// hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId([u8; DIGITS]);

impl RequestId {
    /// Builds an ID from random bytes. It is not a secret; it only has to be unique.
    #[must_use]
    pub fn of(random: [u8; DIGITS / 2]) -> Self {
        let mut digits = [b'0'; DIGITS];
        // Each byte needs two digits.
        let _ = base16ct::lower::encode(&random, &mut digits);
        Self(digits)
    }

    /// Parses an ID that a caller sent. Rejects all other forms, because the ID is written into records.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits: [u8; DIGITS] = text.try_into().ok()?;
        let is_hex = digits
            .iter()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        is_hex.then_some(Self(digits))
    }

    /// The ID.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // An ID is always ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Default for RequestId {
    /// The ID of no request: all zeros.
    fn default() -> Self {
        Self([b'0'; DIGITS])
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The operator of a request, and why the operator makes it. All but the purpose are empty for a service
/// that acts for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    /// Issuer identifier of the operator's own session.
    pub issuer: String,
    /// The operator at that issuer.
    pub subject: String,
    /// Handle of the operator's own session.
    pub session: String,
    /// Why.
    pub purpose: String,
}

/// The request that is being answered, its caller and its operator.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Its ID.
    pub request_id: RequestId,
    /// The caller, by the names in its certificate; `None` if callers have no certificate.
    pub caller: Option<Arc<str>>,
    /// The operator who orders it, if any.
    pub operator: Option<Arc<Operator>>,
}

tokio::task_local! {
    static ORIGIN: Origin;
}

impl Origin {
    /// Runs `answer` for this request: every record written meanwhile names the request.
    pub fn scope<F: Future>(self, answer: F) -> impl Future<Output = F::Output> {
        ORIGIN.scope(self, answer)
    }

    /// The request that this task answers, if any.
    #[must_use]
    pub fn current() -> Option<Self> {
        ORIGIN.try_with(Clone::clone).ok()
    }
}

/// Runs `work` in a task of its own, on behalf of the request that is being answered now.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let origin = Origin::current();
    async move {
        match origin {
            Some(origin) => origin.scope(work).await,
            None => work.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_32_hexadecimal_digits_are_a_request_id() {
        let made = RequestId::of([0xab; 16]);
        assert_eq!(made.as_str(), "ab".repeat(16));
        assert_eq!(RequestId::parse(made.as_str().as_bytes()), Some(made));
        for wrong in [
            String::new(),
            "a".repeat(31),
            "a".repeat(33),
            "A".repeat(32),
            format!("{}\n", "a".repeat(31)),
            "é".repeat(16),
        ] {
            assert_eq!(RequestId::parse(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn a_task_that_is_spawned_carries_the_request() {
        let origin = Origin {
            request_id: RequestId::of([1; 16]),
            caller: Some("dns:edge.internal".into()),
            operator: None,
        };
        let of_current = || Origin::current().map(|origin| origin.request_id);
        let (own, carried_along, lost) = origin
            .clone()
            .scope(async move {
                let carried_along = tokio::spawn(carried(async move { of_current() })).await.unwrap();
                let lost = tokio::spawn(async move { of_current() }).await.unwrap();
                (of_current(), carried_along, lost)
            })
            .await;
        assert_eq!(
            (own, carried_along),
            (Some(origin.request_id), Some(origin.request_id))
        );
        assert_eq!((lost, of_current()), (None, None));
    }
}
