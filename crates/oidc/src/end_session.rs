//! RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0 section 2).

use openidconnect::{ClientId, CsrfToken, EndSessionUrl, LogoutRequest, PostLogoutRedirectUrl};
use url::Url;

/// The parameters of a logout request.
#[derive(Clone, Copy, Default)]
pub struct EndSessionRequest<'a> {
    /// The newest ID token of the session; it may have expired.
    pub id_token_hint: Option<&'a str>,
    /// Where the provider sends the browser afterwards.
    pub post_logout_redirect_uri: Option<&'a str>,
    /// Comes back with the browser.
    pub state: Option<&'a str>,
}

/// Beyond this length servers answer 414; then the hint is left out, `client_id` still identifies this client.
const MAX_URL_BYTES: usize = 8 * 1024;

/// The address with its parameters; those the provider's own address has stay.
pub(crate) fn address(endpoint: &EndSessionUrl, client_id: &str, request: &EndSessionRequest<'_>) -> Url {
    let client_id = ClientId::new(client_id.to_owned());
    let mut logout = LogoutRequest::from(endpoint.clone()).set_client_id(client_id);
    let back = request.post_logout_redirect_uri.map(str::to_owned);
    if let Some(back) = back.and_then(|back| PostLogoutRedirectUrl::new(back).ok()) {
        logout = logout.set_post_logout_redirect_uri(back);
    }
    if let Some(state) = request.state {
        logout = logout.set_state(CsrfToken::new(state.to_owned()));
    }
    let url = logout.http_get_url();
    let mut hinted = url.clone();
    if let Some(hint) = request.id_token_hint {
        hinted.query_pairs_mut().append_pair("id_token_hint", hint);
    }
    if hinted.as_str().len() > MAX_URL_BYTES {
        url
    } else {
        hinted
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
        let endpoint = "https://issuer.example/end?tenant=one".to_owned();
        let endpoint = EndSessionUrl::new(endpoint).expect("a URL");
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
