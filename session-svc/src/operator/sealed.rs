//! What a sealed text of a store is: a session, or a note beside it.

use crate::keeper::sealed_notes::{IN_RECORDS, REMEMBERED};
use crate::keeper::{Seal as _, SealError};
use crate::store::inspect::Sealed;
use crate::vault::{SealBinding, Vault};

/// What the check itself leaves for a moment.
pub(super) const PROBE: &str = "probe";

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealedContent {
    /// A session.
    Session,
    /// A note that goes away by itself.
    Note,
}

/// Whether this is a bare sign, such as "somebody tried a moment ago": remembered as it is, with nothing to seal.
pub(super) fn is_bare(sealed: &Sealed) -> bool {
    matches!(sealed, Sealed::Remembered { value, .. } if Vault::key_id_of(value).is_none())
}

/// Opens a text with whichever use fits, and says what it is.
pub(super) fn contents(vault: &Vault, sealed: &Sealed) -> Result<SealedContent, SealError> {
    if is_bare(sealed) {
        return Ok(SealedContent::Note);
    }
    if let Sealed::Record(record) = sealed {
        match vault.open_session(record.name, record.version, &record.payload) {
            Ok(_) => return Ok(SealedContent::Session),
            Err(SealError::NotReadable) => {}
            Err(error) => return Err(error),
        }
    }
    let name = sealed.name();
    first_fitting(sealed, |used| match used {
        SealBinding::Session { .. } => Err(SealError::NotReadable),
        SealBinding::Note(_) => vault
            .open_bound(&name, used, sealed.bytes())
            .map(|_| SealedContent::Note),
    })
}

/// Seals a text with the first key, whatever it is.
pub(super) fn resealed(vault: &Vault, sealed: &Sealed) -> Result<Vec<u8>, SealError> {
    let name = sealed.name();
    first_fitting(sealed, |used| vault.reseal(&name, used, sealed.bytes()))
}

/// What the first use that fits gives. What is wrong with the key or the format is wrong for every use.
fn first_fitting<T>(
    sealed: &Sealed,
    mut attempt: impl FnMut(SealBinding<'_>) -> Result<T, SealError>,
) -> Result<T, SealError> {
    let (session, purposes) = match sealed {
        Sealed::Record(record) => (
            Some(SealBinding::Session {
                version: record.version,
            }),
            IN_RECORDS,
        ),
        Sealed::Remembered { .. } => (None, REMEMBERED),
    };
    let notes = purposes.iter().copied().chain([PROBE]).map(SealBinding::Note);
    for used in session.into_iter().chain(notes) {
        match attempt(used) {
            Err(SealError::NotReadable) => {}
            outcome => return outcome,
        }
    }
    Err(SealError::NotReadable)
}

#[cfg(test)]
mod tests {
    use chassis::secret::{Reloading, Secret};

    use super::*;
    use crate::store::{Name, Record};
    use crate::vault::KeyRing;

    const NAME: Name = Name::from_bytes([7; 16]);

    fn vault() -> Vault {
        let key = Secret::new("ab".repeat(32));
        Vault::new(Reloading::new(KeyRing::parse(&[key]).unwrap()))
    }

    fn remembered(value: Vec<u8>) -> Sealed {
        Sealed::Remembered {
            name: NAME.to_string(),
            value,
        }
    }

    #[test]
    fn every_purpose_is_known_where_it_is_kept() {
        let vault = vault();
        for purpose in REMEMBERED {
            let note = remembered(vault.seal_note(purpose, NAME, b"note").unwrap());
            assert_eq!(contents(&vault, &note).unwrap(), SealedContent::Note);
            assert!(resealed(&vault, &note).is_ok());
        }
        for purpose in IN_RECORDS {
            let note = Sealed::Record(Record {
                name: NAME,
                version: 3,
                expires_at_ms: 2,
                created_at_ms: 1,
                indexes: Vec::new(),
                payload: vault.seal_note(purpose, NAME, b"note").unwrap(),
            });
            assert_eq!(contents(&vault, &note).unwrap(), SealedContent::Note);
            assert!(resealed(&vault, &note).is_ok());
        }
        let foreign = remembered(vault.seal_note("something else", NAME, b"note").unwrap());
        assert!(matches!(contents(&vault, &foreign), Err(SealError::NotReadable)));
    }

    #[test]
    fn a_bare_sign_needs_no_key() {
        assert_eq!(
            contents(&vault(), &remembered(vec![1])).unwrap(),
            SealedContent::Note
        );
        assert!(is_bare(&remembered(vec![1])));
        let sealed = vault().seal_note("request", NAME, b"").unwrap();
        assert!(!is_bare(&remembered(sealed)));
    }
}
