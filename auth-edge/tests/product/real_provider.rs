//! The happy path at the certified provider of `dev/idp`, in its own process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use oidc::{ClientKey, ClientKeys};
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::support::{Stack, Upstream, key_file};

/// The provider's process; it ends with the test.
struct Provider {
    process: Child,
    announced: Value,
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Provider {
    fn start(base: &str, more: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dev/idp");
        assert!(
            folder.join("node_modules").is_dir(),
            "run `npm ci` in dev/idp first"
        );
        let mut process = Command::new("node")
            .arg(folder.join("server.mjs"))
            .args([
                "--port",
                "0",
                "--redirect-uri",
                &format!("{base}/api/auth/callback"),
            ])
            .args(["--post-logout-redirect-uri", &format!("{base}/")])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is installed");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            process,
            announced: serde_json::from_str(&line).expect("one line of JSON when ready"),
        }
    }

    fn announced(&self, name: &str) -> &str {
        self.announced[name].as_str().unwrap()
    }
}

/// Ada signs in at the provider. Returns the redirect, or the page that posts the answer.
async fn ada_signs_in(issuer: &str, authorization: &str) -> (Visitor, String) {
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap();
    let mut visitor = Visitor {
        client,
        jar: Vec::new(),
    };
    let page = visitor.follow(issuer, authorization).await;
    let form = "email=ada%40example.test&password=analytical-engine";
    let request = visitor
        .client
        .post(format!("{page}/login"))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("origin", issuer)
        .body(form);
    let answer = visitor.send(request).await;
    assert_eq!(answer.status(), 303, "the password is right");
    let next = answer.headers()[LOCATION].to_str().unwrap();
    let next = answer.url().join(next).unwrap();
    let callback = visitor.follow(issuer, next.as_str()).await;
    (visitor, callback)
}

/// A visitor at the provider.
struct Visitor {
    client: Client,
    jar: Vec<(String, String)>,
}

impl Visitor {
    fn take(&mut self, response: &Response) {
        for line in response.headers().get_all(SET_COOKIE) {
            let pair = line.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.jar.retain(|(key, _)| key != name);
            self.jar.push((name.to_owned(), value.to_owned()));
        }
    }

    async fn send(&mut self, request: reqwest::RequestBuilder) -> Response {
        let line = self
            .jar
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join("; ");
        let response = request.header(COOKIE, line).send().await.unwrap();
        self.take(&response);
        response
    }

    /// Follows redirects inside the provider. Returns the first address elsewhere, or the final page.
    async fn follow(&mut self, issuer: &str, url: &str) -> String {
        let mut url = url.to_owned();
        for _ in 0..10 {
            if !url.starts_with(issuer) {
                return url;
            }
            let response = self.send(self.client.get(&url)).await;
            let Some(next) = response.headers().get(LOCATION) else {
                return url;
            };
            url = response.url().join(next.to_str().unwrap()).unwrap().into();
        }
        panic!("the provider redirects without end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_signs_in_at_the_real_provider_sees_the_profile_and_signs_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let provider = Provider::start(&base, &[]);
    let issuer = provider.announced("issuer").to_owned();
    let stack = Stack::on(
        listener,
        &[
            ("OIDC_ISSUER_URL", &issuer),
            ("OIDC_CLIENT_ID", provider.announced("client_id")),
            ("OIDC_CLIENT_SECRET", provider.announced("client_secret")),
            ("OIDC_HTTP_TIMEOUT_MS", "5000"),
            ("EDGE_USERINFO_AT_LOGIN", "always"),
        ],
    )
    .await;
    let mut browser = stack.browser();
    let login = browser.visit("/api/auth/login?returnTo=%2Faccount%3Fa%3Db").await;
    assert_eq!(login.status, 302, "{login:?}");

    let (_, callback) = ada_signs_in(&issuer, login.location()).await;

    let landed = browser.visit(&callback).await;
    assert_eq!(
        (landed.status, landed.location()),
        (302, format!("{base}/account?a=b").as_str()),
        "{landed:?}"
    );
    let me = browser.get("/api/auth/me").await.json();
    assert_eq!(
        (me["name"].as_str(), me["email"].as_str()),
        (Some("Ada Lovelace"), Some("ada@example.test"))
    );
    let refetched = browser.get("/api/auth/me?refetch=true").await;
    assert_eq!(refetched.json()["sub"], me["sub"]);
    let out = browser.visit("/api/auth/logout").await;
    assert!(out.location().starts_with(&issuer), "{out:?}");
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}

// conformance: A-069
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushed_signed_requests_assertions_and_bound_tokens_work_at_the_real_provider() {
    let (client_key, dpop_key) = (key_file(), key_file());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let key = ClientKey::from_pem(&std::fs::read_to_string(client_key.path()).unwrap()).unwrap();
    let published = tempfile::NamedTempFile::new().unwrap();
    let jwks = ClientKeys::new(key, Vec::new()).public_jwks();
    std::fs::write(published.path(), jwks.to_string()).unwrap();
    let provider = Provider::start(
        &base,
        &[
            "--client-auth",
            "private_key_jwt",
            "--client-jwks",
            published.path().to_str().unwrap(),
            "--require-dpop-nonce",
        ],
    );
    let issuer = provider.announced("issuer").to_owned();
    let upstream = Upstream::start().await;
    let table = tempfile::NamedTempFile::new().unwrap();
    let route = format!(
        "[[route]]\npath = \"/orders/*\"\nguard = \"api\"\nupstream = \"{}\"\naccess_token = true\n",
        upstream.url()
    );
    std::fs::write(table.path(), route).unwrap();
    let stack = Stack::on(
        listener,
        &[
            ("OIDC_ISSUER_URL", &issuer),
            ("OIDC_CLIENT_ID", provider.announced("client_id")),
            ("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt"),
            ("OIDC_CLIENT_KEY_FILE", client_key.path().to_str().unwrap()),
            ("OIDC_SIGNED_REQUESTS", "true"),
            ("OIDC_PAR", "require"),
            ("OIDC_DPOP", "on"),
            ("OIDC_DPOP_KEY_FILE", dpop_key.path().to_str().unwrap()),
            ("OIDC_HTTP_TIMEOUT_MS", "5000"),
            ("EDGE_USERINFO_AT_LOGIN", "always"),
            ("EDGE_ROUTES", table.path().to_str().unwrap()),
        ],
    )
    .await;
    let mut browser = stack.browser();
    let login = browser.visit("/api/auth/login?returnTo=%2Faccount").await;
    assert_eq!(login.status, 302, "{login:?}");
    assert!(login.location().contains("request_uri=") && !login.location().contains("nonce="));
    let (_, callback) = ada_signs_in(&issuer, login.location()).await;
    let landed = browser.visit(&callback).await;
    assert_eq!(landed.status, 302, "{landed:?}");
    let me = browser.get("/api/auth/me?refetch=true").await;
    assert_eq!(
        (me.status, me.json()["email"].as_str()),
        (200, Some("ada@example.test"))
    );
    assert_eq!(browser.get("/orders/7").await.status, 200);
    let seen = upstream.requests();
    assert!(seen[0].all("authorization")[0].starts_with("DPoP ") && seen[0].all("dpop").len() == 1);
}
