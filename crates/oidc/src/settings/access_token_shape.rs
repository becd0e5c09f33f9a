//! How providers make their JWT access tokens: one table, a row for each shape, to be compared with the provider's documents.
//!
//! Invariant: an ID token of the same provider fits no row. RFC 9068 gives access tokens a `typ` of their own. The other shapes have
//! the `typ` of every JWT, so their rows require what only access tokens hold and refuse what only ID tokens hold
//! (RFC 8725, section 3.12).

use serde_json::{Map, Value};

/// Claims that OpenID Connect defines for ID tokens alone (Core 2 and 3.3.2.11).
const ID_TOKEN_CLAIMS: [&str; 3] = ["nonce", "at_hash", "c_hash"];

/// Why claims are not those of an access token of the shape.
pub(crate) enum Misfit {
    /// `aud` is absent.
    Audience,
    /// A claim of access tokens is absent, or there is one of ID tokens.
    Claims,
    /// The scope is neither a text nor a list of texts.
    Scope,
}

/// The shape of a provider's JWT access tokens.
#[derive(Debug, PartialEq, Eq)]
pub struct AccessTokenShape {
    /// The name in the settings.
    pub name: &'static str,
    /// The header's `typ` in full; `None` is `JWT` or no `typ`.
    pub(crate) typ: Option<&'static str>,
    /// The claims that may name the client: the first one present counts.
    client: &'static [&'static str],
    /// The claims that may hold the scope, as text or as a list: the first one present counts.
    scope: &'static [&'static str],
    /// Whether a token without any of the scope claims is refused.
    scope_required: bool,
    /// The value that `token_use` has to have.
    token_use: Option<&'static str>,
    /// Whether a token may leave out `aud`.
    audience_optional: bool,
}

/// The shapes there are. The first one is the default.
pub static ACCESS_TOKEN_SHAPES: [AccessTokenShape; 4] = [
    // RFC 9068, sections 2.1 and 2.2.
    AccessTokenShape {
        name: "rfc9068",
        typ: Some("application/at+jwt"),
        client: &["client_id"],
        scope: &["scope"],
        scope_required: false,
        token_use: None,
        audience_optional: false,
    },
    // https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference: `azp` in version 2.0, `appid` in 1.0.
    // `scp` is in tokens of people alone. `roles` of a token without `scp` are the application's permissions.
    AccessTokenShape {
        name: "entra",
        typ: None,
        client: &["azp", "appid"],
        scope: &["scp", "roles"],
        scope_required: true,
        token_use: None,
        audience_optional: false,
    },
    // https://developer.okta.com/docs/api/openapi/okta-oauth/guides/overview/: access tokens of a custom authorization server.
    AccessTokenShape {
        name: "okta",
        typ: None,
        client: &["cid"],
        scope: &["scp"],
        scope_required: true,
        token_use: None,
        audience_optional: false,
    },
    // https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html: `aud` is
    // there only for a client that named a resource.
    AccessTokenShape {
        name: "cognito",
        typ: None,
        client: &["client_id"],
        scope: &["scope"],
        scope_required: false,
        token_use: Some("access"),
        audience_optional: true,
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

    /// Whether the claims are those of an access token, and gives them the names of RFC 9068: `client_id` and `scope`. `own_client` is
    /// the client of this product, whose ID tokens are for it.
    pub(crate) fn to_standard(
        &self,
        mut claims: Map<String, Value>,
        own_client: &str,
    ) -> Result<Map<String, Value>, Misfit> {
        if !self.audience_optional && !claims.contains_key("aud") {
            return Err(Misfit::Audience);
        }
        if self.typ.is_some() {
            return Ok(claims);
        }
        let first = |names: &[&str]| names.iter().find_map(|name| claims.get(*name));
        let client = first(self.client).cloned();
        let scope = first(self.scope).map(scope_text).transpose()?;
        let token_use = claims.get("token_use").and_then(Value::as_str);
        let is_client = |audience: &Value| Some(audience) == client.as_ref() || *audience == *own_client;
        let may_be_id_token = ID_TOKEN_CLAIMS.iter().any(|name| claims.contains_key(*name))
            || client.is_none()
            || (self.scope_required && scope.as_deref().is_none_or(str::is_empty))
            || (self.token_use.is_some() && token_use != self.token_use)
            || match claims.get("aud") {
                Some(Value::Array(all)) => all.iter().any(is_client),
                Some(one) => is_client(one),
                None => false,
            };
        if may_be_id_token {
            return Err(Misfit::Claims);
        }
        // A claim that the provider calls by the standard's name without meaning it counts for nothing.
        for (name, value) in [("client_id", client), ("scope", scope.map(Value::String))] {
            claims.remove(name);
            claims.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(claims)
    }
}

/// A scope as text: a list is written with spaces between its members.
fn scope_text(scope: &Value) -> Result<String, Misfit> {
    let member = |one: &Value| one.as_str().filter(|one| !one.contains(' ')).map(str::to_owned);
    match scope {
        Value::String(text) => Some(text.clone()),
        Value::Array(all) => all
            .iter()
            .map(member)
            .collect::<Option<Vec<_>>>()
            .map(|all| all.join(" ")),
        _ => None,
    }
    .ok_or(Misfit::Scope)
}
