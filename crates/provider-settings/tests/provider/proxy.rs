//! Calls to the provider through a forward proxy, and faulty proxies.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oidc::{Outage, ProviderError, RelyingParty};
use provider_settings::follow;
use scripted_provider::{CLIENT_ID, CLIENT_SECRET};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Certificates, NOW, TlsProvider, party};

/// A proxy's reaction to a CONNECT request.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Opens a tunnel to the port on loopback, for any host.
    Tunnels,
    /// Answers this and no more.
    Answers(&'static str),
    /// Never answers.
    Hangs,
    /// Closes the connection.
    HangsUp,
}

/// A proxy, and the heads of its requests.
struct Proxy {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn that(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads = Arc::default();
        let kept = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, does, Arc::clone(&kept)));
            }
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn serve(mut client: TcpStream, does: Does, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match client.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_gone) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let port: Option<u16> = head
        .split(' ')
        .nth(1)
        .and_then(|target| target.rsplit(':').next()?.parse().ok());
    heads.lock().unwrap().push(head);
    match does {
        Does::Tunnels => {
            let mut server = TcpStream::connect(("127.0.0.1", port.unwrap())).await.unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            // The tunnel ends when either side closes.
            let _ended = copy_bidirectional(&mut client, &mut server).await;
        }
        Does::Answers(answer) => client.write_all(answer.as_bytes()).await.unwrap(),
        Does::Hangs => std::future::pending().await,
        Does::HangsUp => {}
    }
}

/// A relying party of `provider` behind a proxy that requires user and password.
fn behind(
    proxy: &Proxy,
    provider: &TlsProvider,
    certificates: &Certificates,
    no_proxy: &str,
) -> RelyingParty {
    let (ca, proxy) = (
        certificates.text("ca.pem"),
        format!("http://user:p%40ssw0rd@{}", proxy.address),
    );
    let settings = [
        ("OIDC_ISSUER_URL", provider.issuer.as_str()),
        ("OIDC_CLIENT_ID", CLIENT_ID),
        ("OIDC_CLIENT_SECRET", CLIENT_SECRET),
        ("OIDC_CA_FILE", &ca),
        ("OIDC_HTTP_TIMEOUT_MS", "3000"),
        ("https_proxy", &proxy),
        ("NO_PROXY", no_proxy),
    ];
    party(&settings).unwrap().0
}

#[tokio::test]
async fn every_call_goes_through_a_tunnel_and_the_proxy_learns_the_host_alone() {
    let certificates = Certificates::make();
    let provider = TlsProvider::called("provider.example", &certificates, None).await;
    let proxy = Proxy::that(Does::Tunnels).await;
    let party = behind(&proxy, &provider, &certificates, "other.example, 10.0.0.0/8");
    assert_eq!(party.metadata().await.unwrap().issuer, provider.issuer);
    party
        .exchange_code("code", "verifier", "https://app.example/cb", NOW)
        .await
        .unwrap();
    assert_eq!(provider.forms.borrow().len(), 1);
    let heads = proxy.heads();
    let target = provider.issuer.trim_start_matches("https://");
    assert!(!heads.is_empty());
    for head in heads {
        let lower = head.to_ascii_lowercase();
        assert!(
            head.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")),
            "{head}"
        );
        // user:p@ssw0rd
        assert!(
            lower.contains("proxy-authorization: basic ") && head.contains("dXNlcjpwQHNzdzByZA=="),
            "{head}"
        );
        assert!(
            !lower.contains("\r\nauthorization:") && !head.contains("code"),
            "{head}"
        );
    }
    assert!(!format!("{:?}", party.settings()).contains("ssw0rd"));
}

