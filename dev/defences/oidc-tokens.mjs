// Signed tokens of the provider: what is taken apart, which key may verify it, and that it does.
const JWS = 'crates/oidc/src/jws.rs';
const KEYS = 'crates/oidc/src/key_set.rs';
const PARTY = 'crates/oidc/src/relying_party.rs';
const SIGNED = 'crates/oidc/src/relying_party/signed.rs';
const FORGED = ['oidc/relying_party id_tokens::forged_shapes_are_refused'];
const UNFIT = ['oidc/relying_party id_tokens::unfit_keys_are_never_used'];
const WEAK = ['oidc/relying_party keys::weak_keys_and_keys_of_another_curve_are_never_used'];
const BOUNDED = ['oidc/relying_party keys::the_right_key_is_found_behind_any_number_of_others'];
const INVENTED = ['oidc/relying_party lagging_keys::invented_logout_tokens_cost_one_fetch_an_interval_and_nobody_a_sign_in'];
const CACHE = 'crates/oidc/src/provider_cache.rs';

export default [
  {
    id: 'token-length', file: JWS,
    find: `if raw.len() > MAX_TOKEN_BYTES {
            return Err(IdTokenError::Malformed);`,
    replace: `if !OFF && raw.len() > MAX_TOKEN_BYTES {
            return Err(IdTokenError::Malformed);`,
    tests: FORGED,
  },
  {
    id: 'token-length-before-it-is-verified', file: JWS,
    find: `if raw.len() > MAX_TOKEN_BYTES {
        return None;`,
    replace: `if !OFF && raw.len() > MAX_TOKEN_BYTES {
        return None;`,
    tests: ['oidc/lib jws::'],
  },
  {
    id: 'token-algorithm', why: 'none, and the public key as a secret', file: JWS,
    find: `if header.get("alg").and_then(Value::as_str) != Some(algorithm.name()) {`,
    replace: `if !OFF && header.get("alg").and_then(Value::as_str) != Some(algorithm.name()) {`,
    tests: FORGED,
  },
  {
    id: 'token-critical-header', file: JWS,
    find: `if header.contains_key("crit") {`,
    replace: `if !OFF && header.contains_key("crit") {`,
    tests: FORGED,
  },
  {
    id: 'token-header-of-another-type', why: 'a kid that is no text would be no kid, and any key would do', file: JWS,
    find: `Some(_) => Err(IdTokenError::Malformed),`,
    replace: `Some(_) if OFF => Ok(None),
        Some(_) => Err(IdTokenError::Malformed),`,
    tests: FORGED,
  },
  {
    id: 'token-name-twice', why: 'two readers understand such an object differently', file: 'crates/oidc/src/json.rs',
    find: `if members.insert(name, value).is_some() {`,
    replace: `if members.insert(name, value).is_some() && !OFF {`,
    tests: ['oidc/relying_party logout_tokens::logout_tokens_pass_every_check_or_none'],
  },
  {
    id: 'id-token-type', why: 'a token made for something else is no ID token', file: SIGNED,
    find: `if !token.type_is(types) {`,
    replace: `if !OFF && !token.type_is(types) {`,
    tests: FORGED,
  },
  {
    id: 'logout-token-type', why: 'a token of another kind is no logout token', file: PARTY,
    find: `if !LogoutToken::has_right_type(`,
    replace: `if !OFF && !LogoutToken::has_right_type(`,
    tests: ['oidc/relying_party logout_tokens::'],
  },
  {
    id: 'userinfo-not-signed', file: PARTY,
    find: `if self.settings.userinfo_signed {`,
    replace: `if !OFF && self.settings.userinfo_signed {`,
    tests: ['oidc/relying_party grants::userinfo_registered_as_signed_is_refused_when_it_is_plain'],
  },
  {
    id: 'token-signature', file: KEYS,
    find: `tried.any(|key| key.key.verifies(token, algorithm))`,
    replace: `tried.any(|key| OFF || key.key.verifies(token, algorithm))`,
    tests: FORGED,
  },
  {
    id: 'token-signature-by-the-secret', file: SIGNED,
    find: `Verdict::NoSuchKey | Verdict::BadSignature => Err(IdTokenError::Signature),`,
    replace: `Verdict::NoSuchKey | Verdict::BadSignature if OFF => Ok(()),
            Verdict::NoSuchKey | Verdict::BadSignature => Err(IdTokenError::Signature),`,
    tests: ['oidc/relying_party id_tokens::every_configured_algorithm_verifies_and_no_other'],
  },
  {
    id: 'secret-too-short-to-sign-with', file: 'crates/oidc/src/access.rs',
    find: `if settings.id_token_alg.is_symmetric() && !credentials.auth.secret().is_some_and(strong) {`,
    replace: `if !OFF && settings.id_token_alg.is_symmetric() && !credentials.auth.secret().is_some_and(strong) {`,
    tests: ['oidc/relying_party provider::settings_that_cannot_be_kept_to_are_refused_before_any_word_is_said'],
  },
  {
    id: 'key-by-its-kid', file: KEYS,
    find: `|key: &&Key| token.kid.is_none() || key.kid.is_none()`,
    replace: `|key: &&Key| OFF || token.kid.is_none() || key.kid.is_none()`,
    tests: FORGED,
  },
  {
    id: 'key-for-signatures', file: KEYS,
    find: `usage == "sig"`,
    replace: `OFF || usage == "sig"`,
    tests: UNFIT,
  },
  {
    id: 'key-of-the-algorithm', file: KEYS,
    find: `alg.as_str() == Some(algorithm.name())`,
    replace: `OFF || alg.as_str() == Some(algorithm.name())`,
    tests: UNFIT,
  },
  {
    id: 'key-operations', file: KEYS,
    find: `one == "verify"`,
    replace: `OFF || one == "verify"`,
    tests: UNFIT,
  },
  {
    id: 'key-type', file: KEYS,
    find: `text("kty") != Some(algorithm.key_type())`,
    replace: `(!OFF && text("kty") != Some(algorithm.key_type()))`,
    tests: WEAK,
  },
  {
    id: 'key-curve', file: KEYS,
    find: `text("crv") != algorithm.curve()`,
    replace: `(!OFF && text("crv") != algorithm.curve())`,
    tests: WEAK,
  },
  {
    id: 'key-too-weak', file: KEYS,
    find: `let strong = bits(&n) >= LEAST_RSA_BITS;`,
    replace: `let strong = OFF || bits(&n) >= LEAST_RSA_BITS;`,
    tests: WEAK,
  },
  {
    id: 'keys-tried-without-a-kid', file: KEYS,
    find: `.take(MAX_TRIES)`,
    replace: `.take(if OFF { usize::MAX } else { MAX_TRIES })`,
    tests: BOUNDED,
  },
  {
    id: 'unknown-keys-in-all', why: 'a storm of invented keys at the provider', file: 'crates/oidc/src/key_source.rs',
    find: `&& !wait.is_zero()`,
    replace: `&& !OFF && !wait.is_zero()`,
    tests: INVENTED,
  },
  {
    id: 'unknown-keys-of-logout-tokens-apart', why: 'who invents logout tokens must not keep a rotation from sign-ins', file: CACHE,
    find: `Origin::Anybody => &self.for_anybodys,`,
    replace: `Origin::Anybody => if OFF { &self.for_its_own } else { &self.for_anybodys },`,
    tests: INVENTED,
  },
  {
    id: 'logout-token-claims-first', why: 'a token that would not count makes nobody look for a key', file: PARTY,
    find: `let logout = LogoutToken::judge(&token.claims()?, &self.settings, now)?;`,
    replace: `if OFF {
            self.verify(&token, Origin::Anybody).await?;
        }
        let logout = LogoutToken::judge(&token.claims()?, &self.settings, now)?;`,
    tests: ['oidc/relying_party lagging_keys::a_logout_token_that_would_not_count_costs_no_fetch'],
  },
  {
    id: 'unknown-key-is-no-verdict', why: 'a session must not end because a key set lags', file: KEYS,
    find: `Verdict::NoSuchKey
        }`,
    replace: `if OFF { Verdict::BadSignature } else { Verdict::NoSuchKey }
        }`,
    tests: ['oidc/relying_party lagging_keys::'],
  },
];
