//! Status and challenges that tell a client why its token fails, or how to get a token. See RFC 6750 section
//! 3, RFC 9449 section 7.1, RFC 9470 section 3, and RFC 9728 section 5.1.

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use oidc::SigningAlgorithm;

use super::presentation::Presentation;
use super::presented::Scheme;
use crate::gateway::challenge;
use crate::http::errors::HttpError;
use crate::providers::sites::Site;
use crate::route_table::bearer::BearerRule;
use crate::values::reserved::RESOURCE_METADATA_PATH;

/// The longest metadata URL in a challenge, in bytes: a head with two challenges stays under 4 KiB.
const MAX_METADATA_URL_BYTES: usize = 1_024;

/// The metadata URL of the resource at this path (RFC 9728 section 3.1).
pub(in crate::gateway) fn metadata_url(site: &Site, path: &str) -> Option<String> {
    let below = if path == "/" { "" } else { path };
    let url = url_at(site, &format!("{RESOURCE_METADATA_PATH}{below}"));
    (url.len() <= MAX_METADATA_URL_BYTES).then_some(url)
}

/// The URL of a path as clients write it. The URL of the whole site has no trailing slash.
pub(super) fn url_at(site: &Site, path: &str) -> String {
    let mut url = site.base_url.clone();
    url.set_path(path);
    let whole = if url.path() == "/" {
        url.as_str().trim_end_matches('/')
    } else {
        url.as_str()
    };
    whole.to_owned()
}

/// The client's answer. If a standard defines the error, each accepted scheme gets a challenge.
pub(super) fn answer(failure: HttpError, presented: &Presentation<'_>, scheme: Scheme) -> Response {
    let mut response = failure.clone().into_response();
    if let HttpError::AccessToken { code, words, .. } = failure {
        let mut parameters = vec![
            ("error", code.to_owned()),
            ("error_description", words.to_owned()),
        ];
        if code == challenge::STEP_UP {
            parameters.extend(challenge::step_up_parameters(&presented.route.requirements));
        }
        let metadata = presented
            .publisher
            .and_then(|site| metadata_url(site, presented.path));
        challenge_with(&mut response, presented.rule, metadata, Some(scheme), &parameters);
    }
    response
}

/// Shows a client without a token how to get one. Names no error, as RFC 6750 section 3.1 requires.
pub(in crate::gateway) fn invite(response: &mut Response, rule: &BearerRule, metadata: Option<String>) {
    challenge_with(response, rule, metadata, None, &[]);
}

/// Adds a challenge for each accepted scheme. The error goes into the one the client used.
fn challenge_with(
    response: &mut Response,
    rule: &BearerRule,
    metadata: Option<String>,
    used: Option<Scheme>,
    parameters: &[(&str, String)],
) {
    for scheme in [Scheme::Bearer, Scheme::Dpop] {
        if scheme == Scheme::Bearer && rule.dpop_required {
            continue;
        }
        let mut all: Vec<(&str, String)> = Vec::new();
        // If the route rejects the client's scheme, the DPoP challenge names the error.
        if used == Some(scheme) || (used.is_some() && rule.dpop_required) {
            all.extend(parameters.iter().cloned());
        }
        if !rule.scopes.is_empty() {
            all.push(("scope", rule.scopes.join(" ")));
        }
        if scheme == Scheme::Dpop {
            all.push(("algs", proof_algorithms().join(" ")));
        }
        all.extend(metadata.clone().map(|url| ("resource_metadata", url)));
        let name = match scheme {
            Scheme::Bearer => "Bearer",
            Scheme::Dpop => "DPoP",
        };
        if let Some(value) = challenge::challenge(name, &all) {
            response.headers_mut().append(header::WWW_AUTHENTICATE, value);
        }
    }
}

/// The accepted signing algorithms of proofs.
pub(super) fn proof_algorithms() -> Vec<&'static str> {
    let all = SigningAlgorithm::PUBLIC_KEY.iter();
    all.map(|algorithm| algorithm.name()).collect()
}
