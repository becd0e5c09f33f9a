//! Leases of a store that belongs to one process. They end with the process.
//!
//! Every holder is in this process. After a crash, a lease is free at the next start, just as after its
//! expiry.

use std::collections::HashMap;
use std::time::Duration;

use crate::store::{Lease, Name, StoreError, millis};

/// Leases granted by one process.
pub(super) struct Leases {
    serial: u64,
    /// Each lease with the end of its time.
    held: HashMap<Name, (Lease, u64)>,
    capacity: usize,
}

impl Leases {
    /// No leases yet; at most `capacity` are held at a time.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            serial: 0,
            held: HashMap::new(),
            capacity,
        }
    }

    pub(super) fn acquire(
        &mut self,
        name: Name,
        holder: &str,
        ttl: Duration,
        now_ms: u64,
    ) -> Result<Option<Lease>, StoreError> {
        let held = self.held.get(&name);
        if held.is_some_and(|(held, until)| held.holder != holder && now_ms < *until) {
            return Ok(None);
        }
        if self.held.len() >= self.capacity {
            self.held.retain(|_, (_, until)| now_ms < *until);
        }
        if self.held.len() >= self.capacity && !self.held.contains_key(&name) {
            return Err(StoreError::Full);
        }
        self.serial += 1;
        let lease = Lease {
            name,
            serial: self.serial,
            holder: holder.to_owned(),
        };
        let until = now_ms.saturating_add(millis(ttl));
        self.held.insert(name, (lease.clone(), until));
        Ok(Some(lease))
    }

    pub(super) fn renew(&mut self, lease: &Lease, ttl: Duration, now_ms: u64) -> bool {
        match self.held.get_mut(&lease.name) {
            Some((held, until)) if held.holder == lease.holder && now_ms < *until => {
                *until = now_ms.saturating_add(millis(ttl));
                true
            }
            _ => false,
        }
    }

    pub(super) fn release(&mut self, lease: &Lease) {
        let held = self.held.get(&lease.name);
        if held.is_some_and(|(held, _)| held == lease) {
            self.held.remove(&lease.name);
        }
    }
}
