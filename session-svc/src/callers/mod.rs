//! Who may call what.
//!
//! A caller is identified by the certificate it showed in the TLS handshake; a policy file says which methods each may call.
//!
//! Invariants
//! - Without a list of callers everyone who can open a connection may call everything: over mutual TLS every client
//!   whose certificate is verified, without it anyone.
//! - With a list, who is not on it may call nothing.
//! - A new list counts from the next call on, and for streams from their next event or question on; a wrong one changes
//!   nothing.
//!
//! Deliberately absent: health checks and reflection, which say nothing about sessions and are open to every verified
//! client; roles, and wildcards in names, which would make "who may read tokens" a question of pattern matching.

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

/// Why a caller is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDenied {
    /// Nobody the list knows.
    Unknown,
    /// On the list, without this method.
    NotAllowed,
}

/// Who may call what; clones share it.
#[derive(Clone, Debug)]
pub struct Callers(Option<Reloading<Policy>>);

impl Callers {
    /// Everyone who can open a connection may call everything.
    #[must_use]
    pub fn anyone() -> Self {
        Self(None)
    }

    /// Those on a list.
    #[must_use]
    pub fn listed(policy: Policy) -> Self {
        Self(Some(Reloading::new(policy)))
    }

    /// Keeps the list in step with its file from now on, looked at every `every`. Needs a tokio runtime; ends with it.
    pub fn follow(&self, every: Duration, path: &Path) {
        if let Self(Some(policy)) = self {
            policy.follow(every, SETTING, path, parse);
        }
    }

    /// Whether `caller` may call `rpc` now; without one, whether it is on the list.
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
