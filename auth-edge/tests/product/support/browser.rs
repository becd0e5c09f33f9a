//! A browser for HTTP: it has a cookie jar, and follows no redirects by itself.

use std::collections::BTreeMap;

use reqwest::header::{COOKIE, HOST, HeaderMap, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;

/// An answer of the edge.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|value| value.to_str().unwrap())
            .unwrap_or_default()
    }

    pub(crate) fn location(&self) -> &str {
        self.header("location")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn set_cookies(&self) -> Vec<&str> {
        self.headers
            .get_all(SET_COOKIE)
            .iter()
            .map(|value| value.to_str().unwrap())
            .collect()
    }

    /// The bytes of the head over HTTP/1.1, as a proxy buffers them.
    pub(crate) fn head_bytes(&self) -> usize {
        let reason = StatusCode::from_u16(self.status).unwrap().canonical_reason();
        let status_line = "HTTP/1.1 200 \r\n".len() + reason.unwrap_or_default().len();
        let lines = self.headers.iter();
        let lines = lines.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
        status_line + lines.sum::<usize>() + "\r\n".len()
    }

    /// Whether the edge itself answered, not an upstream.
    fn is_of_the_edge(&self) -> bool {
        self.header("cross-origin-resource-policy") == "same-origin"
    }

    /// The `Set-Cookie` line whose cookie name has this ending.
    pub(crate) fn set_cookie(&self, name: &str) -> Option<&str> {
        self.set_cookies()
            .into_iter()
            .find(|line| line.split('=').next().unwrap().ends_with(name))
    }
}

/// A browser. Clones have their own jars.
#[derive(Clone)]
pub(crate) struct Browser {
    client: Client,
    address: String,
    base: String,
    pub(crate) jar: BTreeMap<String, String>,
    /// The longest head that the edge's own answers may have, in bytes.
    pub(crate) longest_head: usize,
}

/// nginx reads a head into one buffer of a memory page, and answers 502 to a longer one.
const LONGEST_HEAD: usize = 4_096;

impl Browser {
    pub(crate) fn new(address: &str, base: &str) -> Self {
        let client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .build()
            .unwrap();
        let base = base.trim_end_matches('/').to_owned();
        Self {
            client,
            address: address.to_owned(),
            base,
            jar: BTreeMap::new(),
            longest_head: LONGEST_HEAD,
        }
    }

    /// Host and port it connects to.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The base URL the browser uses.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The host in its requests.
    pub(crate) fn host(&self) -> &str {
        self.base.split("://").nth(1).unwrap()
    }

    /// A navigation typed into the address bar.
    pub(crate) async fn visit(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, &NAVIGATION, None).await
    }

    /// A plain request without browser headers.
    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], None).await
    }

    pub(crate) async fn get_with(&mut self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(Method::GET, path, headers, None).await
    }

    pub(crate) async fn post(&mut self, path: &str, headers: &[(&str, &str)], form: &str) -> Answer {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let headers: Vec<_> = if headers.iter().any(|(name, _)| *name == "content-type") {
            headers.to_vec()
        } else {
            headers.iter().copied().chain([kind]).collect()
        };
        self.send(Method::POST, path, &headers, Some(form.to_owned()))
            .await
    }

    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Answer {
        let path = path.strip_prefix(&self.base).unwrap_or(path);
        let host = self.base.split("://").nth(1).unwrap();
        let mut request = self
            .client
            .request(method, format!("http://{}{path}", self.address))
            .header(HOST, host);
        if !self.jar.is_empty() {
            let line = self
                .jar
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join("; ");
            request = request.header(COOKIE, line);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.unwrap_or_default()).send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let answer = Answer {
            status,
            headers,
            body: response.text().await.unwrap(),
        };
        assert!(
            !answer.header("x-request-id").is_empty(),
            "every response has an ID: {answer:?}"
        );
        assert!(
            !answer.is_of_the_edge() || answer.head_bytes() <= self.longest_head,
            "no head of the edge's own is longer than a proxy's buffer: {} bytes, {answer:?}",
            answer.head_bytes()
        );
        for line in answer.set_cookies() {
            let (pair, attributes) = line.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                self.jar.remove(name);
            } else {
                self.jar.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    /// Goes to the provider. Returns its redirect.
    pub(crate) async fn authorize(&self, url: &str) -> String {
        let response = self.client.get(url).send().await.unwrap();
        assert_eq!(response.status(), 302, "the provider sends the browser back");
        response.headers()["location"].to_str().unwrap().to_owned()
    }

    /// Starts a sign-in and goes to the provider. Returns the callback URL.
    pub(crate) async fn until_callback(&mut self, login: &str) -> String {
        let login = self.visit(login).await;
        assert_eq!(login.status, 302, "{login:?}");
        self.authorize(login.location()).await
    }

    /// Signs in. Returns the callback's answer.
    pub(crate) async fn sign_in(&mut self) -> Answer {
        let callback = self.until_callback("/api/auth/login").await;
        let answer = self.visit(&callback).await;
        assert_eq!(answer.status, 302, "{answer:?}");
        answer
    }
}

/// The headers a browser sends with a typed address.
pub(crate) const NAVIGATION: [(&str, &str); 4] = [
    (
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    ),
    ("sec-fetch-site", "none"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];
