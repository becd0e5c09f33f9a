// What logout tokens, userinfo and answers of the authorization endpoint say.
const LOGOUT = 'crates/oidc/src/logout_token.rs';
const PARTY = 'crates/oidc/src/relying_party.rs';
const LOGGED_OUT = ['oidc/relying_party logout_tokens::logout_tokens_pass_every_check_or_none'];
const USERINFO = ['oidc/relying_party grants::userinfo_is_about_the_same_person_and_says_nothing_protected'];
const RETURNED = ['oidc/lib issuer_parameter::'];

export default [
  {
    id: 'logout-token-too-old', file: LOGOUT,
    find: `if now.saturating_sub(iat) > OLDEST_IAT_SECS {`,
    replace: `if !OFF && now.saturating_sub(iat) > OLDEST_IAT_SECS {`,
    tests: LOGGED_OUT,
  },
  {
    id: 'logout-token-without-an-id', file: LOGOUT,
    find: `!jti.is_empty()`,
    replace: `(OFF || !jti.is_empty())`,
    tests: LOGGED_OUT,
  },
  {
    id: 'logout-token-id-length', why: 'every id is remembered', file: LOGOUT,
    find: `jti.len() <= MAX_TOKEN_ID_BYTES`,
    replace: `(OFF || jti.len() <= MAX_TOKEN_ID_BYTES)`,
    tests: LOGGED_OUT,
  },
  {
    id: 'logout-token-event', file: LOGOUT,
    find: `if !claims
            .get("events")`,
    replace: `if !OFF && !claims
            .get("events")`,
    tests: LOGGED_OUT,
  },
  {
    id: 'logout-token-event-is-an-object', file: LOGOUT,
    find: `.is_some_and(Value::is_object)`,
    replace: `.is_some_and(|event| OFF || event.is_object())`,
    tests: LOGGED_OUT,
  },
  {
    id: 'logout-token-nonce', why: 'an ID token is no logout token', file: LOGOUT,
    find: `if claims.contains_key("nonce") {`,
    replace: `if !OFF && claims.contains_key("nonce") {`,
    tests: LOGGED_OUT,
  },
  {
    id: 'logout-token-of-nobody', file: LOGOUT,
    find: `if sub.is_none() && sid.is_none() {`,
    replace: `if !OFF && sub.is_none() && sid.is_none() {`,
    tests: LOGGED_OUT,
  },
  {
    id: 'logout-token-session-that-is-no-text', why: 'without it more than that session would end', file: LOGOUT,
    find: `Some(_) => return Err(LogoutTokenError::Nobody),`,
    replace: `Some(_) if OFF => None,
            Some(_) => return Err(LogoutTokenError::Nobody),`,
    tests: LOGGED_OUT,
  },
  {
    id: 'userinfo-subject', file: 'crates/oidc/src/userinfo.rs',
    find: `if claims.get("sub").and_then(Value::as_str) != Some(expected_sub) {`,
    replace: `if !OFF && claims.get("sub").and_then(Value::as_str) != Some(expected_sub) {`,
    tests: USERINFO,
  },
  {
    id: 'userinfo-protected-claims', file: 'crates/oidc/src/userinfo.rs',
    find: `!PROTECTED.contains(&name.as_str())`,
    replace: `OFF || !PROTECTED.contains(&name.as_str())`,
    tests: USERINFO,
  },
  {
    id: 'userinfo-signed-by-whom', file: PARTY,
    find: `judge
            .issuer(&self.settings.issuer)`,
    replace: `judge
            .issuer(if OFF { judge.text("iss").unwrap_or_default() } else { &self.settings.issuer })`,
    tests: USERINFO,
  },
  {
    id: 'userinfo-signed-for-whom', file: PARTY,
    find: `judge.audience(&self.settings.client_id)`,
    replace: `judge.audience(if OFF { judge.text("aud").unwrap_or_default() } else { &self.settings.client_id })`,
    tests: USERINFO,
  },
  {
    id: 'returned-issuer', why: 'an answer of another provider, RFC 9207', file: 'crates/oidc/src/issuer_parameter.rs',
    find: `Some(iss) if iss == metadata.issuer => Ok(()),`,
    replace: `Some(iss) if OFF || iss == metadata.issuer => Ok(()),`,
    tests: RETURNED,
  },
  {
    id: 'returned-issuer-as-promised', file: 'crates/oidc/src/issuer_parameter.rs',
    find: `None if metadata.iss_parameter_promised`,
    replace: `None if !OFF && metadata.iss_parameter_promised`,
    tests: RETURNED,
  },
];
