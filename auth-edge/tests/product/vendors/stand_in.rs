//! A stack whose two services read one table of a providers file, so the table applies to both.

use std::io::Write as _;

use scripted_provider::{CLIENT_ID, CLIENT_SECRET, ScriptedProvider};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;

use crate::support::Stack;

/// The stack and the files it was started with.
pub(super) struct StandIn {
    pub(super) stack: Stack,
    _secret: NamedTempFile,
    _file: NamedTempFile,
}

impl StandIn {
    /// The provider with an issuer in the vendor's form, further table lines, and edge settings.
    pub(super) async fn start(
        provider: ScriptedProvider,
        issuer: &str,
        lines: &str,
        settings: &[(&str, &str)],
    ) -> Self {
        let mut secret = NamedTempFile::new().unwrap();
        writeln!(secret, "{CLIENT_SECRET}").unwrap();
        let mut file = NamedTempFile::new().unwrap();
        write!(
            file,
            "default = \"vendor\"\n[[provider]]\nid = \"vendor\"\nissuer_url = \"{issuer}\"\nclient_id = \"{CLIENT_ID}\"\n\
             client_secret_file = \"{}\"\nhttp_timeout_ms = 2000\n{lines}\n",
            secret.path().display()
        )
        .unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let settings = [&[("OIDC_PROVIDERS", path.as_str())], settings].concat();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self {
            stack: Stack::at(provider, listener, &settings).await,
            _secret: secret,
            _file: file,
        }
    }
}

/// The form that the provider's page would post.
pub(super) async fn form_fields(authorization: &str) -> String {
    let page = reqwest::get(authorization).await.unwrap().text().await.unwrap();
    let fields = page.split("<input type=\"hidden\" name=\"").skip(1).map(|rest| {
        let (name, rest) = rest.split_once("\" value=\"").unwrap();
        let value = rest.split('"').next().unwrap();
        let value = value
            .replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&amp;", "&");
        (name.to_owned(), value)
    });
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}
