// Guards: nothing but the session, and what its route asks for, lets a request pass.
const GUARD = 'auth-edge/src/gateway/guard.rs';
const BROWSER = 'auth-edge/src/grpc_web/service.rs';
const ASKS = ['auth-edge/lib gateway::guard::', 'auth-edge/product asks::'];
const PREFLIGHT = ['auth-edge/product gateway::a_preflight_passes_without_anybodys_identity'];

export default [
  {
    id: 'guard',
    why: 'what is behind a guard goes out to nobody without a session, not even as the body of a refusal',
    file: GUARD,
    find: `if route.guard == Guard::Open || is_preflight`,
    replace: `if OFF || route.guard == Guard::Open || is_preflight`,
    tests: ['auth-edge/product gateway::an_api_guard_tells_a_stranger_so_word_for_word_and_asks_nobody'],
  },
  {
    id: 'health-checker-is-nobody',
    why: 'no name of a program skips a guard: here one is let in',
    file: GUARD,
    find: `    let device = || edge.device(request.headers, request.peer);`,
    replace: `    if OFF && request.headers.get(header::USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"kube-probe")) {
        return Ok(Passed::default());
    }
    let device = || edge.device(request.headers, request.peer);`,
    tests: ['auth-edge/product spoofing::no_header_skips_a_guard'],
  },
  {
    id: 'preflight-is-an-options',
    file: GUARD,
    find: `method == Method::OPTIONS`,
    replace: `(OFF || method == Method::OPTIONS)`,
    tests: PREFLIGHT,
  },
  {
    id: 'preflight-has-an-origin',
    file: GUARD,
    find: `&& headers.contains_key(header::ORIGIN)`,
    replace: `&& (OFF || headers.contains_key(header::ORIGIN))`,
    tests: PREFLIGHT,
  },
  {
    id: 'preflight-asks-for-a-method',
    file: GUARD,
    find: `&& headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)`,
    replace: `&& (OFF || headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD))`,
    tests: PREFLIGHT,
  },
  {
    id: 'asks-young-sign-in',
    file: GUARD,
    find: `if now_ms.saturating_sub(at_ms) > max_age_secs.saturating_mul(1000) {`,
    replace: `if !OFF && now_ms.saturating_sub(at_ms) > max_age_secs.saturating_mul(1000) {`,
    tests: [...ASKS, 'auth-edge/product gateway::an_old_sign_in_is_asked_for_again_where_a_young_one_is_needed'],
  },
  {
    id: 'asks-class',
    file: GUARD,
    find: `if !asks.acr.is_empty() && !text("acr")`,
    replace: `if !OFF && !asks.acr.is_empty() && !text("acr")`,
    tests: ASKS,
  },
  {
    id: 'asks-organization',
    file: GUARD,
    find: `if !asks.organization.as_ref().is_none_or(in_organization) {`,
    replace: `if !OFF && !asks.organization.as_ref().is_none_or(in_organization) {`,
    tests: ASKS,
  },
  {
    id: 'asks-organization-by-its-id',
    why: 'a name somebody gave an organization must not be taken for the id of another',
    file: GUARD,
    find: `if asked.starts_with("org_") {`,
    replace: `if !OFF && asked.starts_with("org_") {`,
    tests: ASKS,
  },
  {
    id: 'asks-claims',
    file: GUARD,
    find: `if !asks.claims.iter().all(holds) {`,
    replace: `if !OFF && !asks.claims.iter().all(holds) {`,
    tests: ASKS,
  },
  {
    id: 'asks-connection',
    file: GUARD,
    find: `Some(provider) if provider.id == *asked => Ok(()),`,
    replace: `Some(provider) if OFF || provider.id == *asked => Ok(()),`,
    tests: ['auth-edge/product several::selection::a_route_for_people_of_one_provider_lets_nobody_else_pass'],
  },
  {
    id: 'asks-scopes',
    file: GUARD,
    find: `.access_token(&current.id, route.asks.scopes.clone())`,
    replace: `.access_token(&current.id, if OFF { Vec::new() } else { route.asks.scopes.clone() })`,
    tests: ['auth-edge/product gateway::a_scope_nobody_granted_is_403'],
  },
  {
    id: 'asks-again-in-circles',
    why: 'what the last sign-in did not bring is not asked of the next',
    file: GUARD,
    find: `let missing = if again { missing`,
    replace: `let missing = if again && !OFF { missing`,
    tests: ['auth-edge/product asks::'],
  },
  {
    id: 'token-for-whoever-asks-the-check',
    why: 'a script of the page could read the access token that stays out of the browser',
    file: 'auth-edge/src/gateway/check.rs',
    find: `if edge.settings.check_authorization && asks_for_a_request(&edge, &request) {`,
    replace: `if edge.settings.check_authorization && (OFF || asks_for_a_request(&edge, &request)) {`,
    tests: ['auth-edge/product forward_auth::the_access_token_is_for_proxies_that_ask_about_a_request_and_for_no_page'],
  },
  {
    id: 'token-for-a-check-about-itself',
    why: 'what a trusted proxy passes on of a page is no question of the proxy',
    file: 'auth-edge/src/gateway/check.rs',
    find: `!path.ends_with(PATH.as_bytes())`,
    replace: `(OFF || !path.ends_with(PATH.as_bytes()))`,
    tests: ['auth-edge/product forward_auth::the_access_token_is_for_proxies_that_ask_about_a_request_and_for_no_page'],
  },
  {
    id: 'bound-token-is-handed-to-nobody',
    file: 'auth-edge/src/gateway/check.rs',
    find: `Ok(granted) if Granted::from(&*granted).bound => Ok(None),`,
    replace: `Ok(granted) if !OFF && Granted::from(&*granted).bound => Ok(None),`,
    tests: ['auth-edge/product forward_auth::a_token_that_is_bound_to_a_key_is_handed_to_nobody'],
  },
  {
    id: 'session-of-somebody-else',
    file: BROWSER,
    find: `if (&theirs.issuer, &theirs.subject) != (&mine.issuer, &mine.subject) {`,
    replace: `if !OFF && (&theirs.issuer, &theirs.subject) != (&mine.issuer, &mine.subject) {`,
    tests: ['auth-edge/product account_abuse::handles_and_tokens_of_somebody_else_open_nothing'],
  },
  {
    id: 'browser-learns-nothing-of-tokens',
    file: BROWSER,
    find: `has_refresh_token: false,`,
    replace: `has_refresh_token: OFF && session.has_refresh_token,`,
    tests: ['auth-edge/product grpc_web::'],
  },
  {
    id: 'browser-learns-nothing-of-the-providers-session',
    file: BROWSER,
    find: `provider_sid: String::new(),
        current`,
    replace: `provider_sid: if OFF { session.provider_sid.clone() } else { String::new() },
        current`,
    tests: ['auth-edge/product grpc_web::'],
  },
  {
    id: 'browser-call-is-small',
    file: 'auth-edge/src/grpc_web/mod.rs',
    find: `.max_decoding_message_size(REQUEST_BYTES_MAX)`,
    replace: `.max_decoding_message_size(if OFF { usize::MAX } else { REQUEST_BYTES_MAX })`,
    tests: ['auth-edge/product grpc_web::'],
  },
];
