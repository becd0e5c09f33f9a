//! Which methods each caller may call.

use std::collections::HashMap;

use super::{AccessDenied, Caller, CallerIdentity, Rpc};

/// Who may call what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy(HashMap<CallerIdentity, Vec<Rpc>>);

impl Policy {
    /// From names and what each may call.
    #[must_use]
    pub(crate) fn new(callers: impl IntoIterator<Item = (CallerIdentity, Vec<Rpc>)>) -> Self {
        Self(callers.into_iter().collect())
    }

    /// Whether `caller` may call `rpc`: one of its names suffices.
    ///
    /// # Errors
    /// Why not.
    pub fn allow(&self, caller: &Caller, rpc: Rpc) -> Result<(), AccessDenied> {
        let mut access_denied = AccessDenied::Unknown;
        for rpcs in caller.names().iter().filter_map(|name| self.0.get(name)) {
            if rpcs.contains(&rpc) {
                return Ok(());
            }
            access_denied = AccessDenied::NotAllowed;
        }
        Err(access_denied)
    }

    /// How many are on the list.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether one of the caller's names is on the list.
    #[must_use]
    pub(crate) fn knows(&self, caller: &Caller) -> bool {
        caller.names().iter().any(|name| self.0.contains_key(name))
    }
}
