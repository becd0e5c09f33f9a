//! Names of keys, and what stands in index entries and leases.

use crate::store::{Lease, Record, codec};

/// Makes key names below one prefix.
#[derive(Clone)]
pub(super) struct Keys {
    prefix: String,
    events: String,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            events: format!("{prefix}:e"),
        }
    }

    fn key(&self, kind: &str, name: &str) -> String {
        let mut key = String::with_capacity(self.prefix.len() + kind.len() + name.len());
        key.push_str(&self.prefix);
        key.push_str(kind);
        key.push_str(name);
        key
    }

    pub(super) fn record(&self, name: &str) -> String {
        self.key(":s:", name)
    }

    pub(super) fn index(&self, name: &str) -> String {
        self.key(":i:", name)
    }

    pub(super) fn lease(&self, name: &str) -> String {
        self.key(":l:", name)
    }

    pub(super) fn remembered(&self, name: &str) -> String {
        self.key(":m:", name)
    }

    pub(super) fn events(&self) -> &str {
        &self.events
    }
}

/// First byte of an entry whose name is packed hexadecimal.
const PACKED: u8 = 1;
/// First byte of an entry whose name stands as it is.
const PLAIN: u8 = 0;

/// What an index holds of a record: how its name is written, its creation time, its name.
pub(super) fn member(record: &Record) -> Vec<u8> {
    let (form, name) = match codec::pack(&record.name) {
        Some(packed) => (PACKED, packed),
        None => (PLAIN, record.name.clone().into_bytes()),
    };
    let mut member = Vec::with_capacity(9 + name.len());
    member.push(form);
    member.extend(record.created_at_ms.to_be_bytes());
    member.extend(name);
    member
}

/// Creation time and name from an index entry.
pub(super) fn parse_member(member: &[u8]) -> Option<(u64, String)> {
    let (&form, rest) = member.split_first()?;
    let (created, name) = rest.split_first_chunk::<8>()?;
    let name = match form {
        PACKED => codec::unpack(name),
        PLAIN => String::from_utf8(name.to_vec()).ok()?,
        _ => return None,
    };
    Some((u64::from_be_bytes(*created), name))
}

/// The value of a held lease's key.
pub(super) fn held(lease: &Lease) -> String {
    format!("{}:{}", lease.fence, lease.holder)
}
