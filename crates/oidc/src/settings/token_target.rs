//! What an access token is to be for, where it is not the one a sign-in brings (RFC 8693, section 2.1; RFC 8707, section 2).

use url::Url;

/// How access tokens for single APIs are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiTokenGrant {
    /// The session's access token is exchanged for another (RFC 8693). Nothing is rotated.
    #[default]
    TokenExchange,
    /// The refresh token is used with `resource` (RFC 8707, section 2.2), or with `audience` where a provider has that instead.
    Refresh,
}

/// Most bytes of a resource: more than any URL in use.
const MAX_RESOURCE_BYTES: usize = 2_048;

/// Whether a text names a resource: an absolute URI without a fragment (RFC 8707, section 2), in visible ASCII.
pub fn is_resource(text: &str) -> bool {
    text.len() <= MAX_RESOURCE_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && Url::parse(text).is_ok_and(|url| url.fragment().is_none())
}

/// The API an access token is for; what is `None` is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenTarget<'a> {
    /// Logical name of the API at the provider.
    pub audience: Option<&'a str>,
    /// Absolute URI of the API, without a fragment.
    pub resource: Option<&'a str>,
    /// Scope requested, space-separated.
    pub scope: Option<&'a str>,
}

impl<'a> TokenTarget<'a> {
    /// As fields of a token request.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let named = [
            ("audience", self.audience),
            ("resource", self.resource),
            ("scope", self.scope),
        ];
        named
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)))
    }
}
