//! Settings of the connection to the session service: its addresses, the authorities to trust, our certificate.

use std::io;
use std::path::PathBuf;

use chassis::findings::chain;
use chassis::settings::Reader;
use chassis::tls;
use session_proto::client::{ClientSettings, ClientTls, ConnectInMemory, InvalidSettings, SessionClient};
use url::Url;

use crate::values::web_url::is_origin;

const ADDRESSES: &str = "EDGE_SESSION_SVC_URL";
const AUTHORITIES: &str = "EDGE_SESSION_SVC_CA_FILE";
const CERTIFICATE: &str = "EDGE_SESSION_SVC_CERT_FILE";
const KEY: &str = "EDGE_SESSION_SVC_KEY_FILE";

/// The address of the session service, and its TLS files.
#[derive(Clone, Debug)]
pub struct SessionServiceSettings {
    /// The addresses.
    pub addresses: Vec<String>,
    /// Authorities to trust.
    pub(crate) ca: Option<PathBuf>,
    /// Our certificate and key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// The session service in this process, in place of the addresses.
    pub in_memory: Option<ConnectInMemory>,
}

impl SessionServiceSettings {
    /// The settings of a client of the session service.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn client(&self) -> io::Result<ClientSettings> {
        let tls = |ca: &PathBuf| ClientTls::from_files(ca.clone(), self.identity.clone());
        Ok(ClientSettings {
            tls: self.ca.as_ref().map(tls).transpose()?,
            in_memory: self.in_memory.clone(),
            ..ClientSettings::new(self.addresses.clone())
        })
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> SessionServiceSettings {
    let settings = SessionServiceSettings {
        addresses: addresses(reader),
        ca: tls::read_authorities(reader, AUTHORITIES),
        identity: tls::read_pair(reader, CERTIFICATE, KEY),
        in_memory: None,
    };
    let names = [ADDRESSES, AUTHORITIES, CERTIFICATE, KEY];
    if !names.iter().any(|name| reader.is_wrong(name)) {
        try_out(reader, &settings);
    }
    settings
}

fn addresses(reader: &mut Reader<'_>) -> Vec<String> {
    let addresses = reader.list(ADDRESSES);
    let fits = |text: &String| Url::parse(text).is_ok_and(|url| is_origin(&url));
    if addresses.is_empty() || !addresses.iter().all(fits) {
        reader.wrong(ADDRESSES, "must contain URLs such as http://session-svc:50051");
        return Vec::new();
    }
    addresses
}

/// Creates a client, as the start does, so that its errors are reported as mistakes.
fn try_out(reader: &mut Reader<'_>, settings: &SessionServiceSettings) {
    // The files were checked above.
    let Ok(client) = settings.client() else { return };
    if let Err(error) = SessionClient::new(client) {
        let name = match error {
            InvalidSettings::NoAddress | InvalidSettings::Address(_) => ADDRESSES,
            InvalidSettings::NobodyToTrust(_) | InvalidSettings::Tls(_) => AUTHORITIES,
        };
        reader.wrong(name, chain(&error));
    }
}
