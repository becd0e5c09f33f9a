//! The bounded HTTP client: deadline, size limit, at most one redirect.
//!
//! Invariants
//! - Only a GET follows a redirect, once, within its origin. A form with a secret follows none.
//! - JSON is parsed by its bytes: providers send it with any content type, after a byte order mark, or
//!   compressed. The limit counts decompressed bytes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, HeaderMap, HeaderName, LOCATION, WWW_AUTHENTICATE,
};
use reqwest::redirect::Policy;
use reqwest::tls::TlsInfo;
use reqwest::{Certificate, ClientBuilder, Identity, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tracing::Instrument as _;
use url::Url;

use crate::client::client_auth::Proof;
use crate::provider::span;
use crate::{BuildError, ClientAuth, Credentials, ForwardProxy, ProviderError, ProviderSettings};

/// More than any metadata, key set or token response needs.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// The client closes idle connections before the provider does (after five seconds or more, the defaults of
/// Node.js and Apache). If a connection breaks during a grant, the client cannot send it again.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// The introspection endpoint; its answer may be signed (RFC 9701).
pub(crate) const INTROSPECTION_ENDPOINT: &str = "introspection_endpoint";
const SIGNED_TOO: &str = "application/json, application/token-introspection+jwt;q=0.9";

const DPOP: HeaderName = HeaderName::from_static("dpop");
/// The nonce for the next proof to this server (RFC 9449, section 8).
pub(crate) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// A complete answer.
pub(crate) struct ProviderResponse {
    pub(crate) status: u16,
    headers: HeaderMap,
    /// The server's certificate, DER.
    pub(crate) certificate: Option<Vec<u8>>,
    pub(crate) body: Vec<u8>,
    pub(crate) endpoint: &'static str,
}

impl ProviderResponse {
    /// The value of a header, if it is not empty.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        let text = self.headers.get(name)?.to_str().ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// For how many seconds the answer may be cached.
    pub(crate) fn max_age_secs(&self) -> Option<u64> {
        let mut directives = self.header(CACHE_CONTROL)?.split(',');
        directives.find_map(|directive| directive.trim().strip_prefix("max-age=")?.parse().ok())
    }

    /// The body as JSON, regardless of its content type.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ProviderError> {
        serde_json::from_slice(self.text()).map_err(|_| self.malformed())
    }

    /// The body of a successful answer as JSON.
    pub(crate) fn document<T: DeserializeOwned>(&self) -> Result<T, ProviderError> {
        if self.status != 200 {
            return Err(self.status_error());
        }
        self.json()
    }

    /// The body without a byte order mark.
    pub(crate) fn text(&self) -> &[u8] {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        self.body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.body)
    }

    /// The body as a compact JWS; `None` if it is something else, such as a JSON object.
    pub(crate) fn compact_jws(&self) -> Option<&str> {
        let text = std::str::from_utf8(self.text()).ok()?.trim();
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (text.split('.').count() == 3 && text.bytes().all(is_part)).then_some(text)
    }

    /// The target of a redirect, if it has the origin of `from`.
    fn redirect_within(&self, from: &Url) -> Option<Url> {
        let is_redirect = matches!(self.status, 301 | 302 | 303 | 307 | 308);
        let to = from.join(self.header(LOCATION).filter(|_| is_redirect)?).ok()?;
        (to.origin() == from.origin() && to.username().is_empty()).then_some(to)
    }

    /// Whether the body is this OAuth error (RFC 6749, section 5.2).
    fn is_error(&self, code: &str) -> bool {
        self.json::<Map<String, Value>>()
            .is_ok_and(|document| document.get("error").and_then(Value::as_str) == Some(code))
    }

    /// Whether the provider rejects the client (RFC 6749, section 5.2).
    pub(crate) fn doubts_client(&self) -> bool {
        matches!(self.status, 400 | 401 | 403) && self.is_error("invalid_client")
    }

    /// Whether the server asks for its nonce, in an OAuth error or a resource's challenge.
    pub(crate) fn wants_nonce(&self) -> bool {
        const ERROR: &str = "use_dpop_nonce";
        let is_challenge = || {
            self.header(WWW_AUTHENTICATE)
                .is_some_and(|text| text.contains(ERROR))
        };
        (matches!(self.status, 400 | 401) && self.is_error(ERROR)) || (self.status == 401 && is_challenge())
    }

    pub(crate) fn malformed(&self) -> ProviderError {
        ProviderError::Malformed(self.endpoint)
    }

    pub(crate) fn status_error(&self) -> ProviderError {
        ProviderError::Status(self.endpoint, self.status)
    }
}

