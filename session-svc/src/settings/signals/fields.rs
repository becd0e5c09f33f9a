//! Fields that transmitters, receivers and servers of APIs share.

use std::path::PathBuf;

use chassis::files;
use chassis::settings::toml_file::Value;
use oidc::endpoint_is_secure;
use url::Url;

/// The longest id, because logs and metrics contain it.
const MAX_ID_BYTES: usize = 32;

pub(super) fn id(value: Value<'_>) -> Option<String> {
    let id = value.string()?;
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    if id.len() > MAX_ID_BYTES || !id.bytes().all(plain) {
        value.wrong(format!(
            "id {id:?} has to be a-z, 0-9, - or _, at most {MAX_ID_BYTES} of them: logs and metrics contain it"
        ));
        return None;
    }
    Some(id)
}

/// An https URL, or http on this machine.
pub(in crate::settings) fn url(value: Value<'_>) -> Option<Url> {
    let text = value.string()?;
    let url = Url::parse(&text).ok().filter(endpoint_is_secure);
    if url.is_none() {
        value.wrong(format!("{text:?} has to be an https address"));
    }
    url
}

/// Keeps the issuer as written: it is compared byte by byte (SSF 1.0, section 7.1).
pub(in crate::settings) fn issuer(value: Value<'_>) -> Option<String> {
    let url = url(value)?;
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        value.wrong("an issuer must have no query, fragment or user");
        return None;
    }
    value.string()
}

/// The path and the text of a file.
pub(in crate::settings) fn file(value: Value<'_>) -> Option<(PathBuf, String)> {
    let path = PathBuf::from(value.string()?);
    let shown = path.display();
    match files::read_bounded(&path).map(String::from_utf8) {
        Ok(Ok(text)) => return Some((path, text)),
        Ok(Err(_)) => value.wrong(format!("the file {shown} is not UTF-8 text")),
        Err(error) => value.wrong(format!("the file {shown} cannot be read: {error}")),
    }
    None
}
