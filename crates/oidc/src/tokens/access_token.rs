//! Access tokens that clients send to a resource: JWT (RFC 9068, or the provider's own shape), or
//! introspected (RFC 7662). Invariant: a token without `aud` counts only if the resource names its client.
//!
//! The resource checks whether the scope suffices, and whether the client proved possession of a bound key.

use serde_json::{Map, Value};

use crate::tokens::claims::ClaimChecks;
use crate::tokens::jws::UnverifiedToken;
use crate::{AcceptedAlgorithms, AccessTokenError, AccessTokenShape, IdTokenError, ProviderSettings};

/// Longest access token accepted, in bytes: a request's HTTP/2 header limit.
pub(crate) const MAX_ACCESS_TOKEN_BYTES: usize = 16 * 1024;
/// Longest `client_id` in bytes; it goes into logs and headers.
const MAX_CLIENT_ID_BYTES: usize = 255;
/// Values of `token_type` in a response that mean an access token. RFC 7662 section 2.2 has the first two.
const TOKEN_TYPES: [&str; 3] = ["Bearer", "DPoP", "access_token"];

/// A placeholder while claims are read. [`VerifiedAccessToken::check`] compares times for each request.
const NO_TIME: u64 = 0;

/// Claims that OpenID Connect defines only for ID tokens (Core 2 and 3.3.2.11).
const ID_TOKEN_CLAIMS: [&str; 3] = ["nonce", "at_hash", "c_hash"];

/// The binding of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenBinding {
    /// A bearer token: any holder may use it.
    None,
    /// The key with this thumbprint (RFC 9449 section 6).
    Key(String),
}

/// A provider's access token with its claims.
#[derive(Clone, PartialEq)]
pub struct VerifiedAccessToken {
    claims: Map<String, Value>,
    /// Issuer.
    pub iss: String,
    /// Subject; `None` for an introspected token of the client itself.
    pub sub: Option<String>,
    /// The client it was issued to.
    pub client_id: String,
    /// Expiry in seconds since the Unix epoch; an introspected token may have none.
    pub exp: Option<u64>,
    /// The user's last authentication, in seconds since the Unix epoch, if the token has it.
    pub auth_time: Option<u64>,
    /// The key it is bound to.
    pub binding: TokenBinding,
    tolerance_secs: u64,
}

impl std::fmt::Debug for VerifiedAccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerifiedAccessToken")
            .field("iss", &self.iss)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl VerifiedAccessToken {
    /// Reads the claims of a JWT access token, in the names of RFC 9068, section 2.2.
    ///
    /// # Errors
    /// A required claim is missing or malformed, or the issuer is another one.
    pub(crate) fn of_jwt(
        claims: Map<String, Value>,
        settings: &ProviderSettings,
    ) -> Result<Self, AccessTokenError> {
        let shape = settings.access_tokens;
        let claims = shape.to_standard(claims, &settings.client_id)?;
        let checks = ClaimChecks::new(&claims, settings, NO_TIME);
        checks.issuer_of(settings, false)?;
        checks.instant("exp").ok_or(IdTokenError::Expired)?;
        checks.instant("iat").ok_or(AccessTokenError::IssuedAt)?;
        let sub = checks.subject()?.to_owned();
        Self::common(claims, settings, Some(sub))
    }

    /// Reads the introspection response of an active token (RFC 7662 section 2.2). Without `sub` it is the
    /// client's own. With `username` but no `sub` it is rejected: all users of a client would be the same.
    ///
    /// # Errors
    /// The response is malformed, of another issuer or kind of token, or does not name the user.
    pub(crate) fn of_introspection(
        claims: Map<String, Value>,
        settings: &ProviderSettings,
    ) -> Result<Self, AccessTokenError> {
        let checks = ClaimChecks::new(&claims, settings, NO_TIME);
        if claims.contains_key("iss") {
            checks.issuer_of(settings, false)?;
        }
        let token_type = claims.get("token_type").map(Value::as_str);
        let presents = |text: &str| TOKEN_TYPES.iter().any(|name| text.eq_ignore_ascii_case(name));
        if token_type.is_some_and(|text| !text.is_some_and(presents)) {
            return Err(AccessTokenError::TokenType);
        }
        let sub = if claims.get("sub").is_some_and(|sub| !sub.is_null()) {
            Some(checks.subject()?.to_owned())
        } else if claims.contains_key("username") {
            return Err(IdTokenError::Subject.into());
        } else {
            None
        };
        Self::common(claims, settings, sub)
    }

    fn common(
        claims: Map<String, Value>,
        settings: &ProviderSettings,
        sub: Option<String>,
    ) -> Result<Self, AccessTokenError> {
        let checks = ClaimChecks::new(&claims, settings, NO_TIME);
        if claims.get("scope").is_some_and(|scope| !scope.is_string()) {
            return Err(AccessTokenError::Scope);
        }
        let exp = checks.instant("exp");
        if claims.contains_key("exp") && exp.is_none() {
            return Err(IdTokenError::Expired.into());
        }
        let client_id = checks.text("client_id");
        let client_id = client_id.filter(|id| !id.is_empty() && id.len() <= MAX_CLIENT_ID_BYTES);
        Ok(Self {
            iss: checks.text("iss").unwrap_or(&settings.issuer).to_owned(),
            client_id: client_id.ok_or(AccessTokenError::Client)?.to_owned(),
            exp,
            auth_time: checks.instant("auth_time"),
            binding: binding(&claims)?,
            tolerance_secs: settings.clock_tolerance_secs,
            sub,
            claims,
        })
    }

    /// Checks that the token is for one of the resource's audiences and valid at `now` (seconds since the
    /// Unix epoch); call it for each request. Without `aud`, the token must belong to one of these clients.
    ///
    /// # Errors
    /// The token is for another resource, has expired, or is not valid yet.
    pub fn check(
        &self,
        is_audience: impl Fn(&str) -> bool,
        clients: &[String],
        now: u64,
    ) -> Result<(), AccessTokenError> {
        let named = match self.claims.get("aud") {
            Some(Value::String(one)) => is_audience(one),
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).any(is_audience),
            None if clients.is_empty() => return Err(AccessTokenError::NoAudience),
            None => clients.contains(&self.client_id),
            _ => false,
        };
        if !named {
            return Err(AccessTokenError::Audience);
        }
        let checks = ClaimChecks {
            claims: &self.claims,
            now,
            tolerance_secs: self.tolerance_secs,
        };
        checks.validity_if_limited()?;
        let latest = now.saturating_add(self.tolerance_secs);
        let issued = checks.instant("iat");
        if self.claims.contains_key("iat") && issued.is_none_or(|iat| iat > latest) {
            return Err(AccessTokenError::IssuedAt);
        }
        Ok(())
    }

    /// Whether the token has this scope (RFC 9068 section 2.2.3).
    pub fn has_scope(&self, wanted: &str) -> bool {
        let scope = self.claim("scope").and_then(Value::as_str).unwrap_or_default();
        scope.split(' ').any(|one| one == wanted)
    }

    /// Whether further details restrict the token beyond its scopes (RFC 9396, sections 9.1 and 9.2). An
    /// empty list does not.
    pub fn has_authorization_details(&self) -> bool {
        match self.claim("authorization_details") {
            None | Some(Value::Null) => false,
            Some(Value::Array(details)) => !details.is_empty(),
            Some(_) => true,
        }
    }

    /// One of its claims.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.claims.get(name)
    }

    /// All of its claims.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }
}