/// The HTTP client for the provider.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: reqwest::Client,
    pub(crate) settings: Arc<ProviderSettings>,
}

impl HttpClient {
    pub(crate) fn new(
        settings: &Arc<ProviderSettings>,
        credentials: &Credentials,
    ) -> Result<Self, BuildError> {
        let (ca_file, proxy) = (settings.ca_file.as_deref(), credentials.proxy.clone());
        let mut builder = client_builder(settings.http_timeout, ca_file, proxy)?.tls_info(true);
        if let ClientAuth::TlsClientAuth { cert_file, key_file } = &credentials.auth {
            builder = builder.identity(identity(cert_file, key_file)?);
        }
        Ok(Self {
            client: builder.build().map_err(BuildError::HttpClient)?,
            settings: Arc::clone(settings),
        })
    }

    /// Sends a request and reports the outcome to the observer.
    async fn send(
        &self,
        endpoint: &'static str,
        request: RequestBuilder,
    ) -> Result<ProviderResponse, ProviderError> {
        let began = Instant::now();
        let request = request.build().map_err(|source| failed(endpoint, source))?;
        let span = span::of_request(endpoint, &request);
        let answer = async { complete(endpoint, self.client.execute(request).await).await };
        let answer = answer.instrument(span.clone()).await;
        let status = answer.as_ref().map(|response| response.status);
        span::record_response(&span, status);
        if let Some(observer) = &self.settings.observer {
            observer.tell(endpoint, outcome(status), began.elapsed());
        }
        answer
    }

    /// Gets a document, and follows one redirect inside its origin.
    pub(crate) async fn get(
        &self,
        endpoint: &'static str,
        url: &Url,
    ) -> Result<ProviderResponse, ProviderError> {
        let request = |url: &Url| self.client.get(url.clone()).header(ACCEPT, "application/json");
        let answer = self.send(endpoint, request(url)).await?;
        match answer.redirect_within(url) {
            Some(next) => self.send(endpoint, request(&next)).await,
            None => Ok(answer),
        }
    }

    /// Gets a page as a browser would, without redirects: some providers answer errors to requests for JSON.
    pub(crate) async fn get_page(
        &self,
        endpoint: &'static str,
        url: &Url,
    ) -> Result<ProviderResponse, ProviderError> {
        let request = self.client.get(url.clone()).header(ACCEPT, "text/html");
        self.send(endpoint, request).await
    }

    /// Sends the access token in the header only (RFC 6750 section 2, RFC 9449 section 7.1). Follows one
    /// redirect within the origin, except with a proof, which is for one address.
    pub(crate) async fn get_with_token(
        &self,
        endpoint: &'static str,
        url: &Url,
        access_token: &str,
        dpop: Option<&str>,
    ) -> Result<ProviderResponse, ProviderError> {
        let request = |url: &Url| {
            let request = self
                .client
                .get(url.clone())
                .header(ACCEPT, "application/json, application/jwt");
            match dpop {
                None => request.bearer_auth(access_token),
                Some(proof) => request
                    .header(AUTHORIZATION, format!("DPoP {access_token}"))
                    .header(DPOP, proof),
            }
        };
        let answer = self.send(endpoint, request(url)).await?;
        match answer.redirect_within(url).filter(|_| dpop.is_none()) {
            Some(next) => self.send(endpoint, request(&next)).await,
            None => Ok(answer),
        }
    }

    pub(crate) async fn post_form(
        &self,
        endpoint: &'static str,
        url: &Url,
        proof: Proof,
        fields: &[(&str, &str)],
        timeout: Duration,
        dpop: Option<&str>,
    ) -> Result<ProviderResponse, ProviderError> {
        let mine = fields
            .iter()
            .copied()
            .filter(|(name, _)| *name != "client_id" || proof.authorization.is_some());
        let proving = proof.fields.iter().map(|(name, value)| (*name, value.as_str()));
        let accepted = match endpoint {
            INTROSPECTION_ENDPOINT => SIGNED_TOO,
            _ => "application/json",
        };
        let mut request = self
            .client
            .post(url.clone())
            .header(ACCEPT, accepted)
            .timeout(timeout)
            .form(&mine.chain(proving).collect::<Vec<_>>());
        if let Some(authorization) = proof.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(dpop) = dpop {
            request = request.header(DPOP, dpop);
        }
        self.send(endpoint, request).await
    }
}

