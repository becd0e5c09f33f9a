//! The shapes of providers' JWT access tokens, one row each, to compare with the providers' documents.
//!
//! Invariant: an ID token of the same provider fits no row. RFC 9068 gives access tokens their own `typ`. The
//! other shapes use the `typ` of every JWT. Their rows require claims of access tokens and reject claims of
//! ID tokens (RFC 8725, section 3.12).

/// The shape of a provider's JWT access tokens.
#[derive(Debug, PartialEq, Eq)]
pub struct AccessTokenShape {
    /// The name in the settings.
    pub name: &'static str,
    /// The header's `typ` in full; `None` is `JWT` or no `typ`.
    pub(crate) typ: Option<&'static str>,
    /// The claims that may name the client: the first one present counts.
    pub(crate) client: &'static [&'static str],
    /// The claims that may hold the scope, as text or as a list: the first one present counts.
    pub(crate) scope: &'static [&'static str],
    /// Whether a token without any of the scope claims is refused.
    pub(crate) scope_required: bool,
    /// The value that `token_use` has to have.
    pub(crate) token_use: Option<&'static str>,
    /// Whether a token may leave out `aud`.
    pub(crate) audience_optional: bool,
}

impl AccessTokenShape {
    /// RFC 9068, sections 2.1 and 2.2.
    const RFC_9068: Self = Self {
        name: "rfc9068",
        typ: Some("application/at+jwt"),
        client: &["client_id"],
        scope: &["scope"],
        scope_required: false,
        token_use: None,
        audience_optional: false,
    };
}

/// All shapes. The first one is the default.
pub static ACCESS_TOKEN_SHAPES: [AccessTokenShape; 4] = [
    AccessTokenShape::RFC_9068,
    // https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference: version 2.0 has
    // `azp`, 1.0 `appid`. Only users' tokens have `scp`; other `roles` are the application's permissions.
    AccessTokenShape {
        name: "entra",
        typ: None,
        client: &["azp", "appid"],
        scope: &["scp", "roles"],
        scope_required: true,
        ..AccessTokenShape::RFC_9068
    },
    // https://developer.okta.com/docs/api/openapi/okta-oauth/guides/overview/: custom authorization servers.
    AccessTokenShape {
        name: "okta",
        typ: None,
        client: &["cid"],
        scope: &["scp"],
        scope_required: true,
        ..AccessTokenShape::RFC_9068
    },
    // https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html:
    // `aud` exists only if the client named a resource.
    AccessTokenShape {
        name: "cognito",
        typ: None,
        token_use: Some("access"),
        audience_optional: true,
        ..AccessTokenShape::RFC_9068
    },
];

impl AccessTokenShape {
    /// The shape of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<&'static Self> {
        ACCESS_TOKEN_SHAPES.iter().find(|shape| shape.name == name)
    }

    /// The shape of RFC 9068.
    #[must_use]
    pub const fn rfc9068() -> &'static Self {
        let [rfc9068, ..] = &ACCESS_TOKEN_SHAPES;
        rfc9068
    }
}
