//! When an unknown key is worth asking the provider again.
//!
//! A token under an unknown `kid` makes one refetch, so that a rotation is followed by the very login that meets
//! it. Unknown keys an attacker invents must not become a storm: the same `kid` is asked for once per interval, and
//! fruitless refetches have a small budget. A refetch that found the key costs nothing.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A fruitless refetch is not repeated within this time.
const INTERVAL: Duration = Duration::from_secs(10);
/// Fruitless refetches per interval, over all unknown keys.
const BUDGET: usize = 2;

/// Remembers fruitless refetches.
#[derive(Default)]
pub(crate) struct Refetches {
    fruitless: Mutex<VecDeque<(Option<String>, Instant)>>,
}

impl Refetches {
    /// Whether a refetch for this key may be made now; it counts as fruitless until said otherwise.
    pub(crate) fn begin(&self, kid: Option<&str>) -> bool {
        let mut fruitless = self.fruitless.lock().unwrap_or_else(PoisonError::into_inner);
        fruitless.retain(|(_, at)| at.elapsed() < INTERVAL);
        if fruitless.len() >= BUDGET || fruitless.iter().any(|(known, _)| known.as_deref() == kid) {
            return false;
        }
        fruitless.push_back((kid.map(str::to_owned), Instant::now()));
        true
    }

    /// The refetch brought the key.
    pub(crate) fn fruitful(&self, kid: Option<&str>) {
        let mut fruitless = self.fruitless.lock().unwrap_or_else(PoisonError::into_inner);
        fruitless.retain(|(known, _)| known.as_deref() != kid);
    }
}
