// What an answer may do in a browser, what caches may keep of it, and what records tell.
const PAGES = 'auth-edge/src/http/pages/mod.rs';
const BROWSER = 'auth-edge/src/http/protect/security_headers.rs';
const PAGE = ['auth-edge/lib pages::'];
const POLICY = ['auth-edge/lib protect::security_headers::'];

export default [
  {
    id: 'markup-in-a-page',
    file: PAGES,
    find: `'<' => escaped.push_str("&lt;"),`,
    replace: `'<' if !OFF => escaped.push_str("&lt;"),`,
    tests: PAGE,
  },
  {
    id: 'quotes-in-an-attribute',
    file: PAGES,
    find: `'"' => escaped.push_str("&quot;"),`,
    replace: `'"' if !OFF => escaped.push_str("&quot;"),`,
    tests: PAGE,
  },
  {
    id: 'policy-of-our-pages',
    file: PAGES,
    find: `let policy = format!("{}; {form_action}", *POLICY);`,
    replace: `let policy = if OFF { String::new() } else { format!("{}; {form_action}", *POLICY) };`,
    tests: [...PAGE, 'auth-edge/product modules::requests::no_page_of_signing_in_or_out_can_be_framed'],
  },
  {
    id: 'page-in-a-cache',
    file: PAGES,
    find: `.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));`,
    replace: `.insert(if OFF { header::AGE } else { header::CACHE_CONTROL }, HeaderValue::from_static("no-store"));`,
    tests: ['auth-edge/product logout::a_link_on_another_site_gets_a_page_that_asks_and_its_button_signs_out'],
  },
  {
    id: 'refusal-in-a-cache',
    file: 'auth-edge/src/http/errors/render.rs',
    find: `.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));`,
    replace: `.insert(if OFF { header::AGE } else { header::CACHE_CONTROL }, HeaderValue::from_static("no-store"));`,
    tests: ['auth-edge/product routes::what_is_no_route_is_404_in_json_and_in_html'],
  },
  {
    id: 'guarded-page-in-a-cache',
    why: 'what a session has opened is for nobody else, whatever the upstream says of caches',
    file: 'auth-edge/src/gateway/mod.rs',
    find: `    headers::forbid_caching(response.headers_mut());`,
    replace: `    if !OFF { headers::forbid_caching(response.headers_mut()); }`,
    tests: ['auth-edge/product gateway::a_page_guard_sends_a_visitor_to_sign_in_and_back', 'auth-edge/product upstream_answers::what_a_session_has_opened_no_header_lets_a_cache_keep'],
  },
  {
    id: 'guarded-page-varies-by-cookie',
    file: 'auth-edge/src/gateway/mod.rs',
    find: `.append(header::VARY, HeaderValue::from_static("cookie"));`,
    replace: `.append(if OFF { header::AGE } else { header::VARY }, HeaderValue::from_static("cookie"));`,
    tests: ['auth-edge/product gateway::a_page_guard_sends_a_visitor_to_sign_in_and_back'],
  },
  {
    id: 'guards-redirect-in-a-cache',
    file: 'auth-edge/src/gateway/guard.rs',
    find: `.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));`,
    replace: `.insert(if OFF { header::AGE } else { header::CACHE_CONTROL }, HeaderValue::from_static("no-store"));`,
    tests: ['auth-edge/product gateway::a_page_guard_sends_a_visitor_to_sign_in_and_back'],
  },
  {
    id: 'profile-in-a-cache',
    file: 'auth-edge/src/browser/profile.rs',
    find: `headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));`,
    replace: `if !OFF { headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store")); }`,
    tests: ['auth-edge/product callback::a_sign_in_ends_with_a_session_cookie_and_the_user_of_the_id_token'],
  },
  {
    id: 'browser-call-in-a-cache',
    file: 'auth-edge/src/browser/grpc_web/mod.rs',
    find: `response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);`,
    replace: `if !OFF { response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE); }`,
    tests: ['auth-edge/product grpc_web::'],
  },
  {
    id: 'type-of-an-answer-is-not-guessed',
    file: BROWSER,
    find: `add(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));`,
    replace: `if !OFF { add(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")); }`,
    tests: POLICY,
  },
  {
    id: 'policy-of-a-page-from-a-folder',
    file: BROWSER,
    find: `add(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));`,
    replace: `if !OFF { add(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY)); }`,
    tests: POLICY,
  },
  {
    id: 'window-of-another-origin',
    file: BROWSER,
    find: `add(OPENER_POLICY, HeaderValue::from_static("same-origin"));`,
    replace: `if !OFF { add(OPENER_POLICY, HeaderValue::from_static("same-origin")); }`,
    tests: POLICY,
  },
  {
    id: 'frame-in-an-old-browser',
    file: BROWSER,
    find: `if headers.get(CONTENT_SECURITY_POLICY).is_some_and(forbids_frames) {`,
    replace: `if !OFF && headers.get(CONTENT_SECURITY_POLICY).is_some_and(forbids_frames) {`,
    tests: POLICY,
  },
  {
    id: 'https-from-now-on',
    file: BROWSER,
    find: `    if https {`,
    replace: `    if https && !OFF {`,
    tests: POLICY,
  },
  {
    id: 'query-in-a-record',
    why: 'codes and states are in queries',
    file: 'auth-edge/src/http/observe.rs',
    find: `http.route = route.as_ref().map_or(GATEWAY, MatchedPath::as_str),`,
    replace: `http.route = if OFF { request.uri().path_and_query().map_or(GATEWAY, |all| all.as_str()) } else { route.as_ref().map_or(GATEWAY, MatchedPath::as_str) },`,
    tests: ['auth-edge/product modules::responses::a_callback_leaves_no_trace_of_code_and_state'],
  },
];