#[tokio::test]
async fn loopback_and_who_is_named_are_reached_without_the_proxy() {
    let certificates = Certificates::make();
    let proxy = Proxy::that(Does::Tunnels).await;
    let provider = TlsProvider::start(&certificates, None).await;
    let local = behind(&proxy, &provider, &certificates, "");
    assert_eq!(local.metadata().await.unwrap().issuer, provider.issuer);
    // Only the proxy resolves this name.
    let provider = TlsProvider::called("provider.example", &certificates, None).await;
    let named = behind(&proxy, &provider, &certificates, ".org, .example");
    named.metadata().await.unwrap_err();
    assert_eq!(proxy.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn a_proxy_that_misbehaves_is_an_outage_that_ends_in_time_and_tells_no_secret() {
    let certificates = Certificates::make();
    let provider = TlsProvider::called("provider.example", &certificates, None).await;
    let wants = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n";
    for does in [
        Does::Answers("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"),
        Does::Answers(wants),
        Does::Answers("HTTP/1.1 200 OK\r\n\r\nnot TLS at all"),
        Does::Answers("SSH-2.0-OpenSSH\r\n"),
        Does::HangsUp,
        Does::Hangs,
    ] {
        let proxy = Proxy::that(does).await;
        let party = behind(&proxy, &provider, &certificates, "");
        let error = party.metadata().await.unwrap_err();
        let expected = match does {
            Does::Hangs => Outage::Timeout,
            Does::Tunnels | Does::Answers(_) | Does::HangsUp => Outage::Unreachable,
        };
        assert_eq!(error.outage(), expected, "{does:?}");
        assert!(!whole(&error).contains("ssw0rd"), "{does:?}");
        assert_eq!(proxy.heads().len(), 1, "{does:?}");
    }
}

/// The error with its causes.
fn whole(error: &ProviderError) -> String {
    let mut text = format!("{error:?}");
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn a_proxy_whose_file_changes_is_used_without_a_restart() {
    let certificates = Certificates::make();
    let provider = TlsProvider::called("provider.example", &certificates, None).await;
    let forbids = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    let folder = tempfile::tempdir().unwrap();
    let [file, list, secret] = ["proxy", "providers.toml", "secret"].map(|name| folder.path().join(name));
    std::fs::write(&secret, CLIENT_SECRET).unwrap();
    let (ca, path) = (certificates.text("ca.pem"), file.to_str().unwrap());
    let table = format!(
        "default = \"only\"\n[[provider]]\nid = \"only\"\nissuer_url = \"{}\"\nclient_id = \"{CLIENT_ID}\"\n\
         client_secret_file = \"{}\"\nca_file = \"{ca}\"\n",
        provider.issuer,
        secret.display()
    );
    std::fs::write(&list, table).unwrap();
    let plain = [
        ("OIDC_ISSUER_URL", provider.issuer.as_str()),
        ("OIDC_CLIENT_ID", CLIENT_ID),
        ("OIDC_CLIENT_SECRET", CLIENT_SECRET),
        ("OIDC_CA_FILE", &ca),
        ("HTTPS_PROXY_FILE", path),
    ];
    let listed = [
        ("OIDC_PROVIDERS", list.to_str().unwrap()),
        ("HTTPS_PROXY_FILE", path),
    ];
    for settings in [&plain[..], &listed] {
        let (first, second) = (
            Proxy::that(Does::Answers(forbids)).await,
            Proxy::that(Does::Tunnels).await,
        );
        std::fs::write(&file, &first.address).unwrap();
        let (party, files) = party(settings).unwrap();
        follow(&party, &files);
        party.metadata().await.unwrap_err();
        std::fs::write(&file, format!("{}\n", second.address)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while party.metadata().await.is_err() {
            assert!(Instant::now() < deadline, "the proxy it names now is not used");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(!first.heads().is_empty() && !second.heads().is_empty());
    }
}

#[test]
fn a_bad_proxy_is_named_without_its_password_unknown_no_proxy_members_are_ignored() {
    let base = [
        ("OIDC_ISSUER_URL", "https://provider.example"),
        ("OIDC_CLIENT_ID", CLIENT_ID),
        ("OIDC_CLIENT_SECRET", CLIENT_SECRET),
    ];
    let wrong = [
        &base[..],
        &[("HTTPS_PROXY", "socks5://user:p4ssw0rd@proxy.example")],
    ]
    .concat();
    let message = party(&wrong).map(|_| ()).unwrap_err();
    assert!(
        message.contains("HTTPS_PROXY") && !message.contains("p4ssw0rd"),
        "{message}"
    );
    let odd = [
        ("HTTPS_PROXY", "proxy.example:3128"),
        ("NO_PROXY", "https://odd,.good"),
    ];
    let odd = [&base[..], &odd].concat();
    assert!(party(&odd).is_ok());
}
