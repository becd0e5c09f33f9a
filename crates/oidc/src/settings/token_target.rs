//! The target of an access token for a single API (RFC 8693, section 2.1; RFC 8707, section 2).

use url::Url;

/// How access tokens for single APIs are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiTokenGrant {
    /// The session's access token is exchanged (RFC 8693). No token rotates.
    #[default]
    TokenExchange,
    /// The refresh token is used with `resource` (RFC 8707, section 2.2), or `audience` at some providers.
    Refresh,
}

/// Bound on the bytes of a resource: more than any URL in use.
const MAX_RESOURCE_BYTES: usize = 2_048;

/// Whether a text is a resource: an absolute URI without fragment (RFC 8707, section 2), in visible ASCII.
pub fn is_resource(text: &str) -> bool {
    text.len() <= MAX_RESOURCE_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && Url::parse(text).is_ok_and(|url| url.fragment().is_none())
}

/// The API that an access token is for; `None` fields are not sent.
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
    /// The fields of a token request.
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
