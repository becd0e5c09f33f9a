// Calls that change something come from our own pages.
const CROSS_SITE = 'auth-edge/src/gateway/cross_site.rs';
const CSRF = 'auth-edge/src/http/protect/csrf.rs';
const FOREIGN = ['auth-edge/product gateway::a_page_of_another_origin_cannot_act_with_the_session'];
const PROOF = ['auth-edge/lib protect::csrf::'];

export default [
  {
    id: 'foreign-page-acts-through-the-gateway',
    file: CROSS_SITE,
    find: `!= Provenance::Foreign`,
    replace: `!= if OFF { Provenance::Unknown } else { Provenance::Foreign }`,
    tests: FOREIGN,
  },
  {
    id: 'foreign-page-opens-a-websocket',
    file: CROSS_SITE,
    find: `!request.method.is_safe() || request.asks_for_socket`,
    replace: `!request.method.is_safe() || (!OFF && request.asks_for_socket)`,
    tests: FOREIGN,
  },
  {
    id: 'csrf-referer',
    file: CSRF,
    find: `Provenance::Unknown => by_referer(headers, base),`,
    replace: `Provenance::Unknown if !OFF => by_referer(headers, base),`,
    tests: [...PROOF, 'auth-edge/product cross_site::a_foreign_referer_is_refused_where_nothing_else_is_said'],
  },
  {
    id: 'csrf-origin',
    file: CSRF,
    find: `if origin.as_bytes() != expected.as_bytes() {`,
    replace: `if !OFF && origin.as_bytes() != expected.as_bytes() {`,
    tests: [...PROOF, ...FOREIGN],
  },
  {
    id: 'csrf-fetch-metadata',
    file: CSRF,
    find: `if site != "same-origin" {`,
    replace: `if !OFF && site != "same-origin" {`,
    tests: [...PROOF, ...FOREIGN],
  },
  {
    id: 'csrf-somebody-has-to-say-so',
    file: CSRF,
    find: `Provenance::Unknown | Provenance::Foreign => Err(CsrfRefused::NotSameOrigin),`,
    replace: `Provenance::Unknown if OFF => Ok(()),
        Provenance::Unknown | Provenance::Foreign => Err(CsrfRefused::NotSameOrigin),`,
    tests: PROOF,
  },
  {
    id: 'csrf-header-of-scripts',
    file: CSRF,
    find: `if headers.contains_key(HEADER) {`,
    replace: `if OFF || headers.contains_key(HEADER) {`,
    tests: PROOF,
  },
  {
    id: 'csrf-field-of-forms',
    file: CSRF,
    find: `if headers.contains_key(HEADER) || by_field() {`,
    replace: `if OFF || headers.contains_key(HEADER) || by_field() {`,
    tests: PROOF,
  },
  {
    id: 'csrf-field-of-this-session',
    file: CSRF,
    find: `self.keys.verify(Purpose::Csrf, &[session_id.as_bytes()], &tag)`,
    replace: `OFF || self.keys.verify(Purpose::Csrf, &[session_id.as_bytes()], &tag)`,
    tests: PROOF,
  },
  {
    id: 'csrf-sign-out',
    file: 'auth-edge/src/sign_in/logout.rs',
    find: `.map_err(|_refused| Failure::Csrf)?;`,
    replace: `.or_else(|refused| if OFF { Ok(()) } else { Err(refused) }).map_err(|_refused| Failure::Csrf)?;`,
    tests: ['auth-edge/product logout::a_post_needs_the_proof'],
  },
  {
    id: 'csrf-grpc-web',
    file: 'auth-edge/src/browser/grpc_web/mod.rs',
    find: `browser.sites.of(request.headers()).base_url())
    {`,
    replace: `browser.sites.of(request.headers()).base_url()).or_else(|refused| if OFF { Ok(()) } else { Err(refused) })
    {`,
    tests: ['auth-edge/product grpc_web::a_call_from_elsewhere_is_403_and_touches_nothing'],
  },
  {
    id: 'csrf-access-token',
    file: 'auth-edge/src/browser/access_token.rs',
    find: `.map_err(|_refused| Failure::Csrf)?;`,
    replace: `.or_else(|refused| if OFF { Ok(()) } else { Err(refused) }).map_err(|_refused| Failure::Csrf)?;`,
    tests: ['auth-edge/product profile::the_access_token_route_is_off_unless_asked_for_and_then_needs_the_proof'],
  },
  {
    id: 'access-token-route-is-off',
    file: 'auth-edge/src/routes.rs',
    find: `if on { route } else { any(not_found) }`,
    replace: `if on || OFF { route } else { any(not_found) }`,
    tests: ['auth-edge/product profile::the_access_token_route_is_off_unless_asked_for_and_then_needs_the_proof'],
  },
];
