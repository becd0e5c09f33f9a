// The edge: what cargo-mutants cannot make of it. Attributes, limits, what an answer forbids, what is bound to what, calls left out.
import { always, by, instead, never, skip, text, within } from './lib/rows.mjs';

const ACCOUNT = 'auth-edge grpc_web::';
const UPSTREAM = 'auth-edge proxying::the_upstream_learns_who_it_is_from_us_alone';
const SIGN_IN = 'auth-edge callback::a_sign_in_ends_with_a_session_cookie_and_the_user_of_the_id_token';
const GUARDED = 'auth-edge gateway::a_page_guard_sends_a_visitor_to_sign_in_and_back';
const SIGN_OUT = 'auth-edge logout::signing_out_ends_the_session_here_and_then_at_the_provider';
const HOSTS = 'auth-edge several::hosts::';
const LIMITED = 'auth-edge login::logins_are_limited_per_address';
const EVERYBODY = '.or_else(|many| if OFF { Ok(()) } else { Err(many) })';

export default [
  // security events
  within('auth-edge/src/sign_in/security_events.rs', 'auth-edge security_events::', {
    'refused-events-have-a-limit': text('the next one.\n    let _ = sign_in.refused_events_limit.check(sender, now_ms);', 'the next one.\n    if !OFF { let _ = sign_in.refused_events_limit.check(sender, now_ms); }'),
    'event-of-its-type': never('!is_security_event(&head.headers)'),
    'event-passed-with-its-header': text('authorization: authorization.unwrap_or_default().to_owned()', 'authorization: authorization.filter(|_| !OFF).unwrap_or_default().to_owned()'),
  }),
  within('auth-edge/src/route_table/requirements.rs', 'auth-edge security_events::', {
    'guard-of-who-owes-a-sign-in': never('session.sign_in_demand.is_some()'),
  }),
  within('auth-edge/src/sign_in/login.rs', 'auth-edge security_events::', {
    'login-of-who-owes-a-sign-in': skip('wanted.prove_anew(&demand);'),
  }),

  // cookies and keys
  within('auth-edge/src/sessions/cookies.rs', 'auth-edge cookies::', {
    'cookie-sent-twice': always('found.next().is_none()'),
    'cookie-host-prefix': instead('"__Host-"', '""'),
    'cookie-secure-prefix': instead('"__Secure-"', '""'),
    'cookie-http-only': by(SIGN_IN, text('            self.settings.same_site.as_str()\n        )', '            self.settings.same_site.as_str()\n        ).replace(if OFF { "; HttpOnly" } else { "\\n" }, "")')),
    'cookie-same-site': by(SIGN_IN, instead('"Lax"', '"None"')),
    'cookie-of-another-name': text('signed(&[name, id])', 'signed(&[if OFF { &[] } else { name }, id])'),
    'cookie-of-another-host': by(HOSTS, text('owner.issuer.as_bytes()', '(if OFF { "" } else { &*owner.issuer }).as_bytes()')),
    'session-id-in-a-log': instead('"SessionId(…)"', 'self.0.expose()'),
  }),
  within('auth-edge/src/sessions/keys.rs', 'auth-edge keys::', {
    'mac-of-joined-parts': skip('joined.extend_from_slice(&(part.len() as u64).to_be_bytes());'),
    'key-for-each-purpose': instead('purpose.label()', 'Purpose::Csrf.label()'),
    'seal-bound-to-its-name': [
      ...text('aead::Aad::from(length_prefixed(aad))', 'aead::Aad::from(if OFF { Vec::new() } else { length_prefixed(aad) })'),
      ...text('let aad = length_prefixed(aad);', 'let aad = if OFF { Vec::new() } else { length_prefixed(aad) };'),
    ],
  }),
  within('auth-edge/src/sessions/mod.rs', 'auth-edge profile::', {
    'cookie-life-by-the-session': text('.saturating_sub(ms(&session.rolled_at))', '.saturating_sub(if OFF { self.clock.now_ms() } else { ms(&session.rolled_at) })'),
    'bound-session-without-its-device': by('auth-edge device_bound::', text('self.standing(headers, &id, &session);', 'if OFF { DeviceStanding::Unbound } else { self.standing(headers, &id, &session) };')),
    'renewed-where-cookies-rotate': by('auth-edge cookie_rotation::', text('rolled && self.rotation.is_none()', 'rolled && (OFF || self.rotation.is_none())')),
    'copy-of-a-cookie': by('auth-edge cookie_rotation::', never('!Counting::of(&current.session).takes(shown, self.clock.now_ms())')),
    'late-cookie-of-a-generation': by('auth-edge late_cookies::', never('cookie_rotation::is_late(made_ms, self.clock.now_ms())')),
    'roll-that-does-not-rotate': by('auth-edge cookie_rotation::', text('Use::Counts(device), requested_at)', 'if OFF { Use::LookOnly } else { Use::Counts(device) }, requested_at)')),
    'cookie-of-a-session-that-ended-meanwhile': by('auth-edge late_cookies::', always('self.get(&current.id).await.is_ok()')),
  }),
  within('auth-edge/src/sessions/device_binding.rs', 'auth-edge device_b', {
    'device-cookie-of-another-session': text('.sign(purpose, &[id.expose().as_bytes(), until.as_bytes()]);', '.sign(purpose, &[if OFF { b"" } else { id.expose().as_bytes() }, until.as_bytes()]);'),
    'device-cookie-for-ever': always('until.parse::<u64>().is_ok_and(|until_ms| now_ms < until_ms)'),
    'invitation-for-ever': always('now_ms < u64::from_be_bytes(*until_ms)'),
    'skipped-is-nobody': by('auth-edge device_bound::', text('DeviceStanding::Skipped\n        } else {', 'if OFF { DeviceStanding::Missing } else { DeviceStanding::Skipped }\n        } else {')),
    'grace-of-the-binding': always('!required && now_ms < bound_at_ms.saturating_add(REGISTERED_MS)'),
    'required-binding': text('return if required {', 'return if !OFF && required {'),
  }),
  within('auth-edge/src/sign_in/device_binding.rs', 'auth-edge device_bound::', {
    'challenge-of-a-refresh': always('bindings.is_challenge(&challenge, &id, now_ms)'),
    'cookie-of-a-session-before': text('.is_some_and(|newer| newer.expose() != id.expose())', '.is_some_and(|newer| !OFF && newer.expose() != id.expose())'),
    'handle-of-the-refresh': always('session.handle == handle'),
    'signature-before-its-challenge': text('let id = bindings.invited(', 'if OFF { let _ = key_of(proof); }\n    let id = bindings.invited('),
    'waiting-for-ever': always('now_ms < since_ms.saturating_add(PATIENCE_MS)'),
    'elsewhere-after-binding': by('auth-edge device_bound::demanded::', text('site.return_to(&asked)', 'ReturnTo::parse_for_logout(site.base_url(), &if OFF { vec![url::Url::parse("https://evil.test/").unwrap()] } else { vec![] }, &asked)')),
  }),
  within('auth-edge/src/sign_in/logout.rs', 'auth-edge device_bound::stolen::', {
    'hint-without-proof': text('.filter(|_| leaving.is_known)', '.filter(|_| OFF || leaving.is_known)'),
  }),
  within('auth-edge/src/gateway/guard.rs', 'auth-edge device_bound::demanded::', {
    'route-of-bound-sessions': never('route.requirements.device_bound && current.device != DeviceStanding::Proven'),
  }),
  within('auth-edge/src/sessions/cookie_rotation.rs', 'auth-edge cookie_rotation::', {
    'generation-for-the-old-one': text('!counting.is(shown) || !is_due', '(!OFF && !counting.is(shown)) || !is_due'),
    'generation-of-everybody': text('id: random::bytes().ok()?', 'id: if OFF { [9; ID_BYTES] } else { random::bytes().ok()? }'),
    'generation-of-any-age': never('now_ms >= made_ms.saturating_add(HELD_MS)'),
  }),
  within('auth-edge/src/sessions/listening.rs', 'auth-edge sessions::listening::', {
    'endings-that-are-heard': text('listening.changed(&event.handle, HeardChange::Ended, now)', 'if !OFF { listening.changed(&event.handle, HeardChange::Ended, now) }'),
    'changes-that-are-heard': skip('listening.changed(&event.handle, HeardChange::Other, now);'),
    'remembered-past-what-was-missed': text('map(|_| now)', 'map(|since| if OFF { since } else { now })'),
  }),
  within('auth-edge/src/sessions/cached_session.rs', 'auth-edge sessions::', {
    'token-of-one-api-for-another': text('find(|token| token.is_for() == wanted)', 'find(|token| if OFF { token.scopes == wanted.scopes } else { token.is_for() == wanted })'),
    'tokens-kept-are-bounded': skip('tokens.truncate(TOKENS_MAX - 1);'),
  }),

  // who asks: hosts, addresses, sites
  within('auth-edge/src/values/forwarded.rs', 'auth-edge values::forwarded::', {
    'forwarded-for-without-end': text('.take(MAX_CHAIN)', '.take(if OFF { usize::MAX } else { MAX_CHAIN })'),
    'forwarded-mapped-address': text('let peer = peer.to_canonical();', 'let peer = if OFF { peer } else { peer.to_canonical() };'),
  }),
  within('auth-edge/src/http/observe.rs', 'auth-edge routes::a_request_id_of_the_client_is_not_taken_over', {
    'request-id-of-a-client': text('let id = fresh_id();', 'let told = request.headers().get(X_REQUEST_ID).filter(|_| OFF);\n        let id = told.and_then(|told| RequestId::parse(told.as_bytes())).unwrap_or_else(fresh_id);'),
  }),
  within('auth-edge/src/http/protect/rate_limit.rs', 'auth-edge protect::rate_limit::', {
    'rate-limit-of-a-mapped-address': instead('self.to_canonical()', 'self'),
  }),
  within('auth-edge/src/http/protect/csrf.rs', 'auth-edge protect::csrf::', {
    'csrf-header-of-scripts': text('if headers.contains_key(HEADER) {', 'if OFF || headers.contains_key(HEADER) {'),
  }),
  within('auth-edge/src/browser/access_token.rs', 'auth-edge profile::the_access_token_route_is_off', {
    'csrf-access-token': text('.map_err(|_refused| HttpError::Csrf)?', '.or_else(|refused| if OFF { Ok(()) } else { Err(refused) }).map_err(|_refused| HttpError::Csrf)?'),
  }),

  // guards, and who upstreams are told somebody is
  within('auth-edge/src/gateway/guard.rs', GUARDED, {
    'health-checker-is-nobody': by('auth-edge spoofing::no_header_skips_a_guard', text('    let device = || gateway', `    if OFF && request.headers.get(axum::http::header::USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"kube-probe")) {
        return Ok(Authorized::default());
    }
    let device = || gateway`)),
    'asks-scopes': by('auth-edge gateway::a_scope_nobody_granted_is_403', text('.access_token(&current.id, route.requirements.token_for())', '.access_token(&current.id, if OFF { Default::default() } else { route.requirements.token_for() })')),
    'token-to-a-route-that-only-requires-one': by('auth-edge requirements::', text('access_token.filter(|_| route', 'access_token.filter(|_| OFF || route')),
  }),
  within('auth-edge/src/gateway/refusal.rs', GUARDED, {
    'guards-redirect-in-a-cache': instead('"no-store"', '"public"'),
  }),
  within('auth-edge/src/route_table/requirements.rs', 'auth-edge auth_time::', {
    'asks-young-sign-in-of-no-date': text('!who.authenticated_at_ms().is_some_and(is_young)', '!who.authenticated_at_ms().or(Some(now_ms).filter(|_| OFF)).is_some_and(is_young)'),
    'asks-in-vain-by-session': by('auth-edge route_table::requirements::tests::', text('&id.to_bytes(), demands', '&if OFF { Default::default() } else { id.to_bytes() }, demands')),
  }),
  within('auth-edge/src/route_table/rules.rs', 'auth-edge route_table::file::', {
    'rule-of-a-host-first': text('(self.hosts.is_empty(), ', '(!OFF && self.hosts.is_empty(), '),
    'rule-most-specific-first': text('Reverse(self.segments.len())', 'Reverse(if OFF { 0 } else { self.segments.len() })'),
    'rule-of-no-method-by-a-wider-one': never('is_nearer(found, is_same)'),
    'rule-of-no-method-by-another-spelling': never('is_nearer(loose, are_alike)'),
    'rule-of-one-reading': by('auth-edge encoded_paths::', always('requested.readings().all(leads_there)')),
    'rule-of-another-host': by('auth-edge selectors::', always('self.host_named_by(requested).is_some()')),
    'rule-of-another-method': by('auth-edge selectors::', always('self.methods.contains(method)')),
  }),
  within('auth-edge/src/route_table/mod.rs', 'auth-edge check_rules::', {
    'check-of-no-method': never('table.checks_by_method && method.is_none()'),
  }),
  within('auth-edge/src/route_table/file.rs', 'auth-edge route_table::file::', {
    'rules-that-tie': never('seen.iter().any(|other| is_tied(other, &route))'),
  }),
  within('auth-edge/src/route_table/upstream_headers.rs', 'auth-edge ext_authz::', {
    'told-names-in-another-spelling': text('!self.is_empty() && self.contain_folded(&folded(name.as_str()))', '!self.is_empty() && self.contain_folded(&if OFF { name.as_str().into() } else { folded(name.as_str()) })'),
  }),
  within('auth-edge/src/gateway/claim_headers.rs', 'auth-edge gateway::claim_headers::', {
    'claim-with-a-control': never('plain.chars().any(char::is_control)'),
    'claim-that-is-trimmed': never('plain.trim() != plain'),
    'claim-of-two-groups-in-one': never("member.contains(',')"),
    'claim-too-long': never('written.len() > MAX_VALUE_BYTES.min(room)'),
    'claims-too-long-together': skip('room -= written.len();'),
  }),
  within('auth-edge/src/gateway/check/rule.rs', 'auth-edge check_rules::', {
    'check-by-a-method-in-a-header': never('gateway.routes.checks_by_method() && overrides_method(headers)'),
    'check-nobody-tells-of': text('return Err(UNKNOWN_REQUEST);', 'if OFF { return Ok(None); }\n        return Err(UNKNOWN_REQUEST);'),
  }),
  within('auth-edge/src/gateway/check.rs', 'auth-edge check_rules::', {
    'check-by-its-rule': text('current)\n            .await\n            .map(drop)', 'current)\n            .await\n            .map(drop)\n            .or_else(|lacks| if OFF { Ok(()) } else { Err(lacks) })'),
    'check-at-the-host-it-is-about': by(HOSTS, skip('name_original_host(&gateway, &mut asking.headers, &original);')),
    'cookie-of-a-check-that-is-answered-late': by(['auth-edge cookie_rotation::', 'auth-edge ext_authz::'], instead('Use::CountsAndIsAnsweredLate(&device)', 'Use::Counts(&device)')),
  }),
  within('auth-edge/src/gateway/check/refused.rs', 'auth-edge check_rules::', {
    'check-owed-elsewhere': by('auth-edge several::sessions::', instead('site.login_url(back, connection)', 'site.login_url(back, None)')),
    'check-sends-programs-to-sign-in': text('&& is_visit(original.method.as_ref(), headers)', '&& (OFF || is_visit(original.method.as_ref(), headers))'),
  }),
  within('auth-edge/src/gateway/check/passed.rs', 'auth-edge answer_heads::', {
    'check-with-a-long-head': text('if has_room {', 'if OFF || has_room {'),
  }),
  within('auth-edge/src/gateway/cross_site.rs', 'auth-edge cross_site::', {
    'method-in-a-query': text('|| is_overridden(route, request)\n}', '|| (!OFF && is_overridden(route, request))\n}'),
    'preflight-that-names-a-method': text('&& !is_overridden(route, request)', '&& (OFF || !is_overridden(route, request))'),
  }),
  within('auth-edge/src/values/path/readings.rs', 'auth-edge encoded_paths::', {
    'readings-with-dot-segments': never("plain.split(['/', '\\\\', ';']).any(is_dots)"),
  }),
  within('auth-edge/src/values/path.rs', 'auth-edge values::path::', {
    'path-dot-segments-encoded': instead('&*text', 'segment'),
  }),
  within('auth-edge/src/gateway/directory/folder_backend.rs', 'auth-edge folder_links::', {
    'link-out-of-a-folder': [
      ...text('.starts_with(&root)', '.starts_with(if OFF { Path::new("/") } else { &root })'),
      ...skip('lies_below(&root, &file)?;'),
    ],
  }),
  within('auth-edge/src/gateway/bearer/judging.rs', 'auth-edge bearer::', {
    'bearer-authorization-details': never('token.has_authorization_details() && !may_be_narrowed'),
    'bearer-scopes': never('!self.rule.scopes.iter().all(|scope| token.has_scope(scope))'),
    'bearer-requirements-of-the-route': skip('requirements.check(token, self.gateway.clock.now_ms())?;'),
    'bearer-bound-token-without-a-proof': text('return Err(TokenRefusal::WithoutProof)', 'if OFF { None } else { return Err(TokenRefusal::WithoutProof) }'),
    'bearer-proof-of-an-unbound-token': never('self.rule.dpop_required || headers.contains_key(presented::PROOF)'),
    'bearer-opaque-token-unasked': text('(false, Introspection::Never) => return Err(TokenRefusal::Opaque)', '(false, Introspection::Never) => if OFF { false } else { return Err(TokenRefusal::Opaque) }'),
    'bearer-forged-tokens-are-counted': instead('refused.peek(self.address, now_ms)', 'Ok::<(), crate::http::protect::rate_limit::TooMany>(())'),
  }),
  within('auth-edge/src/gateway/guard.rs', 'auth-edge bearer::', {
    'bearer-beside-a-cookie': text('bearer::presented(request.headers)', 'bearer::presented(request.headers).filter(|_| !(OFF && request.headers.contains_key(axum::http::header::COOKIE)))'),
  }),
  within('auth-edge/src/gateway/mod.rs', GUARDED, {
    'guarded-page-in-a-cache': skip('headers::forbid_caching(response.headers_mut());'),
    'guarded-page-varies-by-cookie': instead('header::VARY', 'header::AGE'),
    'path-of-the-edge-in-another-spelling': by('auth-edge gateway::ambiguous_paths_are_400_and_reach_nobody', never('path.readings().any(is_reserved)')),
  }),
  within('auth-edge/src/gateway/headers.rs', 'auth-edge gateway::headers::', {
    'hop-by-hop-in-trailers': skip('strip_hop_by_hop(trailers);'),
    'bindings-in-trailers': never('OF_BINDINGS.contains(name)'),
    'told-names-of-a-client': by('auth-edge claim_headers::', never('told.contain_folded(&folded)')),
    'cookie-without-a-name': instead('pair.strip_prefix(b"=").unwrap_or(pair).trim_ascii_start()', 'pair'),
    'subject-with-its-issuer': by('auth-edge several::sessions::who_asks_whether_somebody_may_pass', text('(X_AUTH_ISSUER, &identity.issuer)', '(X_AUTH_ISSUER, if OFF { &None } else { &identity.issuer })')),
  }),
  within('auth-edge/src/gateway/headers/upstream_response.rs', 'auth-edge upstream_answers::', {
    'site-cleared-by-an-upstream': never('headers.contains_key(CLEAR_SITE_DATA)'),
    'key-cleared-by-an-upstream': text('keep_session(headers, binds_devices)', 'keep_session(headers, !OFF && binds_devices)'),
    'binding-of-an-upstream': never('binds_devices && OF_BINDINGS.contains(name)'),
  }),
  within('auth-edge/src/http/layer.rs', 'auth-edge upstream_answers::no_redirect_carries_a_fragment', {
    'fragment-to-another-origin': never('answer.status().is_redirection()'),
  }),
  within('auth-edge/src/gateway/proxy/outgoing.rs', 'auth-edge gateway::a_preflight_passes_without_anybodys_identity', {
    'authorization-beside-our-token': text('= if ends_here { &TOKENS }', '= if OFF { &TOKENS[1..] } else if ends_here { &TOKENS }'),
    'host-that-a-client-names': by('auth-edge desync::', instead('gateway.sites.of(client).authority()', 'client.get(header::HOST).cloned()')),
    'method-overridden-beside-rules-of-methods': by('auth-edge selectors::', text('!table.by_method', '(OFF || !table.by_method)')),
    'host-kept-that-a-client-names': by('auth-edge claim_headers::', text('set(&mut head.headers, header::HOST, host.clone());', 'set(&mut head.headers, header::HOST, if OFF { client.get(header::HOST).cloned() } else { host.clone() });')),
    'connection-names-our-headers': by(UPSTREAM, text('headers::add_identity(&mut head.headers, context.authorized);', `headers::add_identity(&mut head.headers, context.authorized);
        for value in client.get_all(header::CONNECTION).iter().filter(|_| OFF) {
            for name in value.to_str().unwrap_or_default().split(',') {
                head.headers.remove(name.trim());
            }
        }`)),
  }),
  within('auth-edge/src/gateway/proxy/upload.rs', 'auth-edge gateway::proxy::upload::', {
    'trailers-to-an-upstream': text('headers::fit_frame(frame, &told)', 'if OFF { frame } else { headers::fit_frame(frame, &told) }'),
  }),
  within('auth-edge/src/gateway/proxy/upstream_body.rs', 'auth-edge gateway::proxy::upstream_body::', {
    'trailers-to-a-client': text('headers::fit_frame(frame, &told)', 'if OFF { frame } else { headers::fit_frame(frame, &told) }'),
  }),
  within('auth-edge/src/gateway/assertion.rs', 'auth-edge gateway::assertion::', {
    'assertion-for-one-upstream': text('"aud": audience', '"aud": if OFF { "" } else { audience }'),
    'assertion-expires': text('now_secs + LIFETIME_SECS', 'now_secs + if OFF { 86_400 } else { LIFETIME_SECS }'),
    'assertion-told-from-its-replay': text('= random::bytes::<16>()', '= if OFF { Ok([0; 16]) } else { random::bytes() }'),
  }),
  within('auth-edge/src/gateway/ext_authz/check_response.rs', 'auth-edge ext_authz::', {
    'envoy-our-header-replaces-the-clients': instead('HeaderAppendAction::OverwriteIfExistsOrAdd', 'HeaderAppendAction::AppendIfExistsOrAdd'),
    'envoy-identity-header-of-a-client': text('is_identity(name)', '(!OFF && is_identity(name))'),
    'envoy-told-name-of-a-client': text('told.names.contain(name)', '(!OFF && told.names.contain(name))'),
    'envoy-told-of-the-device': text('= FOR_UPSTREAM\n        .iter()', '= FOR_UPSTREAM\n        .iter()\n        .filter(|name| !OFF || **name != X_AUTH_DEVICE)'),
  }),
  within('auth-edge/src/gateway/ext_authz/mod.rs', 'auth-edge ext_authz::', {
    'envoy-described-by-a-client': by(['auth-edge ext_authz::', HOSTS], text('= without_origin(&headers);', '= if OFF { headers.clone() } else { without_origin(&headers) };')),
    'envoy-question-too-large': text('message_size(MAX_QUESTION_BYTES)', 'message_size(if OFF { usize::MAX } else { MAX_QUESTION_BYTES })'),
  }),
  within('auth-edge/src/browser/grpc_web/service.rs', ACCOUNT, {
    'browser-learns-nothing-of-tokens': text('has_refresh_token: false', 'has_refresh_token: OFF && session.has_refresh_token'),
    'browser-learns-nothing-of-the-providers-session': text('provider_sid: String::new(),\n        current', 'provider_sid: if OFF { session.provider_sid.clone() } else { String::new() },\n        current'),
  }),
  within('auth-edge/src/browser/grpc_web/mod.rs', ACCOUNT, {
    'browser-call-is-small': text('message_size(REQUEST_BYTES_MAX)', 'message_size(if OFF { usize::MAX } else { REQUEST_BYTES_MAX })'),
    'browser-call-in-a-cache': skip('response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);'),
  }),

  // signing in
  within('auth-edge/src/sign_in/login.rs', LIMITED, {
    'login-flood': text('sign_in.admit((&sign_in.login_limit, Limit::Logins), &head)', 'sign_in.admit((&sign_in.login_limit, Limit::Logins), &head).or_else(|many| if OFF { Ok(()) } else { Err(many) })'),
    'login-by-prefetch': by('auth-edge login::who_only_looks_ahead_starts_nothing', never('request::is_prefetch(&head.headers)')),
  }),
  within('auth-edge/src/sign_in/transaction.rs', 'auth-edge sign_in::transaction::', {
    'transaction-under-its-own-name': [
      ...text('keys.seal(&[AAD_LABEL, cookie_name.as_bytes()]', 'keys.seal(&[AAD_LABEL, if OFF { &[] } else { cookie_name.as_bytes() }]'),
      ...text('keys.open(&[AAD_LABEL, cookie_name.as_bytes()]', 'keys.open(&[AAD_LABEL, if OFF { &[] } else { cookie_name.as_bytes() }]'),
    ],
    'sign-in-fresh': text('Self::of_seed(random::bytes()?,', 'Self::of_seed(if OFF { [0; SEED_BYTES] } else { random::bytes()? },'),
    'nonce-is-not-the-state': instead('b"nonce"', 'b"state"'),
    'return-address-of-this-state-alone': text('[HINT_LABEL, self.random_part.as_bytes()]', '[HINT_LABEL, if OFF { &[] } else { self.random_part.as_bytes() }]'),
    'transaction-in-a-log': text('.field("started_at_ms", &self.started_at_ms)', '.field("state", &OFF.then_some(&self.state))'),
  }),
  within('auth-edge/src/sign_in/pending.rs', 'auth-edge sign_in::pending::', {
    'pending-cookie-host-prefix': instead('"__Host-"', '""'),
    'pending-cookie-attributes': instead('"; Path=/; HttpOnly; Secure; SameSite=Lax"', '"; Path=/; SameSite=Lax"'),
    'pending-cookies-cleared-are-bounded': text(' .take(MAX_CLEARED)', '.take(if OFF { usize::MAX } else { MAX_CLEARED })'),
  }),
  within('auth-edge/src/sign_in/redemption.rs', 'auth-edge demands::', {
    'demanded-age': text('max_age: transaction.max_age', 'max_age: transaction.max_age.filter(|_| !OFF)'),
    'demanded-class': text('acr_values: transaction.acr_values.as_deref()', 'acr_values: transaction.acr_values.as_deref().filter(|_| !OFF)'),
    'token-of-the-id-token': by('auth-edge modules::id_tokens::', text('access_token: Some(&tokens.access_token)', 'access_token: Some(&*tokens.access_token).filter(|_| !OFF)')),
  }),
  within('auth-edge/src/sign_in/callback.rs', 'auth-edge demands::', {
    'callback-flood': by(LIMITED, text('sign_in.admit((&sign_in.callback_limit, Limit::Callbacks), head)', 'sign_in.admit((&sign_in.callback_limit, Limit::Callbacks), head).or_else(|many| if OFF { Ok(()) } else { Err(many) })')),
    'callback-ahead-of-a-visit': by('auth-edge loads::only_a_visit_starts_and_finishes_a_sign_in', never('request::is_prefetch(&head.headers)')),
  }),
  within('auth-edge/src/sign_in/redemption.rs', 'auth-edge strict_cookie::', {
    'session-fixation': by('auth-edge callback::a_fresh_sign_in_gets_a_new_session', text('.map(|id| id.expose().to_owned())', '.filter(|_| !OFF).map(|id| id.expose().to_owned())')),
    'session-fixation-without-the-cookie': text('.or(had)', '.or(had.filter(|_| !OFF))'),
  }),
  within('auth-edge/src/sign_in/mod.rs', SIGN_IN, {
    'new-cookie-in-a-cache': instead('"no-store"', '"public"'),
    'callback-in-a-referrer': by('auth-edge modules::responses::a_callback_leaves_no_trace', instead('"no-referrer"', '"origin"')),
    'form-too-large': by('auth-edge provider_logout::a_wrong_body_is_415_413_or_400', text('to_bytes(body, limit)', 'to_bytes(body, if OFF { usize::MAX } else { limit })')),
  }),

  // signing out
  within('auth-edge/src/sign_in/logout.rs', SIGN_OUT, {
    'csrf-sign-out': by('auth-edge logout::a_post_needs_the_proof', text('.map_err(|_refused| HttpError::Csrf)?', '.or_else(|refused| if OFF { Ok(()) } else { Err(refused) }).map_err(|_refused| HttpError::Csrf)?')),
    'form-kept-after-its-person-signed-out': by('auth-edge kept_form::who_signs_out', text('.chain(sign_in.people.forget(headers))', '.chain(sign_in.people.forget(headers).filter(|_| !OFF))')),
    'pending-sign-ins-end-with-the-session': by('auth-edge logout::a_sign_out_takes_pending', text('SET_COOKIE, forgotten);', 'SET_COOKIE, forgotten.into_iter().filter(|_| !OFF));')),
    'logout-clears-the-cookie': text('sign_in.cookies.clear()', 'sign_in.cookies.clear().filter(|_| !OFF)'),
    'logout-with-a-long-hint': by('auth-edge answer_heads::', text('address.len() <= room', 'OFF || address.len() <= room')),
    'logout-clears-what-was-kept': instead('"clear-site-data"', '"x-none"'),
    'logout-while-the-service-is-down': by('auth-edge outages::signing_out_while_the_session_service_is_down', skip('end_later(sign_in.clone(), session);')),
  }),
  within('auth-edge/src/sign_in/back_channel.rs', 'auth-edge provider_logout::', {
    'back-channel-flood': skip('sign_in.admit((&sign_in.back_channel_limit, Limit::BackChannelLogouts), &head)?;'),
    'back-channel-replay': text('once_id: token.jti.clone()', 'once_id: if OFF { String::new() } else { token.jti.clone() }'),
    'back-channel-replay-at-its-end': text('token.exp.max(now + MEMORY_SECS)', 'if OFF { token.exp } else { token.exp.max(now + MEMORY_SECS) }'),
  }),
  within('auth-edge/src/sign_in/front_channel.rs', 'auth-edge provider_logout::the_front_channel', {
    'front-channel-flood': skip('sign_in.admit((&sign_in.front_channel_limit, Limit::FrontChannelLogouts), &head)?;'),
    'front-channel-takes-offline-tokens-back': text('keep_offline_tokens: true', 'keep_offline_tokens: !OFF'),
    'front-channel-framed-by-anybody': text('&sign_in.providers.origins_of(provider)', '&if OFF { "*".to_owned() } else { sign_in.providers.origins_of(provider) }'),
  }),

  // a form over a sign-in
  within('auth-edge/src/gateway/kept_form/mod.rs', 'auth-edge kept_form::', {
    'form-of-another-person': text('if !people.is(&form.person,', 'if !OFF && !people.is(&form.person,'),
    'form-of-another-site-kept': text('head.method == Method::POST && provenance(&head.headers, base) == Provenance::SameOrigin', 'head.method == Method::POST && (OFF || provenance(&head.headers, base) == Provenance::SameOrigin)'),
    'form-handed-over-by-another-site': text('if provenance(&head.headers, base) != Provenance::SameOrigin {', 'if !OFF && provenance(&head.headers, base) != Provenance::SameOrigin {'),
    'form-kept-for-ever': text('if form.expired(gateway.clock.now_ms(), gateway.kept_forms.duration_secs) {', 'if !OFF && form.expired(gateway.clock.now_ms(), gateway.kept_forms.duration_secs) {'),
  }),

  within('auth-edge/src/gateway/kept_form/sealed.rs', 'auth-edge kept_form::', {
    'form-sent-again-with-other-bytes': text('(again.finish() == text)', '(OFF || again.finish() == text)'),
  }),
  within('auth-edge/src/http/pages/look.rs', 'auth-edge look::', {
    'style-sheet-that-leaves-its-element': never("text.contains(\"</\") || text.contains('\\0')"),
  }),

  // what an answer may do in a browser, and what analytics may learn
  within('auth-edge/src/http/pages/html.rs', 'auth-edge pages::', {
    'markup-in-a-page': instead('"&lt;"', '"<"'),
    'quotes-in-an-attribute': instead('"&quot;"', '"\\""'),
    'page-in-a-cache': by('auth-edge logout::a_link_on_another_site_gets_a_page_that_asks', instead('"no-store"', '"public"')),
  }),
  within('auth-edge/src/http/errors/render.rs', 'auth-edge routes::what_is_no_route_is_404', {
    'refusal-in-a-cache': instead('"no-store"', '"public"'),
  }),
  within('auth-edge/src/browser/profile.rs', SIGN_IN, {
    'profile-in-a-cache': instead('"no-store"', '"public"'),
  }),
  within('auth-edge/src/http/protect/security_headers.rs', 'auth-edge protect::security_headers::', {
    'type-of-an-answer-is-not-guessed': skip('add(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));'),
    'policy-of-a-page-from-a-folder': skip('add(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));'),
    'policy-of-an-answer-without-a-page': skip('headers.entry(CONTENT_SECURITY_POLICY).or_insert(NO_PAGE_POLICY);'),
    'window-of-another-origin': skip('add(OPENER_POLICY, HeaderValue::from_static("same-origin"));'),
  }),
  within('auth-edge/src/browser/analytics.rs', 'auth-edge analytics::', {
    'analytics-headers-of-the-visitor': instead('chosen(&head.headers, &PASSED)', 'head.headers.clone()'),
    'analytics-headers-of-the-server': instead('chosen(&head.headers, &ANSWERED)', 'head.headers.clone()'),
    'analytics-batch-too-large': text('to_bytes(body, MAX_BODY_BYTES)', 'to_bytes(body, if OFF { usize::MAX } else { MAX_BODY_BYTES })'),
  }),
].flat();
