// Beginning a sign-in: what of an address may reach the provider, and who may begin one.
const LOGIN = 'auth-edge/src/sign_in/login.rs';
const PARAMETERS = 'auth-edge/src/sign_in/login_parameters.rs';
const ASKED_FOR = ['auth-edge/lib sign_in::login_parameters::'];
const AHEAD = ['auth-edge/product login::who_only_looks_ahead_starts_nothing'];
const THIRD_PARTY = ['auth-edge/product demands::a_third_party_may_start_a_sign_in_for_our_provider_and_a_place_of_ours'];
const LIMITED = ['auth-edge/product login::logins_are_limited_per_address'];

export default [
  {
    id: 'login-by-head',
    file: LOGIN,
    find: `if head.method == Method::HEAD ||`,
    replace: `if (!OFF && head.method == Method::HEAD) ||`,
    tests: AHEAD,
  },
  {
    id: 'login-by-prefetch',
    file: LOGIN,
    find: `request::is_prefetch(&head.headers) {`,
    replace: `(!OFF && request::is_prefetch(&head.headers)) {`,
    tests: AHEAD,
  },
  {
    id: 'login-by-a-script',
    file: LOGIN,
    find: `if request::is_script(&head.headers) {
        let return_to`,
    replace: `if !OFF && request::is_script(&head.headers) {
        let return_to`,
    tests: ['auth-edge/product login::a_script_gets_json_with_the_login_url_and_no_redirect'],
  },
  {
    id: 'login-by-what-a-page-loads',
    why: 'images, frames and whatever else another site makes a browser load',
    file: LOGIN,
    find: `if !request::is_script(&head.headers) && !request::is_navigation(&head.headers) {`,
    replace: `if !OFF && !request::is_script(&head.headers) && !request::is_navigation(&head.headers) {`,
    tests: ['auth-edge/product loads::only_a_visit_starts_and_finishes_a_sign_in', ...THIRD_PARTY],
  },
  {
    id: 'callback-by-what-a-page-loads',
    file: 'auth-edge/src/sign_in/callback.rs',
    find: `if !request::is_navigation(&head.headers) {`,
    replace: `if !OFF && !request::is_navigation(&head.headers) {`,
    tests: ['auth-edge/product loads::only_a_visit_starts_and_finishes_a_sign_in'],
  },
  {
    id: 'callback-ahead-of-a-visit',
    file: 'auth-edge/src/sign_in/callback.rs',
    find: `if request::is_prefetch(&head.headers) {`,
    replace: `if !OFF && request::is_prefetch(&head.headers) {`,
    tests: ['auth-edge/product loads::only_a_visit_starts_and_finishes_a_sign_in'],
  },
  {
    id: 'redirect-to-sign-in-inside-a-frame',
    file: 'auth-edge/src/gateway/guard.rs',
    find: `request::is_navigation(request.headers) && !is_script`,
    replace: `(OFF || request::is_navigation(request.headers)) && !is_script`,
    tests: ['auth-edge/product loads::a_guarded_page_in_a_frame_sends_nobody_to_sign_in_there'],
  },
  {
    id: 'login-at-another-issuer',
    file: 'auth-edge/src/providers/mod.rs',
    find: `|one| one.issuer() == issuer, NotChosen::OtherIssuer`,
    replace: `|one| OFF || one.issuer() == issuer, NotChosen::OtherIssuer`,
    tests: THIRD_PARTY,
  },
  {
    id: 'login-at-a-host-of-another-provider',
    file: 'auth-edge/src/providers/mod.rs',
    find: `(Some(owner), Some(at)) if owner.provider != at =>`,
    replace: `(Some(owner), Some(at)) if !OFF && owner.provider != at =>`,
    tests: ['auth-edge/product several::hosts::nobody_signs_in_at_a_host_by_another_provider'],
  },
  {
    id: 'login-by-two-names-that-differ',
    why: 'the issuer a third party names and the connection it names are of one provider',
    file: 'auth-edge/src/providers/mod.rs',
    find: `if by_issuer.is_some() && asked.is_some() && by_issuer != asked {`,
    replace: `if !OFF && by_issuer.is_some() && asked.is_some() && by_issuer != asked {`,
    tests: ['auth-edge/product several::selection::'],
  },
  {
    id: 'login-flood',
    file: LOGIN,
    find: `.check(address, now_ms)`,
    replace: `.check(address, now_ms).or_else(|too_many| if OFF { Ok(()) } else { Err(too_many) })`,
    tests: LIMITED,
  },
  {
    id: 'callback-flood',
    file: 'auth-edge/src/sign_in/callback.rs',
    find: `.check(address, sign_in.clock.now_ms())`,
    replace: `.check(address, sign_in.clock.now_ms()).or_else(|too_many| if OFF { Ok(()) } else { Err(too_many) })`,
    tests: LIMITED,
  },
  {
    id: 'login-in-circles',
    why: 'a silent sign-in that found nobody is not tried again at once',
    file: LOGIN,
    find: `if wanted.silent() && sign_in.pending`,
    replace: `if !OFF && wanted.silent() && sign_in.pending`,
    tests: ['auth-edge/product demands::a_silent_sign_in_that_finds_nobody_comes_back_as_nobody_and_is_not_repeated_at_once'],
  },
  {
    id: 'wish-that-configuration-does-not-allow',
    file: PARAMETERS,
    find: `.any(|allowed| allowed == name)`,
    replace: `.any(|allowed| OFF || allowed == name)`,
    tests: ASKED_FOR,
  },
  {
    id: 'wish-for-another-organization',
    file: PARAMETERS,
    find: `"organization" if organization_is_configured => {}`,
    replace: `"organization" if !OFF && organization_is_configured => {}`,
    tests: ASKED_FOR,
  },
  {
    id: 'wish-that-does-not-fit',
    file: PARAMETERS,
    find: `.filter(|value| fits(name, value));`,
    replace: `.filter(|value| OFF || fits(name, value));`,
    tests: ASKED_FOR,
  },
  {
    id: 'wish-with-a-line-end',
    file: 'auth-edge/src/values/login_parameters.rs',
    find: `!value.chars().any(char::is_control)`,
    replace: `(OFF || !value.chars().any(char::is_control))`,
    tests: ASKED_FOR,
  },
  {
    id: 'wish-too-long',
    file: 'auth-edge/src/values/login_parameters.rs',
    find: `value.len() <= most`,
    replace: `(OFF || value.len() <= most)`,
    tests: ASKED_FOR,
  },
  {
    id: 'wish-for-less-than-is-demanded',
    file: PARAMETERS,
    find: `Some(if more { asked }`,
    replace: `Some(if more || OFF { asked }`,
    tests: ASKED_FOR,
  },
];