/// A builder of HTTP clients with our limits: a timeout, no redirects, only the given proxy. The
/// certification authorities of `ca_file` replace the public ones.
///
/// # Errors
/// The file of certification authorities is unreadable or holds none.
pub fn client_builder(
    timeout: Duration,
    ca_file: Option<&Path>,
    proxy: Option<ForwardProxy>,
) -> Result<ClientBuilder, BuildError> {
    // reqwest uses the process's provider of cryptography. An error means that there is one already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .timeout(timeout)
        .connect_timeout(timeout)
        .redirect(Policy::none())
        .pool_idle_timeout(POOL_IDLE)
        .gzip(true)
        .user_agent(concat!("vestibule/", env!("CARGO_PKG_VERSION")))
        .no_proxy();
    if let Some(proxy) = proxy {
        builder = builder.proxy(reqwest::Proxy::custom(move |url| proxy.for_url(url)));
    }
    if let Some(path) = ca_file {
        builder = builder.tls_built_in_root_certs(false);
        let pem = std::fs::read(path).map_err(|source| BuildError::CaFile(Some(source)))?;
        let authorities = Certificate::from_pem_bundle(&pem).map_err(|_| BuildError::CaFile(None))?;
        if authorities.is_empty() {
            return Err(BuildError::CaFile(None));
        }
        for authority in authorities {
            builder = builder.add_root_certificate(authority);
        }
    }
    Ok(builder)
}

/// The outcome of a request by its status or error: a short, stable name for metrics and traces.
pub(crate) fn outcome(answer: Result<u16, &ProviderError>) -> &'static str {
    match answer {
        Ok(500..) => "failed",
        Ok(400..500) => "refused",
        Ok(_) => "answered",
        Err(ProviderError::Timeout { .. }) => "timeout",
        Err(ProviderError::Unreachable { .. }) => "unreachable",
        Err(_) => "unusable",
    }
}

fn failed(endpoint: &'static str, source: reqwest::Error) -> ProviderError {
    if source.is_timeout() {
        ProviderError::Timeout(endpoint)
    } else {
        // without the URL: errors are logged, and queries are private
        ProviderError::Unreachable(endpoint, source.without_url())
    }
}

async fn complete(
    endpoint: &'static str,
    response: reqwest::Result<Response>,
) -> Result<ProviderResponse, ProviderError> {
    let failed = |source| failed(endpoint, source);
    let mut response = response.map_err(failed)?;
    let certificate = response.extensions().get::<TlsInfo>();
    let mut answer = ProviderResponse {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        certificate: certificate.and_then(|tls| tls.peer_certificate().map(<[u8]>::to_vec)),
        body: Vec::new(),
        endpoint,
    };
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if answer.body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            return Err(ProviderError::TooLarge(endpoint, MAX_RESPONSE_BYTES));
        }
        answer.body.extend_from_slice(&chunk);
    }
    Ok(answer)
}

fn identity(cert_file: &Path, key_file: &Path) -> Result<Identity, BuildError> {
    let read = |path| std::fs::read(path).map_err(BuildError::ClientFile);
    let mut pem = read(key_file)?;
    pem.push(b'\n');
    pem.extend(read(cert_file)?);
    Identity::from_pem(&pem).map_err(|_| BuildError::ClientCertificate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_follows_from_the_status_or_the_error() {
        let of = |status| outcome(Ok(status));
        let refused = "refused";
        assert_eq!(
            [200, 302, 400, 401, 499].map(of),
            ["answered", "answered", refused, refused, refused]
        );
        assert_eq!([500, 503].map(of), ["failed", "failed"]);
        let endpoint = "token_endpoint";
        assert_eq!(outcome(Err(&ProviderError::Timeout(endpoint))), "timeout");
        let large = ProviderError::TooLarge(endpoint, 1);
        assert_eq!(outcome(Err(&large)), "unusable");
    }
}
