//! Settings that name certificate and key files. The checks of these files are the same as at startup.

use std::path::{Path, PathBuf};

use rustls::pki_types::UnixTime;

use super::{expires_by, pem};
use crate::findings::chain;
use crate::settings::Reader;

/// Reads the settings of a certificate chain and its key: both or neither.
pub fn read_pair(reader: &mut Reader<'_>, certificate: &str, key: &str) -> Option<(PathBuf, PathBuf)> {
    match (reader.path(certificate), reader.path(key)) {
        (Some(chain), Some(private)) => {
            check_pair(reader, (certificate, &chain), (key, &private));
            Some((chain, private))
        }
        (Some(_), None) => {
            reader.wrong(key, format!("is required with {certificate}"));
            None
        }
        (None, Some(_)) => {
            reader.wrong(certificate, format!("is required with {key}"));
            None
        }
        (None, None) => None,
    }
}

/// Reads the setting of a file of authorities. Like a handshake, this ignores their expiry: a trust anchor is
/// only a name and a key (RFC 5280, section 6.1.1).
pub fn read_authorities(reader: &mut Reader<'_>, name: &str) -> Option<PathBuf> {
    let path = reader.path(name)?;
    check_authorities(reader, name, &path);
    Some(path)
}

/// Returns whether a file of authorities can be used. If not, records why.
pub fn check_authorities(reader: &mut Reader<'_>, name: &str, path: &Path) -> bool {
    let judged = pem::authorities(path);
    if let Err(error) = &judged {
        reader.wrong(name, chain(error));
    }
    judged.is_ok()
}

/// Returns whether a certificate chain and its key, each given as setting and file, can be used. If not, records
/// why. An expired certificate only causes a warning, because the operator can still replace it.
pub fn check_pair(
    reader: &mut Reader<'_>,
    (certificate, chain_path): (&str, &Path),
    (key, key_path): (&str, &Path),
) -> bool {
    let chain_found = pem::certificates(chain_path)
        .map_err(|error| reader.wrong(certificate, chain(&error)))
        .ok();
    let key_found = pem::private_key(key_path)
        .map_err(|error| reader.wrong(key, chain(&error)))
        .ok();
    let (Some(chain_found), Some(key_found)) = (chain_found, key_found) else {
        return false;
    };
    if let Err(error) = pem::belong_together((chain_path, &chain_found), (key_path, &key_found)) {
        let is_about_key = error.path() == key_path;
        reader.wrong(if is_about_key { key } else { certificate }, chain(&error));
        return false;
    }
    let now = UnixTime::now().as_secs();
    if chain_found
        .first()
        .is_some_and(|own| expires_by(own, now).is_some())
    {
        let path = chain_path.display();
        reader.warn(
            certificate,
            format!("{path} has expired: renew it, because peers reject it"),
        );
    }
    true
}
