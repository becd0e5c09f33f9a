//! RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0 section 2).

use url::Url;

/// What a logout tells the provider.
#[derive(Clone, Copy, Default)]
pub struct EndSessionRequest<'a> {
    /// The newest ID token of the session; it may have expired.
    pub id_token_hint: Option<&'a str>,
    /// Where the provider sends the browser afterwards.
    pub post_logout_redirect_uri: Option<&'a str>,
    /// Comes back with the browser.
    pub state: Option<&'a str>,
}

/// Beyond this length servers answer 414; then the hint is left out, `client_id` still says who asks.
const MAX_URL_BYTES: usize = 8 * 1024;

/// The address with its parameters; those the provider's own address has stay.
pub(crate) fn address(endpoint: &Url, client_id: &str, request: &EndSessionRequest<'_>) -> Url {
    let with = |hint: Option<&str>| {
        let mut url = endpoint.clone();
        let mut query = url.query_pairs_mut();
        query.append_pair("client_id", client_id);
        let optional = [
            ("id_token_hint", hint),
            ("post_logout_redirect_uri", request.post_logout_redirect_uri),
            ("state", request.state),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        drop(query);
        url
    };
    let url = with(request.id_token_hint);
    if url.as_str().len() > MAX_URL_BYTES {
        with(None)
    } else {
        url
    }
}

/// Auth0's own logout address.
pub(crate) fn auth0_address(issuer: &str, client_id: &str, return_to: &str) -> Option<Url> {
    let mut url = Url::parse(&format!("{}/v2/logout", issuer.trim_end_matches('/'))).ok()?;
    url.query_pairs_mut()
        .append_pair("client_id", client_id)
        .append_pair("returnTo", return_to);
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint_in_address(hint: &str) -> Option<String> {
        let endpoint = Url::parse("https://issuer.example/end?tenant=one").expect("a URL");
        let request = EndSessionRequest {
            id_token_hint: Some(hint),
            ..EndSessionRequest::default()
        };
        let address = address(&endpoint, "client", &request);
        let value = |name: &str| {
            address
                .query_pairs()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        assert_eq!(
            value("tenant").as_deref(),
            Some("one"),
            "what the provider put there stays"
        );
        assert_eq!(value("client_id").as_deref(), Some("client"));
        value("id_token_hint")
    }

    // conformance: B-133
    #[test]
    fn a_hint_that_would_make_the_address_too_long_is_left_out() {
        assert_eq!(hint_in_address("short").as_deref(), Some("short"));
        assert_eq!(hint_in_address(&"x".repeat(MAX_URL_BYTES)), None);
    }
}
