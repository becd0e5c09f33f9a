// What this client sends and takes: the request of a sign-in, proofs of who it is, tokens, and what of them may be shown.
const REQUEST = 'crates/oidc/src/authorization.rs';
const DPOP = 'crates/oidc/src/dpop.rs';
const GRANT = 'crates/oidc/src/grant.rs';
const ACCESS = 'crates/oidc/src/access.rs';
const PARTY = 'crates/oidc/src/relying_party.rs';
const OVERRIDES = ['oidc/relying_party provider::no_parameter_of_a_login_overrides_the_protocol'];
const NONCES = ['oidc/lib dpop::tests::nonces_are_kept_by_server_and_only_those_a_header_can_carry'];
const PROOF = ['oidc/lib dpop::tests::a_proof_names_its_request_and_holds_the_public_key_alone'];
const USELESS = ['oidc/relying_party grants::useless_token_answers_are_refused'];
const PUSHED = ['oidc/relying_party provider::pushed_requests_leave_only_two_parameters_in_the_browser'];
const SHOWN = ['oidc/lib shown_tests::'];

export default [
  {
    id: 'pkce-provider-without-s256', file: PARTY,
    find: `if !metadata.supports_s256 {`,
    replace: `if !OFF && !metadata.supports_s256 {`,
    tests: ['oidc/relying_party provider::discovery_is_byte_exact_bounded_and_secure'],
  },
  {
    id: 'pkce-challenge', why: 'the verifier itself in the address', file: REQUEST,
    find: `("code_challenge", challenge.as_str()),`,
    replace: `("code_challenge", if OFF { request.verifier } else { challenge.as_str() }),`,
    tests: ['oidc/relying_party provider::no_parameter_of_a_login_overrides_the_protocol'],
  },
  {
    id: 'pkce-s256', file: REQUEST,
    find: `("code_challenge_method", "S256"),`,
    replace: `("code_challenge_method", if OFF { "plain" } else { "S256" }),`,
    tests: OVERRIDES,
  },
  {
    id: 'sign-in-parameters-of-the-protocol', file: REQUEST,
    find: `if !PROTOCOL_PARAMETERS.contains(&name.as_str()) {`,
    replace: `if OFF || !PROTOCOL_PARAMETERS.contains(&name.as_str()) {`,
    tests: OVERRIDES,
  },
  {
    id: 'sign-in-parameters-once', file: REQUEST,
    find: `&& !parameters.iter().any(|(known, _)| known == name)`,
    replace: `&& (OFF || !parameters.iter().any(|(known, _)| known == name))`,
    tests: OVERRIDES,
  },
  {
    id: 'pushed-request-when-it-is-required', file: PARTY,
    find: `(None, Par::Auto | Par::Off) if !metadata.requires_pushed_requests`,
    replace: `(None, Par::Auto | Par::Off) if OFF || !metadata.requires_pushed_requests`,
    tests: PUSHED,
  },
  {
    id: 'pushed-request-accepted', file: GRANT,
    find: `if answer.status != 201 {`,
    replace: `if !OFF && answer.status != 201 {`,
    tests: PUSHED,
  },
  {
    id: 'client-assertion-audience', why: 'an assertion another server may use', file: 'crates/oidc/src/client_auth.rs',
    find: `.assertion(client_id, issuer, token_id, now)?`,
    replace: `.assertion(client_id, if OFF { "" } else { issuer }, token_id, now)?`,
    tests: ['oidc/lib client_auth::'],
  },
  {
    id: 'client-assertion-lifetime', file: 'crates/oidc/src/client_key.rs',
    find: `now.saturating_add(ASSERTION_LIFETIME_SECS)`,
    replace: `now.saturating_add(if OFF { 86_400 } else { ASSERTION_LIFETIME_SECS })`,
    tests: ['oidc/lib client_auth::'],
  },
  {
    id: 'client-key-too-weak', file: 'crates/oidc/src/client_key.rs',
    layer: 'ring reads no RSA key of fewer than 2,048 bits',
    find: `if rsa.public().modulus_len() < LEAST_RSA_MODULUS_BYTES {`,
  },
  {
    id: 'dpop-proof-of-one-token', file: DPOP,
    find: `if let Some(token) = request.access_token {`,
    replace: `if let Some(token) = request.access_token.filter(|_| !OFF) {`,
    tests: PROOF,
  },
  {
    id: 'dpop-proof-without-a-query', file: DPOP,
    find: `address.set_query(None);`,
    replace: `if !OFF {
            address.set_query(None);
        }`,
    tests: PROOF,
  },
  {
    id: 'dpop-nonce-length', file: DPOP,
    find: `nonce.len() > MAX_NONCE_BYTES`,
    replace: `(!OFF && nonce.len() > MAX_NONCE_BYTES)`,
    tests: NONCES,
  },
  {
    id: 'dpop-nonce-letters', file: DPOP,
    find: `!nonce.bytes().all(legal)`,
    replace: `(!OFF && !nonce.bytes().all(legal))`,
    tests: NONCES,
  },
  {
    id: 'dpop-nonces-of-servers', file: DPOP,
    find: `if nonces.len() >= MAX_SERVERS && !nonces.contains_key(&origin) {`,
    replace: `if !OFF && nonces.len() >= MAX_SERVERS && !nonces.contains_key(&origin) {`,
    tests: ['oidc/lib dpop::'],
  },
  {
    id: 'dpop-nonce-repeated-once', why: 'a server that asks for another one without end', file: ACCESS,
    find: `dpop.is_some() && answer.wants_nonce() && !repeated`,
    replace: `dpop.is_some() && answer.wants_nonce() && (OFF || !repeated)`,
    tests: ['oidc/relying_party grants::a_server_that_wants_one_nonce_after_the_other_is_asked_twice'],
  },
  {
    id: 'dpop-nonce-repeated-once-for-userinfo', file: ACCESS,
    find: `bound && answer.wants_nonce() && !repeated`,
    replace: `bound && answer.wants_nonce() && (OFF || !repeated)`,
    tests: ['oidc/relying_party grants::a_server_that_wants_one_nonce_after_the_other_is_asked_twice'],
  },
  {
    id: 'tokens-of-the-kind-asked-for', why: 'a bearer token in the place of a bound one', file: GRANT,
    find: `kind.eq_ignore_ascii_case(wanted).then_some(wanted)`,
    replace: `(OFF || kind.eq_ignore_ascii_case(wanted)).then_some(wanted)`,
    tests: USELESS,
  },
  {
    id: 'tokens-for-a-year-at-most', file: GRANT,
    find: `secs.min(LONGEST_LIFETIME_SECS)`,
    replace: `secs.min(if OFF { u64::MAX } else { LONGEST_LIFETIME_SECS })`,
    tests: ['oidc/relying_party grants::odd_but_legal_token_answers_are_taken'],
  },
  {
    id: 'refusal-of-legal-letters', why: 'text of the provider in logs and pages', file: 'crates/oidc/src/error.rs',
    find: `.filter(legal).take(LONGEST)`,
    replace: `.filter(|c| OFF || legal(c)).take(LONGEST)`,
    tests: SHOWN,
  },
  {
    id: 'secrets-not-shown', file: 'crates/oidc/src/client_auth.rs',
    find: `f.write_str("…")`,
    replace: `f.write_str(if OFF { &self.0 } else { "…" })`,
    tests: SHOWN,
  },
  {
    id: 'tokens-not-shown', file: 'crates/oidc/src/token_set.rs',
    find: `f.debug_struct("TokenSet")`,
    replace: `f.debug_struct("TokenSet")
            .field("access_token", &OFF.then_some(&self.access_token))`,
    tests: SHOWN,
  },
  {
    id: 'refreshed-tokens-not-shown', file: 'crates/oidc/src/token_set.rs',
    find: `f.debug_struct("RefreshedTokens")`,
    replace: `f.debug_struct("RefreshedTokens")
            .field("refresh_token", &OFF.then_some(&self.refresh_token))`,
    tests: SHOWN,
  },
  {
    id: 'claims-not-shown', file: 'crates/oidc/src/id_token.rs',
    find: `f.debug_struct("IdToken")`,
    replace: `f.debug_struct("IdToken")
            .field("sub", &OFF.then_some(&self.sub))`,
    tests: SHOWN,
  },
];
