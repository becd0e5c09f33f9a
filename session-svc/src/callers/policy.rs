//! Which methods each caller may call.

use std::collections::HashMap;

use super::{AccessDenied, Caller, CallerIdentity, Rpc};

/// A set of methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rpcs(u16);

// One bit for each method.
const _: () = assert!(Rpc::ALL.len() <= u16::BITS as usize);

impl Rpcs {
    /// Every method, those of later versions included.
    pub(crate) const ALL: Self = Self(u16::MAX);

    /// With one more; false if it was there already.
    pub(crate) fn insert(&mut self, rpc: Rpc) -> bool {
        let before = self.0;
        self.0 |= Self::bit(rpc);
        self.0 != before
    }

    /// Whether a method is among them.
    #[must_use]
    pub(crate) fn contains(self, rpc: Rpc) -> bool {
        self.0 & Self::bit(rpc) != 0
    }

    const fn bit(rpc: Rpc) -> u16 {
        1 << rpc as u16
    }
}

/// Who may call what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy(HashMap<CallerIdentity, Rpcs>);

impl Policy {
    /// From names and what each may call.
    #[must_use]
    pub(crate) fn new(callers: impl IntoIterator<Item = (CallerIdentity, Rpcs)>) -> Self {
        Self(callers.into_iter().collect())
    }

    /// Whether `caller` may call `rpc`: one of its names suffices.
    ///
    /// # Errors
    /// Why not.
    pub fn allow(&self, caller: &Caller, rpc: Rpc) -> Result<(), AccessDenied> {
        let mut access_denied = AccessDenied::Unknown;
        for rpcs in caller.names().iter().filter_map(|name| self.0.get(name)) {
            if rpcs.contains(rpc) {
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
