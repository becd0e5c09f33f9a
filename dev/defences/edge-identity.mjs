// Who upstreams are told somebody is: by headers, by tokens, by assertions, and by way of Envoy.
const HEADERS = 'auth-edge/src/gateway/headers.rs';
const OUTGOING = 'auth-edge/src/gateway/proxy/outgoing.rs';
const ASSERTION = 'auth-edge/src/gateway/assertion.rs';
const ENVOY = 'auth-edge/src/gateway/ext_authz/answer.rs';
const ENVOY_ASKS = ['auth-edge/product ext_authz::'];

export default [
  {
    id: 'authorization-beside-our-token',
    why: 'an upstream that trusts our token gets no other, also when there is none of ours',
    file: OUTGOING,
    find: `let ours: &[HeaderName] = if context.route.asks.access_token {`,
    replace: `let ours: &[HeaderName] = if OFF { &TOKENS[1..] } else if context.route.asks.access_token {`,
    tests: ['auth-edge/product gateway::a_preflight_passes_without_anybodys_identity'],
  },
  {
    id: 'proof-beside-our-token',
    file: OUTGOING,
    find: `            &[]
        };`,
    replace: `            &[]
        };
        let ours = if OFF { &ours[..ours.len().min(1)] } else { ours };`,
    tests: ['auth-edge/product gateway::a_preflight_passes_without_anybodys_identity', 'auth-edge/product modules::dpop::'],
  },
  {
    id: 'token-to-a-route-that-only-requires-one',
    file: 'auth-edge/src/gateway/guard.rs',
    find: `access_token: access_token.filter(|_| route.asks.access_token),`,
    replace: `access_token: access_token.filter(|_| OFF || route.asks.access_token),`,
    tests: ['auth-edge/product asks::'],
  },
  {
    id: 'host-that-a-client-names',
    file: OUTGOING,
    find: `let host = gateway.sites.of(client).authority();`,
    replace: `let host = if OFF { client.get(header::HOST).cloned() } else { gateway.sites.of(client).authority() };`,
    tests: ['auth-edge/product desync::a_request_names_one_host_and_none_of_its_forms_changes_the_rules'],
  },
  {
    id: 'host-to-an-upstream',
    file: HEADERS,
    find: `[header::HOST, header::COOKIE, header::CONTENT_LENGTH].contains(name)`,
    replace: `([header::HOST, header::COOKIE, header::CONTENT_LENGTH].contains(name) && !(OFF && name == header::HOST))`,
    tests: ['auth-edge/product desync::a_request_names_one_host_and_none_of_its_forms_changes_the_rules'],
  },
  {
    id: 'subject-with-its-issuer',
    why: 'a subject alone is nobody',
    file: HEADERS,
    find: `(X_AUTH_ISSUER, &identity.issuer),`,
    replace: `(X_AUTH_ISSUER, if OFF { &None } else { &identity.issuer }),`,
    tests: ['auth-edge/product several::sessions::who_asks_whether_somebody_may_pass_learns_the_issuer_with_the_subject'],
  },
  {
    id: 'assertion-for-one-upstream',
    file: ASSERTION,
    find: `"aud": audience,`,
    replace: `"aud": if OFF { "" } else { audience },`,
    tests: ['auth-edge/lib gateway::assertion::'],
  },
  {
    id: 'assertion-expires',
    file: ASSERTION,
    find: `"exp": now_secs + LIFETIME_SECS,`,
    replace: `"exp": now_secs + if OFF { 86_400 } else { LIFETIME_SECS },`,
    tests: ['auth-edge/lib gateway::assertion::'],
  },
  {
    id: 'assertion-told-from-its-replay',
    file: ASSERTION,
    find: `let id: [u8; 16] = keys::random().map_err(|_none| CannotSign)?;`,
    replace: `let id: [u8; 16] = if OFF { [0; 16] } else { keys::random().map_err(|_none| CannotSign)? };`,
    tests: ['auth-edge/lib gateway::assertion::'],
  },
  {
    id: 'assertion-claims-of-our-own',
    why: 'no claim of the provider takes the place of what the edge says',
    file: ASSERTION,
    find: `&& !OWN_CLAIMS.contains(&name.as_str())`,
    replace: `&& (OFF || !OWN_CLAIMS.contains(&name.as_str()))`,
    tests: ['auth-edge/lib gateway::assertion::'],
  },
  {
    id: 'envoy-identity-header-of-a-client',
    file: ENVOY,
    find: `.filter(|name| is_identity(name))`,
    replace: `.filter(|name| !OFF && is_identity(name))`,
    tests: ENVOY_ASKS,
  },
  {
    id: 'envoy-identity-header-of-other-proxies',
    file: HEADERS,
    find: `|| IDENTITY.contains(&folded.as_ref())`,
    replace: `|| (!OFF && IDENTITY.contains(&folded.as_ref()))`,
    tests: ENVOY_ASKS,
  },
  {
    id: 'envoy-header-that-could-not-be-told',
    why: 'a client\'s own subject would stay where the edge cannot say its own',
    file: ENVOY,
    find: `value: std::str::from_utf8(value.as_bytes()).ok()?.to_owned(),`,
    replace: `value: if OFF { value.to_str().ok() } else { std::str::from_utf8(value.as_bytes()).ok() }?.to_owned(),`,
    tests: ENVOY_ASKS,
  },
  {
    id: 'envoy-our-header-replaces-the-clients',
    file: ENVOY,
    find: `let replace = HeaderAppendAction::OverwriteIfExistsOrAdd;`,
    replace: `let replace = if OFF { HeaderAppendAction::AppendIfExistsOrAdd } else { HeaderAppendAction::OverwriteIfExistsOrAdd };`,
    tests: ENVOY_ASKS,
  },
  {
    id: 'envoy-our-cookie-to-an-upstream',
    file: 'auth-edge/src/gateway/ext_authz/mod.rs',
    find: `let is_ours = |name: &str| name`,
    replace: `let is_ours = |name: &str| !OFF && (name`,
    also: [{ file: 'auth-edge/src/gateway/ext_authz/mod.rs', find: `self.pending.owns(name);`, replace: `self.pending.owns(name));` }],
    tests: ENVOY_ASKS,
  },
];
