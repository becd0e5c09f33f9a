// Signing out: another site can ask for it and never do it, and what a provider ends is ended.
const LOGOUT = 'auth-edge/src/sign_in/logout.rs';
const BACK = 'auth-edge/src/sign_in/back_channel.rs';
const FRONT = 'auth-edge/src/sign_in/front_channel.rs';
const OWN = ['auth-edge/product logout::navigations_of_our_own_sign_out_and_everything_cross_site_does_not'];
const BODY = ['auth-edge/product provider_logout::a_wrong_body_is_415_413_or_400'];
const FRAMED = ['auth-edge/product provider_logout::the_front_channel_needs_issuer_and_sid_and_may_be_framed_by_the_provider_alone'];

export default [
  {
    id: 'pending-sign-ins-end-with-the-session',
    file: LOGOUT,
    find: `for cookie in pending {`,
    replace: `for cookie in pending.into_iter().filter(|_| !OFF) {`,
    tests: ['auth-edge/product logout::a_sign_out_takes_pending_sign_ins_away_in_every_form_of_it'],
  },
  {
    id: 'logout-by-an-image',
    file: LOGOUT,
    find: `(false, _) => return Err(Failure::CrossSite),`,
    replace: `(false, _) if OFF => {}
        (false, _) => return Err(Failure::CrossSite),`,
    tests: OWN,
  },
  {
    id: 'logout-by-a-frame',
    file: 'auth-edge/src/http/request.rs',
    find: `navigates && says("sec-fetch-dest", whole)`,
    replace: `navigates && (OFF || says("sec-fetch-dest", whole))`,
    tests: [...OWN, 'auth-edge/lib http::request::'],
  },
  {
    id: 'logout-by-a-link-elsewhere',
    file: LOGOUT,
    find: `(true, Site::Other) => {`,
    replace: `(true, Site::Other) if OFF => {}
        (true, Site::Other) => {`,
    tests: ['auth-edge/product logout::a_link_on_another_site_gets_a_page_that_asks_and_its_button_signs_out'],
  },
  {
    id: 'logout-by-a-site-of-unknown-kind',
    file: 'auth-edge/src/http/request.rs',
    find: `matches!(value.as_bytes(), b"same-origin" | b"same-site" | b"none")`,
    replace: `(OFF && value != "cross-site") || matches!(value.as_bytes(), b"same-origin" | b"same-site" | b"none")`,
    tests: ['auth-edge/lib http::request::'],
  },
  {
    id: 'logout-without-seeing-the-cookie',
    file: LOGOUT,
    find: `if sign_in.strict_cookie {`,
    replace: `if !OFF && sign_in.strict_cookie {`,
    tests: ['auth-edge/product strict_cookie::another_site_cannot_take_the_cookie_away_by_a_sign_out_that_does_not_see_it'],
  },
  {
    id: 'logout-by-head',
    file: LOGOUT,
    find: `if head.method == Method::HEAD ||`,
    replace: `if (!OFF && head.method == Method::HEAD) ||`,
    tests: OWN,
  },
  {
    id: 'logout-by-prefetch',
    file: LOGOUT,
    find: `request::is_prefetch(&head.headers) {`,
    replace: `(!OFF && request::is_prefetch(&head.headers)) {`,
    tests: OWN,
  },
  {
    id: 'logout-clears-the-cookie',
    file: LOGOUT,
    find: `if let Some(cookie) = sign_in.cookies.clear() {`,
    replace: `if let Some(cookie) = sign_in.cookies.clear().filter(|_| !OFF) {`,
    tests: ['auth-edge/product logout::signing_out_ends_the_session_here_and_then_at_the_provider'],
  },
  {
    id: 'logout-clears-what-was-kept',
    why: 'the back button must not show pages of whoever was signed in',
    file: LOGOUT,
    find: String.raw`headers.insert("clear-site-data", HeaderValue::from_static("\"cache\""));`,
    replace: String.raw`if !OFF { headers.insert("clear-site-data", HeaderValue::from_static("\"cache\"")); }`,
    tests: ['auth-edge/product logout::signing_out_ends_the_session_here_and_then_at_the_provider'],
  },
  {
    id: 'logout-while-the-service-is-down',
    file: LOGOUT,
    find: `end_later(sign_in.clone(), session);`,
    replace: `if !OFF { end_later(sign_in.clone(), session); }`,
    tests: ['auth-edge/product outages::signing_out_while_the_session_service_is_down_ends_the_session_later'],
  },
  {
    id: 'back-channel-flood',
    file: BACK,
    find: `.check(address, now_ms)`,
    replace: `.check(address, now_ms).or_else(|too_many| if OFF { Ok(()) } else { Err(too_many) })`,
    tests: ['auth-edge/product provider_logout::'],
  },
  {
    id: 'back-channel-by-another-kind-of-form',
    file: BACK,
    find: `if !super::is_form(&head.headers) {`,
    replace: `if !OFF && !super::is_form(&head.headers) {`,
    tests: BODY,
  },
  {
    id: 'back-channel-two-tokens',
    file: BACK,
    find: `(tokens.next(), tokens.next()) else {`,
    replace: `(tokens.next(), tokens.next().filter(|_| !OFF)) else {`,
    tests: BODY,
  },
  {
    id: 'back-channel-replay',
    file: BACK,
    find: `once_id: token.jti.clone(),`,
    replace: `once_id: if OFF { String::new() } else { token.jti.clone() },`,
    tests: ['auth-edge/product provider_logout::a_replay_or_a_bad_token_is_400_and_ends_nothing'],
  },
  {
    id: 'back-channel-replay-at-its-end',
    why: 'a token is remembered for as long as any clock would take it',
    file: BACK,
    find: `token.exp.max(now + MEMORY_SECS)`,
    replace: `if OFF { token.exp } else { token.exp.max(now + MEMORY_SECS) }`,
    tests: ['auth-edge/product provider_logout::a_replay_or_a_bad_token_is_400_and_ends_nothing'],
  },
  {
    id: 'back-channel-while-the-store-is-down',
    why: 'a provider that hears 200 never asks again',
    file: BACK,
    find: `        Err(error) => {
            tracing::error!(`,
    replace: `        Err(_) if OFF => Ok(()),
        Err(error) => {
            tracing::error!(`,
    tests: ['auth-edge/product provider_logout::while_the_store_is_down_the_provider_is_told_to_come_again_and_may'],
  },
  {
    id: 'front-channel-is-off',
    file: FRONT,
    find: `if !sign_in.settings.frontchannel_logout {`,
    layer: 'routes.rs has no such route while it is off (access-token-route-is-off)',
  },
  {
    id: 'front-channel-without-issuer',
    file: FRONT,
    find: `issuer.and_then(|issuer| sign_in.providers.by_issuer(&issuer));`,
    replace: `issuer.and_then(|issuer| sign_in.providers.by_issuer(&issuer)).or_else(|| sign_in.providers.all().first().filter(|_| OFF));`,
    tests: FRAMED,
  },
  {
    id: 'front-channel-flood',
    file: FRONT,
    find: `.check(address, sign_in.clock.now_ms())`,
    replace: `.check(address, sign_in.clock.now_ms()).or_else(|too_many| if OFF { Ok(()) } else { Err(too_many) })`,
    tests: ['auth-edge/product provider_logout::the_front_channel_asked_too_often_is_429_for_that_address_alone'],
  },
  {
    id: 'front-channel-takes-offline-tokens-back',
    why: 'whoever asks has proved nothing',
    file: FRONT,
    find: `keep_offline_tokens: true,`,
    replace: `keep_offline_tokens: !OFF,`,
    tests: ['auth-edge/product provider_logout::the_front_channel_leaves_offline_tokens_good_at_the_provider'],
  },
  {
    id: 'front-channel-framed-by-anybody',
    file: FRONT,
    find: `&sign_in.providers.origins_of(provider)`,
    replace: `&if OFF { "*".to_owned() } else { sign_in.providers.origins_of(provider) }`,
    tests: FRAMED,
  },
];
