//! The requests that the provider received.

/// An endpoint of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `/.well-known/openid-configuration`.
    Discovery,
    /// `/.well-known/oauth-authorization-server`; 404 unless the script sets it.
    OauthMetadata,
    /// `jwks_uri`.
    Jwks,
    /// `authorization_endpoint`.
    Authorize,
    /// `token_endpoint`.
    Token,
    /// `userinfo_endpoint`.
    Userinfo,
    /// `end_session_endpoint`.
    EndSession,
    /// `revocation_endpoint`.
    Revocation,
    /// `introspection_endpoint`.
    Introspection,
    /// `pushed_authorization_request_endpoint`.
    Par,
    /// The groups of a person, in the format of Microsoft Graph.
    Groups,
}

impl Endpoint {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Discovery,
        Self::OauthMetadata,
        Self::Jwks,
        Self::Authorize,
        Self::Token,
        Self::Userinfo,
        Self::EndSession,
        Self::Revocation,
        Self::Introspection,
        Self::Par,
        Self::Groups,
    ];

    /// The endpoint's path, unconventional on purpose.
    pub fn path(self) -> &'static str {
        match self {
            Self::Discovery => "/.well-known/openid-configuration",
            Self::OauthMetadata => "/.well-known/oauth-authorization-server",
            Self::Jwks => "/published/keys-7f3a",
            Self::Authorize => "/front/begin",
            Self::Token => "/back/exchange",
            Self::Userinfo => "/back/person",
            Self::EndSession => "/front/finish",
            Self::Revocation => "/back/forget",
            Self::Introspection => "/back/inspect",
            Self::Par => "/back/push",
            Self::Groups => "/back/groups",
        }
    }
}

/// One received request.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// HTTP method.
    pub method: String,
    /// Query parameters, decoded, in order.
    pub query: Vec<(String, String)>,
    /// Form fields of the body, decoded, in order.
    pub form: Vec<(String, String)>,
    /// Header fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
}

impl Recorded {
    /// The first form field or query parameter of that name.
    pub fn param(&self, name: &str) -> Option<&str> {
        let mut all = self.form.iter().chain(&self.query);
        all.find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The first header field of that name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}
