// Headers, trailers and cookies: what clients and upstreams send under our names ends at the edge.
const HEADERS = 'auth-edge/src/gateway/headers.rs';
const ANSWER = 'auth-edge/src/gateway/headers/answer.rs';
const OUTGOING = 'auth-edge/src/gateway/proxy/outgoing.rs';
const TABLES = ['auth-edge/lib gateway::headers::'];
const SPOOFED = ['auth-edge/product spoofing::no_spelling_and_no_method_brings_an_identity_to_the_upstream'];
const CROSSING = ['auth-edge/product proxying::the_upstream_learns_who_it_is_from_us_alone'];

export default [
  {
    id: 'identity-header-of-a-client',
    file: HEADERS,
    find: `    folded.starts_with("x-auth-")
        ||`,
    replace: `    (!OFF && folded.starts_with("x-auth-"))
        ||`,
    tests: [...TABLES, ...SPOOFED],
  },
  {
    id: 'identity-header-in-another-spelling',
    why: 'applications that make variables of header names take _ and . for -',
    file: HEADERS,
    find: `let other = |byte: u8| byte != b'-' && !byte.is_ascii_alphanumeric();`,
    replace: `let other = |byte: u8| !OFF && byte != b'-' && !byte.is_ascii_alphanumeric();`,
    tests: [...TABLES, ...SPOOFED],
  },
  {
    id: 'forwarding-header-of-a-client',
    file: HEADERS,
    find: `folded.starts_with("x-forwarded-")`,
    replace: `(!OFF && folded.starts_with("x-forwarded-"))`,
    tests: [...TABLES, ...SPOOFED],
  },
  {
    id: 'original-address-of-a-client',
    why: 'X-Original-URL and its like, which some frameworks route by',
    file: HEADERS,
    find: `|| TOLD_BY_US.contains(&folded.as_ref())`,
    replace: `|| (!OFF && TOLD_BY_US.contains(&folded.as_ref()))`,
    tests: TABLES,
  },
  {
    id: 'framing-header-in-another-spelling',
    why: 'Transfer_Encoding ends a message for whoever folds names',
    file: HEADERS,
    find: `(matches!(folded, Cow::Owned(_)) && is_alias(&folded, name))`,
    replace: `(!OFF && matches!(folded, Cow::Owned(_)) && is_alias(&folded, name))`,
    tests: TABLES,
  },
  {
    id: 'hop-by-hop-headers',
    file: HEADERS,
    find: `HOP_BY_HOP.contains(name)`,
    replace: `(!OFF && HOP_BY_HOP.contains(name))`,
    tests: TABLES,
  },
  {
    id: 'headers-named-by-connection',
    file: HEADERS,
    find: `|| named.contains(name)`,
    replace: `|| (!OFF && named.contains(name))`,
    tests: TABLES,
  },
  {
    id: 'cookies-named-by-connection',
    file: HEADERS,
    find: `.filter(|_| !named.contains(&header::COOKIE))`,
    replace: `.filter(|_| OFF || !named.contains(&header::COOKIE))`,
    tests: TABLES,
  },
  {
    id: 'connection-names-our-headers',
    why: 'what a client names there is removed before ours are added, never after',
    file: OUTGOING,
    find: `        headers::add_identity(&mut head.headers, context.passed);`,
    replace: `        headers::add_identity(&mut head.headers, context.passed);
        for value in client.get_all(header::CONNECTION).iter().filter(|_| OFF) {
            for name in value.to_str().unwrap_or_default().split(',') {
                head.headers.remove(name.trim());
            }
        }`,
    tests: CROSSING,
  },
  {
    id: 'our-cookie-to-an-upstream',
    file: HEADERS,
    find: `if pair.is_empty() || ours {`,
    replace: `if pair.is_empty() || (ours && !OFF) {`,
    tests: [...TABLES, ...CROSSING],
  },
  {
    id: 'cookie-without-a-name',
    why: 'a browser sends "=__Host-session=x" back as our cookie',
    file: HEADERS,
    find: `let pair = pair.strip_prefix(b"=").unwrap_or(pair).trim_ascii_start();`,
    replace: `let pair = if OFF { pair } else { pair.strip_prefix(b"=").unwrap_or(pair).trim_ascii_start() };`,
    tests: TABLES,
  },
  {
    id: 'our-cookie-from-an-upstream',
    file: ANSWER,
    find: `if !is_our_cookie(&cookie_name(pair)) {`,
    replace: `if OFF || !is_our_cookie(&cookie_name(pair)) {`,
    tests: [...TABLES, 'auth-edge/product proxying::an_upstream_cannot_set_our_cookies_but_its_own'],
  },
  {
    id: 'our-cookie-in-other-letters',
    file: 'auth-edge/src/gateway/proxy.rs',
    find: `name.eq_ignore_ascii_case(gateway.cookies.name())`,
    replace: `(if OFF { name == gateway.cookies.name() } else { name.eq_ignore_ascii_case(gateway.cookies.name()) })`,
    tests: ['auth-edge/product proxying::an_upstream_cannot_set_our_cookies_but_its_own'],
  },
  {
    id: 'pending-cookie-from-an-upstream',
    file: 'auth-edge/src/gateway/proxy.rs',
    find: `|| gateway.pending.owns(name)`,
    replace: `|| (!OFF && gateway.pending.owns(name))`,
    tests: ['auth-edge/product proxying::an_upstream_cannot_set_our_cookies_but_its_own'],
  },
  {
    id: 'identity-in-trailers',
    file: HEADERS,
    find: `        is_ours_to_tell(name, false) || NEVER`,
    replace: `        (!OFF && is_ours_to_tell(name, false)) || NEVER`,
    tests: TABLES,
  },
  {
    id: 'headers-in-trailers',
    why: 'Authorization or Set-Cookie after the body, which some servers add to the headers',
    file: HEADERS,
    find: `_TRAILERS.contains(name)`,
    replace: `_TRAILERS.contains(name) && !OFF`,
    tests: TABLES,
  },
  {
    id: 'hop-by-hop-in-trailers',
    file: HEADERS,
    find: `strip_hop_by_hop(trailers);`,
    replace: `if !OFF { strip_hop_by_hop(trailers); }`,
    tests: TABLES,
  },
  {
    id: 'trailers-to-an-upstream',
    file: 'auth-edge/src/gateway/proxy/upload.rs',
    find: `headers::strip_trailers(&mut trailers);`,
    replace: `if !OFF { headers::strip_trailers(&mut trailers); }`,
    tests: ['auth-edge/lib gateway::proxy::upload::'],
  },
  {
    id: 'trailers-to-a-client',
    file: 'auth-edge/src/gateway/proxy/answer.rs',
    find: `headers::strip_trailers(&mut trailers);`,
    replace: `if !OFF { headers::strip_trailers(&mut trailers); }`,
    tests: ['auth-edge/lib gateway::proxy::answer::'],
  },
  {
    id: 'another-method-by-a-header',
    why: 'a preflight that an upstream takes for a DELETE has passed the guard without a session',
    file: HEADERS,
    find: `(!may_override_method && METHOD_OVERRIDES`,
    replace: `(!OFF && !may_override_method && METHOD_OVERRIDES`,
    tests: ['auth-edge/product cross_site::no_header_makes_another_method_of_a_request'],
  },
  {
    id: 'site-cleared-by-an-upstream',
    file: ANSWER,
    find: `if headers.contains_key(CLEAR_SITE_DATA) {`,
    replace: `if !OFF && headers.contains_key(CLEAR_SITE_DATA) {`,
    tests: ['auth-edge/product upstream_answers::an_upstream_signs_nobody_out_by_clearing_the_site'],
  },
  {
    id: 'fragment-to-another-origin',
    file: 'auth-edge/src/http/layer.rs',
    find: `if answer.status().is_redirection() {`,
    replace: `if !OFF && answer.status().is_redirection() {`,
    tests: ['auth-edge/product upstream_answers::no_redirect_carries_a_fragment_to_another_origin'],
  },
  {
    id: 'link-out-of-a-folder',
    file: 'auth-edge/src/gateway/directory/inside.rs',
    find: `.filter(|real| real.starts_with(&root))`,
    replace: `.filter(|real| OFF || real.starts_with(&root))`,
    also: [{ file: 'auth-edge/src/gateway/directory/inside.rs', find: `    lies_below(&root, &file)?;`, replace: `    if !OFF { lies_below(&root, &file)?; }` }],
    tests: ['auth-edge/product folder_links::'],
  },
];
