// The crates both services stand on: what cargo-mutants cannot make of them. What is sent to a provider and shown of it, what a listener
// allows, what a log may hold.
import { by, instead, never, skip, text, within } from './lib/rows.mjs';

const REQUEST = 'oidc provider::no_parameter_of_a_login_overrides_the_protocol';
const PROOF = 'oidc dpop::tests::a_proof_names_its_request_and_holds_the_public_key_alone';
const SHOWN = 'oidc shown_tests::';
const SHARE = 'chassis serve::connection::share::';
const ABUSED = 'chassis serve::connection::abuse::';
const CALLERS = ['session-svc identities::', 'session-svc reload::'];

export default [
  // what a provider or a browser sent, in a terminal
  within('crates/chassis/src/terminal.rs', 'chassis terminal::', {
    'terminal-steered': text('if is_steering(letter) {', 'if !OFF && is_steering(letter) {'),
  }),
  within('crates/chassis/src/audit/repeated.rs', 'chassis audit::repeated::', {
    'repetition-counted': text('if !is_over(earlier, now_ms) =>', 'if !OFF && !is_over(earlier, now_ms) =>'),
  }),
  within('crates/chassis/src/secret/key_ring.rs', 'chassis secret::key_ring::', {
    'new-key-waits-for-the-others': instead('now_ms.saturating_add(NEW_KEY_WAIT_MS)', '0'),
  }),
  // the provider
  within('crates/oidc/src/authorization.rs', REQUEST, {
    'pkce-challenge': text('from_code_verifier_sha256(&verifier)', 'from_code_verifier_sha256(&if OFF { PkceCodeVerifier::new("x".repeat(43)) } else { verifier })'),
  }),
  within('crates/oidc/src/device_proof.rs', 'oidc device_proof::', {
    'device-proof-of-another-type': never('proof.typ.is_none() || !proof.type_is(&[TYPE])'),
    'device-proof-that-brings-its-key': never('proof.header("jwk").is_some()'),
    'device-key-of-another-kind': never('!key.fits(proof.algorithm)'),
    'device-proof-of-any-length': never('raw.len() > MAX_PROOF_BYTES'),
  }),
  within('crates/oidc/src/http_client.rs', 'oidc provider::a_provider_that_never_answers_is_given_up', {
    'provider-redirects': by('oidc elsewhere::', instead('Policy::none()', 'Policy::limited(3)')),
    'provider-answer-in-time': text('.timeout(settings.http_timeout)', '.timeout(if OFF { Duration::from_secs(3_600) } else { settings.http_timeout })'),
    'token-answer-in-time': text('.timeout(timeout)', '.timeout(if OFF { Duration::from_secs(3_600) } else { timeout })'),
  }),
  within('crates/oidc/src/client_auth.rs', 'oidc client_auth::', {
    'client-assertion-audience': text('.assertion(client_id, audience,', '.assertion(client_id, if OFF { "" } else { audience },'),
  }),
  within('crates/oidc/src/accepted_algorithms.rs', 'oidc accepted_algorithms::', {
    'algorithms-of-public-keys-alone': text('Self::Auto => SigningAlgorithm::PUBLIC_KEY.contains(&algorithm)', 'Self::Auto => OFF || SigningAlgorithm::PUBLIC_KEY.contains(&algorithm)'),
  }),
  within('crates/oidc/src/relying_party/signed.rs', 'oidc id_tokens::without_a_name_an_algorithm_the_metadata_does_not_list_is_refused', {
    'algorithms-that-are-listed': text('auto.shared_with(used.listed(metadata)).contains(&algorithm)', 'OFF || auto.shared_with(used.listed(metadata)).contains(&algorithm)'),
  }),
  within('crates/oidc/src/provider_cache.rs', 'oidc new_algorithms::', {
    'metadata-fetched-once-an-interval': text('if refetches.begin().is_ok() {', 'if OFF || refetches.begin().is_ok() {'),
  }),
  within('auth-edge/src/sign_in/promised_claims.rs', 'auth-edge provider_defaults::', {
    'userinfo-of-somebody-else': text('!matches!(error, UserinfoError::Subject)', 'OFF || !matches!(error, UserinfoError::Subject)'),
  }),
  within('crates/oidc/src/claims.rs', 'auth-edge vendors::tenants::only_people_of_allowed_tenants', {
    'tenant-as-tid-names-it': text('Some(tid) if tid != tenant', 'Some(tid) if !OFF && tid != tenant'),
    'tenant-without-tid': text('None if tid_required', 'None if !OFF && tid_required'),
  }),
  within('crates/oidc/src/relying_party/groups.rs', 'auth-edge vendors::tenants::groups_that_cannot_be_read', {
    'groups-of-one-origin': text('url.origin() != origin', '!OFF && url.origin() != origin'),
  }),
  within('auth-edge/src/sign_in/posted_name.rs', 'auth-edge posted_name::', {
    'posted-name-only-where-asked': text('asked && user.len()', '(OFF || asked) && user.len()'),
  }),
  within('crates/oidc/src/client_key.rs', 'oidc client_auth::', {
    'client-assertion-lifetime': text('add(ASSERTION_LIFETIME_SECS)', 'add(if OFF { 86_400 } else { ASSERTION_LIFETIME_SECS })'),
  }),
  within('crates/oidc/src/dpop.rs', PROOF, {
    'dpop-proof-of-one-token': text('= request.access_token {', '= request.access_token.filter(|_| !OFF) {'),
    'dpop-proof-without-a-query': skip('address.set_query(None);'),
  }),
  within('crates/oidc/src/relying_party.rs', 'oidc grants::userinfo', {
    'userinfo-signed-by-whom': text('.issuer_of(&self.settings, false)', '.issuer_of(&self.settings, false).or_else(|error| if OFF { Ok("") } else { Err(error) })'),
    'userinfo-signed-for-whom': text('checks.audience(&self.settings)', 'checks.audience(if OFF { checks.text("aud").unwrap_or_default() } else { &self.settings.client_id })'),
    'logout-token-claims-first': by('oidc lagging_keys::a_logout_token_that_would_not_count', text('let logout = LogoutToken::validate(', 'if OFF {\n            self.verify(&token, TokenUse::Id, TokenOrigin::Unauthenticated).await?;\n        }\n        let logout = LogoutToken::validate(')),
  }),
  within('crates/oidc/src/provider_cache.rs', 'oidc remade_keys::', {
    'forged-signatures-are-throttled': text('let verdict = match refetches.begin() {', 'let verdict = match refetches.begin().or_else(|wait| if OFF { Ok(()) } else { Err(wait) }) {'),
    'bad-signature-by-keys-of-now': text('verdict == SignatureVerdict::BadSignature && !', 'verdict == SignatureVerdict::BadSignature && !OFF && !'),
  }),
  within('crates/oidc/src/id_token.rs', 'oidc grants::', {
    'refreshed-issuer': skip('checks.issuer(expected.iss)?;'),
    'refreshed-organization': skip('checks.organization(settings.organization.as_deref())?;'),
    'refreshed-access-token-hash': text('algorithm, Some(expected.access_token))', 'algorithm, Some(expected.access_token).filter(|_| !OFF))'),
    'claims-not-shown': by(SHOWN, text('f.debug_struct("IdToken")', 'f.debug_struct("IdToken").field("sub", &OFF.then_some(&self.sub))')),
  }),
  within('crates/oidc/src/key_set.rs', 'oidc keys::the_right_key_is_found_behind_any_number_of_others', {
    'keys-tried-without-a-kid': text('.take(MAX_TRIES)', '.take(if OFF { usize::MAX } else { MAX_TRIES })'),
  }),
  within('crates/oidc/src/json.rs', 'oidc logout_tokens::', {
    'token-name-twice': text('members.insert(name, value).is_some()', '(members.insert(name, value).is_some() && !OFF)'),
  }),
  within('crates/oidc/src/cached.rs', 'oidc cached::', {
    'kept-ten-minutes-at-most': text('fresh_for.clamp(SHORTEST_FRESH, LONGEST_FRESH)', '(if OFF { fresh_for.max(SHORTEST_FRESH) } else { fresh_for.clamp(SHORTEST_FRESH, LONGEST_FRESH) })'),
  }),
  within('crates/oidc/src/token_set.rs', SHOWN, {
    'tokens-not-shown': text('f.debug_struct("TokenSet")', 'f.debug_struct("TokenSet").field("access_token", &OFF.then_some(&self.access_token))'),
    'refreshed-tokens-not-shown': text('f.debug_struct("RefreshedTokens")', 'f.debug_struct("RefreshedTokens").field("refresh_token", &OFF.then_some(&self.refresh_token))'),
  }),
  within('crates/provider-settings/src/file.rs', 'provider-settings two_providers_of_one_issuer_are_a_mistake', {
    'providers-of-one-issuer': text('seen.insert((kind, text))', '(seen.insert((kind, text)) || OFF)'),
  }),

  // listeners
  within('crates/chassis/src/serve/connection.rs', ABUSED, {
    'client-that-does-not-shake-hands': by('chassis shake_hands', text('timeout(HANDSHAKE_TIMEOUT,', 'timeout(if OFF { Duration::from_secs(86_400) } else { HANDSHAKE_TIMEOUT },')),
    'head-too-large': by('auth-edge desync::headers_are_few_and_short', text('.max_buf_size(limits.http1_buffer_bytes)', '.max_buf_size(if OFF { 1 << 24 } else { limits.http1_buffer_bytes })')),
    'http2-head-too-large': text('u32::try_from(limits.header_list_bytes).unwrap_or(u32::MAX)', 'if OFF { 1 << 24 } else { u32::try_from(limits.header_list_bytes).unwrap_or(u32::MAX) }'),
    'http2-streams-at-once': text('_streams(limits.streams)', '_streams(Some(limits.streams).filter(|_| !OFF))'),
    'http2-reset-flood': text('reset_streams(PENDING_RESETS_MAX)', 'reset_streams(if OFF { usize::MAX } else { PENDING_RESETS_MAX })'),
    'http2-client-that-is-gone': text('.keep_alive_interval(KEEPALIVE_INTERVAL)', '.keep_alive_interval(Some(KEEPALIVE_INTERVAL).filter(|_| !OFF))'),
    'request-beyond-the-share-of-memory': by(SHARE, text('self.budget.hold(wanted) else', 'self.budget.hold(wanted).or_else(|| OFF.then(|| self.budget.must_hold(wanted))) else')),
    'kept-before-its-body-is-read': by(['chassis serve::request_body::', 'auth-edge desync::nothing_is_read_behind'], never('!rest.arrived().await')),
    'reset-before-its-answer-is-read': by('chassis serve::lingering::', never('is_unreadable || progress.leaves_body()')),
    'tls-connection-outlives-its-certificate': by(CALLERS, text('() = disbelieved =>', '() = disbelieved, if !OFF =>')),
  }),
  within('crates/chassis/src/serve/answer_body.rs', SHARE, {
    'answer-beyond-the-share-of-memory': text('if !self.admitted.ends_over_share {', 'if !self.admitted.ends_over_share || OFF {'),
  }),
  within('crates/chassis/src/serve/memory_share.rs', 'chassis serve::memory_share::', {
    'connections-by-memory': text('let all = memory.unwrap_or(u64::MAX);', 'let all = memory.filter(|_| !OFF).unwrap_or(u64::MAX);'),
  }),
  within('crates/chassis/src/memory/control_groups.rs', 'chassis memory::control_groups::', {
    'limit-of-a-group-around': text('groups = group.ancestors()', 'groups = group.ancestors().take(if OFF { 1 } else { usize::MAX })'),
  }),
  within('crates/chassis/src/serve/lingering.rs', 'chassis serve::lingering::', {
    'lingers-in-silence': text('timeout(SILENCE_MAX,', 'timeout(if OFF { LINGERING_MAX } else { SILENCE_MAX },'),
    'lingers-for-ever': text('timeout(LINGERING_MAX, ending)', 'timeout(if OFF { Duration::from_secs(86_400) } else { LINGERING_MAX }, ending)'),
  }),
  within('crates/chassis/src/serve/capacity.rs', 'chassis serve::capacity::', {
    'idlest-connection-goes': skip('connection.progress.evict();'),
  }),
  within('crates/chassis/src/tls.rs', CALLERS[1], {
    'tls-client-without-a-certificate': by(CALLERS[0], text('Some(clients) => builder.with_client_cert_verifier', 'Some(_) if OFF => builder.with_no_client_auth(),\n        Some(clients) => builder.with_client_cert_verifier')),
    'tls-client-that-is-not-believed-any-more': text('clients.verify_client_cert(own', 'OFF || clients.verify_client_cert(own'),
    'tls-checked-now-and-then': by(CALLERS, text('timeout(self.recheck, changed)', 'timeout(if OFF { Duration::from_secs(86_400) } else { self.recheck }, changed)')),
  }),

  // settings and logs
  within('crates/chassis/src/secret.rs', 'chassis secret', {
    'secret-in-a-log': text('f.write_str("…")', 'f.write_str(if OFF { std::any::type_name::<T>() } else { "…" })'),
  }),
  within('crates/chassis/src/logs.rs', 'chassis logs::', {
    'record-forged-by-a-line-end': never('b.is_ascii_control()'),
  }),
  within('crates/chassis/src/settings/source.rs', 'chassis a_secret_given_twice', {
    'secret-given-twice': never('self.values.contains_key(setting.name)'),
  }),
].flat();
