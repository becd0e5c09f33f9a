//! Which caller may call which method.
//!
//! The certificate of the TLS handshake identifies a caller. A policy file lists the methods of each caller.
//!
//! Invariants
//! - Without a list, every client that can connect may call everything: with mutual TLS every client with a
//!   verified certificate, otherwise every client.
//! - With a list, a caller that is not on it may call nothing.
//! - The methods for operators reach the sessions of all people: a list has to name each of them.
//! - A new list applies from the next call on, and for streams from their next event or question on. An
//!   invalid list changes nothing.
//!
//! Deliberately absent: health checks and reflection, which reveal no session and are open to every verified
//! client; roles, and wildcards in names, which would hide which callers may read tokens.

mod identity;
mod policy;
mod policy_file;
mod rpc;

use std::path::Path;
use std::time::Duration;

use chassis::secret::Reloading;

pub use identity::Caller;
pub(crate) use policy::Policy;
pub use policy_file::parse;
pub use rpc::Rpc;

/// The setting that names the file.
const SETTING: &str = "SESSION_CALLERS";

/// Why a call is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDenied {
    /// The list does not name the caller.
    Unknown,
    /// The list names the caller, but not this method.
    NotAllowed,
}

/// The rights of callers; clones share them.
#[derive(Clone, Debug)]
pub struct Callers(Option<Reloading<Policy>>);

impl Callers {
    /// Every client that can connect may call everything.
    #[must_use]
    pub fn anyone() -> Self {
        Self(None)
    }

    /// Only the callers of a list.
    #[must_use]
    pub fn listed(policy: Policy) -> Self {
        Self(Some(Reloading::new(policy)))
    }

    /// Reads the list's file again every `every`. Needs a tokio runtime, and ends with it.
    pub fn follow(&self, every: Duration, path: &Path) {
        if let Self(Some(policy)) = self {
            policy.follow(every, SETTING, path, parse);
        }
    }

    /// Whether there is a list.
    pub(crate) fn is_listed(&self) -> bool {
        self.0.is_some()
    }

    /// Whether `caller` may call `rpc` now; without `rpc`, whether the list names the caller.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn allow(&self, caller: &Caller, rpc: Option<Rpc>) -> Result<(), AccessDenied> {
        match self {
            Self(None) => Ok(()),
            Self(Some(policy)) => policy.load().allow(caller, rpc),
        }
    }
}
