//! Which methods each caller may call.

use std::collections::HashMap;

use super::{AccessDenied, Caller, Rpc};

/// The methods that each caller may call, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy(pub(crate) HashMap<String, Vec<Rpc>>);

impl Policy {
    /// Whether `caller` may call `rpc`; without `rpc`, whether the list names it. One matching name suffices.
    ///
    /// # Errors
    /// Why not.
    pub fn allow(&self, caller: &Caller, rpc: Option<Rpc>) -> Result<(), AccessDenied> {
        let mut access_denied = AccessDenied::Unknown;
        for rpcs in caller.names().iter().filter_map(|name| self.0.get(name)) {
            if rpc.is_none_or(|rpc| rpcs.contains(&rpc.right())) {
                return Ok(());
            }
            access_denied = AccessDenied::NotAllowed;
        }
        Err(access_denied)
    }
}
