//! Leases of a store that belongs to one process: they live and die with it.
//!
//! Every holder is in this process, so a lease that went with a crash is free at the next start, which
//! is what its end would have brought anyway. Fences grow across restarts if `origin` does.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::store::{Lease, Name, StoreError, millis};

/// Leases granted by one process.
pub(super) struct Leases {
    granted: Mutex<GrantedLeases>,
    capacity: usize,
}

struct GrantedLeases {
    serial: u64,
    held: HashMap<Name, (Lease, u64)>,
}

impl Leases {
    /// No leases yet; the first serial is `origin + 1`; at most `capacity` are held at a time.
    pub(super) fn new(origin: u64, capacity: usize) -> Self {
        Self {
            granted: Mutex::new(GrantedLeases {
                serial: origin,
                held: HashMap::new(),
            }),
            capacity,
        }
    }

    fn granted(&self) -> MutexGuard<'_, GrantedLeases> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn acquire(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
        now_ms: u64,
    ) -> Result<Option<Lease>, StoreError> {
        let mut granted = self.granted();
        let held = granted.held.get(&name);
        if held.is_some_and(|(held, until)| held.holder != holder && now_ms < *until) {
            return Ok(None);
        }
        if granted.held.len() >= self.capacity {
            granted.held.retain(|_, (_, until)| now_ms < *until);
        }
        if granted.held.len() >= self.capacity && !granted.held.contains_key(&name) {
            return Err(StoreError::Full);
        }
        granted.serial += 1;
        let lease = Lease {
            name,
            serial: granted.serial,
            holder: holder.to_owned(),
        };
        let until = now_ms.saturating_add(millis(ttl));
        granted.held.insert(name, (lease.clone(), until));
        Ok(Some(lease))
    }

    pub(super) fn renew(&self, lease: &Lease, ttl: Duration, now_ms: u64) -> bool {
        match self.granted().held.get_mut(&lease.name) {
            Some((held, until)) if held.holder == lease.holder && now_ms < *until => {
                *until = now_ms.saturating_add(millis(ttl));
                true
            }
            _ => false,
        }
    }

    pub(super) fn release(&self, lease: &Lease) {
        let mut granted = self.granted();
        if granted
            .held
            .get(&lease.name)
            .is_some_and(|(held, _)| held == lease)
        {
            granted.held.remove(&lease.name);
        }
    }
}
