//! Settings of the way to the session service: its addresses, whom to trust there, and who we are.

use std::io;
use std::path::PathBuf;

use chassis::findings::chain;
use chassis::settings::Reader;
use chassis::tls;
use session_proto::client::{ClientSettings, ClientTls, InvalidSettings, SessionClient};
use url::Url;

use crate::values::web_url::is_origin;

const ADDRESSES: &str = "EDGE_SESSION_SVC_URL";
const AUTHORITIES: &str = "EDGE_SESSION_SVC_CA_FILE";
const CERTIFICATE: &str = "EDGE_SESSION_SVC_CERT_FILE";
const KEY: &str = "EDGE_SESSION_SVC_KEY_FILE";

/// Where the session service is and how to speak to it.
#[derive(Clone, Debug)]
pub struct SessionServiceSettings {
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Authority that its certificate has to come from.
    pub(crate) ca: Option<PathBuf>,
    /// Our certificate and key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

impl SessionServiceSettings {
    /// A client of it, as far as settings say.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn client(&self) -> io::Result<ClientSettings> {
        let tls = |ca: &PathBuf| ClientTls::from_files(ca.clone(), self.identity.clone());
        Ok(ClientSettings {
            tls: self.ca.as_ref().map(tls).transpose()?,
            ..ClientSettings::new(self.addresses.clone())
        })
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> SessionServiceSettings {
    let settings = SessionServiceSettings {
        addresses: addresses(reader),
        ca: tls::read_authorities(reader, AUTHORITIES),
        identity: tls::read_pair(reader, CERTIFICATE, KEY),
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
        reader.wrong(ADDRESSES, "must hold URLs such as http://session-svc:50051");
        return Vec::new();
    }
    addresses
}

/// Makes a client once, as the start does: what it refuses is a mistake too and not a crash later.
fn try_out(reader: &mut Reader<'_>, settings: &SessionServiceSettings) {
    // Its files were read a moment ago.
    let Ok(client) = settings.client() else { return };
    if let Err(error) = SessionClient::new(client) {
        let name = match error {
            InvalidSettings::NoAddress | InvalidSettings::Address(_) => ADDRESSES,
            InvalidSettings::NobodyToTrust(_) | InvalidSettings::Tls(_) => AUTHORITIES,
        };
        reader.wrong(name, chain(&error));
    }
}
