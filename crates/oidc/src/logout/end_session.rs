//! RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0 section 2).

use openidconnect::{ClientId, CsrfToken, EndSessionUrl, LogoutRequest, PostLogoutRedirectUrl};
use url::Url;

/// The parameters of a logout request.
#[derive(Clone, Copy, Default)]
pub struct EndSessionRequest<'a> {
    /// The newest ID token of the session; it may have expired.
    pub id_token_hint: Option<&'a str>,
    /// The provider's name for the user or session, if the ID token is not sent.
    pub logout_hint: Option<&'a str>,
    /// The address to which the provider returns the browser.
    pub post_logout_redirect_uri: Option<&'a str>,
    /// The provider returns it with the browser.
    pub state: Option<&'a str>,
}

/// The URL with its parameters; parameters of the provider's own URL stay.
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
    let mut url = logout.http_get_url();
    for (name, hint) in [
        ("id_token_hint", request.id_token_hint),
        ("logout_hint", request.logout_hint),
    ] {
        if let Some(hint) = hint {
            url.query_pairs_mut().append_pair(name, hint);
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_what_the_provider_put_there_and_says_who_signs_out() {
        let endpoint = "https://issuer.example/end?tenant=one".to_owned();
        let endpoint = EndSessionUrl::new(endpoint).expect("a URL");
        let request = EndSessionRequest {
            id_token_hint: Some("token"),
            logout_hint: Some("person"),
            ..EndSessionRequest::default()
        };
        let address = address(&endpoint, "client", &request);
        let pairs: Vec<_> = address.query_pairs().into_owned().collect();
        for (name, value) in [
            ("tenant", "one"),
            ("client_id", "client"),
            ("id_token_hint", "token"),
            ("logout_hint", "person"),
        ] {
            assert!(pairs.contains(&(name.to_owned(), value.to_owned())), "{pairs:?}");
        }
    }
}
