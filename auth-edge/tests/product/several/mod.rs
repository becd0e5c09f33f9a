//! One edge and two providers, `a` and `b`: data of one never reaches the other.

mod bound_tokens;
mod hosts;
mod mix_up;
mod selection;
mod sessions;

use std::io::Write as _;

use scripted_provider::{CLIENT_ID, CLIENT_SECRET, Endpoint, ScriptedProvider};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;

use crate::support::{Browser, Stack};

/// The stack with provider `a`, and `b`, which signs with its own key.
struct Two {
    stack: Stack,
    b: ScriptedProvider,
    _secret: NamedTempFile,
    _file: NamedTempFile,
}

impl Two {
    async fn start() -> Self {
        Self::with("", "", &[]).await
    }

    /// With further lines in the tables of `a` and of `b`, and further settings.
    async fn with(for_a: &str, for_b: &str, settings: &[(&str, &str)]) -> Self {
        let (a, b) = (ScriptedProvider::start(), ScriptedProvider::start());
        b.rotate_keys();
        let mut secret = NamedTempFile::new().unwrap();
        writeln!(secret, "{CLIENT_SECRET}").unwrap();
        let table = |id: &str, provider: &ScriptedProvider, further: &str| {
            format!(
                "[[provider]]\nid = \"{id}\"\nissuer_url = \"{}\"\nclient_id = \"{CLIENT_ID}\"\n\
                 client_secret_file = \"{}\"\nhttp_timeout_ms = 2000\n{further}\n",
                provider.issuer(),
                secret.path().display()
            )
        };
        let mut file = NamedTempFile::new().unwrap();
        write!(
            file,
            "default = \"a\"\n{}{}",
            table("a", &a, for_a),
            table("b", &b, for_b)
        )
        .unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let settings = [&[("OIDC_PROVIDERS", path.as_str())], settings].concat();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self {
            stack: Stack::at(a, listener, &settings).await,
            b,
            _secret: secret,
            _file: file,
        }
    }

    fn a(&self) -> &ScriptedProvider {
        &self.stack.provider
    }

    /// The provider a browser is sent to, and the parameters.
    async fn sent_to(&self, browser: &mut Browser, login: &str) -> (&'static str, url::Url) {
        let answer = browser.visit(login).await;
        assert_eq!(answer.status, 302, "{login}: {answer:?}");
        let location = url::Url::parse(answer.location()).unwrap();
        let at = |provider: &ScriptedProvider| answer.location().starts_with(provider.issuer());
        let id = match (at(self.a()), at(&self.b)) {
            (true, false) => "a",
            (false, true) => "b",
            _ => panic!("{location} is neither"),
        };
        (id, location)
    }

    /// A browser that is signed in at this provider.
    async fn signed_in(&self, id: &str) -> Browser {
        let mut browser = self.stack.browser();
        let login = format!("/api/auth/login?connection={id}");
        let callback = browser.until_callback(&login).await;
        assert_eq!(path(&callback), format!("/api/auth/callback/{id}"));
        let answer = browser.visit(&callback).await;
        assert_eq!(answer.status, 302, "{answer:?}");
        browser
    }

    /// How often each token endpoint was called.
    fn token_calls(&self) -> (usize, usize) {
        (self.a().calls(Endpoint::Token), self.b.calls(Endpoint::Token))
    }
}

fn path(url: &str) -> String {
    url::Url::parse(url).unwrap().path().to_owned()
}

fn parameter(url: &url::Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}
