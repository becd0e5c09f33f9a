//! What a record says of the request that led to it: the request's ID and who called.
//!
//! Travels with the task that answers the request, so that whatever is recorded on the way names both; a task that is spawned on
//! the way carries it by [`carried`].

use std::fmt;
use std::sync::Arc;

/// Digits of a request ID.
const DIGITS: usize = 32;

/// Names a request in the response, on error pages, in the log, in traces, in audit records and to upstreams: 32 hexadecimal
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId([u8; DIGITS]);

impl RequestId {
    /// The ID these random bits make. It is no secret: that no other request has it is all it needs.
    #[must_use]
    pub fn of(random: [u8; DIGITS / 2]) -> Self {
        let mut digits = [b'0'; DIGITS];
        // There is room for two digits of each byte.
        let _ = base16ct::lower::encode(&random, &mut digits);
        Self(digits)
    }

    /// The ID a caller sent; none if it has another form: callers choose it, and it is written into records.
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
        // All of it is ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Default for RequestId {
    /// Nobody's.
    fn default() -> Self {
        Self([b'0'; DIGITS])
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The request that is being answered.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Its ID.
    pub request_id: RequestId,
    /// Who called, by the names in the certificate; none where callers show none.
    pub caller: Option<Arc<str>>,
}

tokio::task_local! {
    static ORIGIN: Origin;
}

impl Origin {
    /// Answers a request: whatever is recorded meanwhile names this one.
    pub fn scope<F: Future>(self, answer: F) -> impl Future<Output = F::Output> {
        ORIGIN.scope(self, answer)
    }

    /// The request that this task answers, if it answers one.
    #[must_use]
    pub fn current() -> Option<Self> {
        ORIGIN.try_with(Clone::clone).ok()
    }
}

/// Work that goes on in a task of its own and still belongs to the request that is being answered now.
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