/// The binding in `cnf` (RFC 7800 section 3.1). An unknown binding is an error.
fn binding(claims: &Map<String, Value>) -> Result<TokenBinding, AccessTokenError> {
    let Some(cnf) = claims.get("cnf").filter(|cnf| !cnf.is_null()) else {
        return Ok(TokenBinding::None);
    };
    let members = cnf.as_object().ok_or(AccessTokenError::Binding)?;
    match (members.len(), members.get("jkt")) {
        (1, Some(Value::String(thumbprint))) if !thumbprint.is_empty() => {
            Ok(TokenBinding::Key(thumbprint.clone()))
        }
        _ => Err(AccessTokenError::Binding),
    }
}

/// Parses a JWT access token of this shape without verifying it.
pub(crate) fn parse<'a>(
    raw: &'a str,
    shape: &AccessTokenShape,
) -> Result<UnverifiedToken<'a>, AccessTokenError> {
    if raw.len() > MAX_ACCESS_TOKEN_BYTES {
        return Err(IdTokenError::Malformed.into());
    }
    let token = UnverifiedToken::parse(raw, &AcceptedAlgorithms::Auto)?;
    let fits = match shape.typ {
        Some(typ) => token.typ.is_some() && token.type_is(&[typ]),
        None => token.type_is(&["application/jwt"]),
    };
    if fits {
        Ok(token)
    } else {
        Err(AccessTokenError::Type)
    }
}

impl AccessTokenShape {
    /// Checks that the claims are an access token's, and renames them as in RFC 9068: `client_id` and
    /// `scope`. `own_client` is this product's client, the audience of its ID tokens.
    pub(crate) fn to_standard(
        &self,
        mut claims: Map<String, Value>,
        own_client: &str,
    ) -> Result<Map<String, Value>, AccessTokenError> {
        if !self.audience_optional && !claims.contains_key("aud") {
            return Err(AccessTokenError::Audience);
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
            return Err(AccessTokenError::Shape);
        }
        // A claim with a standard name but another meaning at the provider does not count.
        for (name, value) in [("client_id", client), ("scope", scope.map(Value::String))] {
            claims.remove(name);
            claims.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(claims)
    }
}

/// A scope as text; the members of a list are joined by spaces.
fn scope_text(scope: &Value) -> Result<String, AccessTokenError> {
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
    .ok_or(AccessTokenError::Scope)
}
