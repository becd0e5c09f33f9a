//! Access tokens that clients show to a resource: what a JWT access token has to say (RFC 9068, or the provider's own shape), and
//! what an introspected one (RFC 7662). Invariant: a token without `aud` counts only where the resource names its client.
//!
//! Whether a scope is enough, and whether the key a token is bound to was shown, is the resource's affair.

use serde_json::{Map, Value};

use crate::tokens::claims::ClaimChecks;
use crate::tokens::jws::UnverifiedToken;
use crate::{AcceptedAlgorithms, AccessTokenError, AccessTokenShape, IdTokenError, ProviderSettings};

/// Longest access token looked at, in bytes: what a request's headers may hold together over HTTP/2.
pub(crate) const MAX_ACCESS_TOKEN_BYTES: usize = 16 * 1024;
/// Longest `client_id` in bytes; it goes into logs and headers.
const MAX_CLIENT_ID_BYTES: usize = 255;
/// What providers call an access token in `token_type` of an introspection response. RFC 7662 section 2.2 has the first two.
const TOKEN_TYPES: [&str; 3] = ["Bearer", "DPoP", "access_token"];

/// For reading claims alone: what depends on the time is asked for each request.
const NO_TIME: u64 = 0;

/// Claims that OpenID Connect defines for ID tokens alone (Core 2 and 3.3.2.11).
const ID_TOKEN_CLAIMS: [&str; 3] = ["nonce", "at_hash", "c_hash"];

/// What a token is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenBinding {
    /// Nothing: whoever holds it may use it.
    None,
    /// The key of this thumbprint (RFC 9449 section 6).
    Key(String),
}

/// An access token of a provider, and what it says.
#[derive(Clone, PartialEq)]
pub struct VerifiedAccessToken {
    claims: Map<String, Value>,
    /// Issuer.
    pub iss: String,
    /// Subject; `None` for an introspected token that is about no person, so the client's own.
    pub sub: Option<String>,
    /// The client it was issued to.
    pub client_id: String,
    /// When it expires, in seconds since the Unix epoch; an introspected token need not tell.
    pub exp: Option<u64>,
    /// When the person last proved who they are, in seconds since the Unix epoch, where the token tells.
    pub auth_time: Option<u64>,
    /// What it is bound to.
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
    /// What the claims of a JWT access token say (RFC 9068 section 2.2), once they have the standard's names.
    ///
    /// # Errors
    /// A claim it has to have is absent or malformed, or it is another issuer's.
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

    /// What an introspection response says of an active token (RFC 7662 section 2.2). A token without `sub` is the client's own
    /// and names no person. A token of a person (`username`) without `sub` is refused: all the people of a client would be one.
    ///
    /// # Errors
    /// What it says is malformed, of another issuer, or of another kind of token, or does not say whose it is.
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

    /// Whether an audience of the token is one of the resource, now (`now` in seconds since the Unix epoch): to be asked for
    /// each request. A token without `aud` is for the resource if it is of one of these clients.
    ///
    /// # Errors
    /// It is for another resource, has expired, or is not valid yet.
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

    /// Whether it was granted this scope (RFC 9068 section 2.2.3).
    pub fn has_scope(&self, wanted: &str) -> bool {
        let scope = self.claim("scope").and_then(Value::as_str).unwrap_or_default();
        scope.split(' ').any(|one| one == wanted)
    }

    /// Whether it was granted less than its scopes say, in words of an API of its own (RFC 9396, sections 9.1 and 9.2). An empty
    /// list says nothing.
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

/// What `cnf` binds the token to (RFC 7800 section 3.1): what is not understood is not passed over.
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

/// Parses a JWT access token of this shape; nothing of it is verified.
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
    /// Whether the claims are those of an access token, and gives them the names of RFC 9068: `client_id` and `scope`. `own_client` is
    /// the client of this product, whose ID tokens are for it.
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
        // A claim that the provider calls by the standard's name without meaning it counts for nothing.
        for (name, value) in [("client_id", client), ("scope", scope.map(Value::String))] {
            claims.remove(name);
            claims.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(claims)
    }
}

/// A scope as text: a list is written with spaces between its members.
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
