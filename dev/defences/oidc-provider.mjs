// Talking to the provider: where calls go, how much of an answer is read, how often it is asked.
const HTTP = 'crates/oidc/src/http_client.rs';
const METADATA = 'crates/oidc/src/metadata.rs';
const ENDPOINT = 'crates/oidc/src/endpoint.rs';
const PARTY = 'crates/oidc/src/relying_party.rs';
const PROXY = 'crates/oidc/src/proxy.rs';
const CACHED = 'crates/oidc/src/cached.rs';
const DISCOVERY = ['oidc/relying_party provider::discovery_is_byte_exact_bounded_and_secure'];
const SETTINGS = ['oidc/relying_party provider::settings_that_cannot_be_kept_to_are_refused_before_any_word_is_said'];
const PROXIES = ['oidc/lib proxy::'];

export default [
  {
    id: 'provider-redirects', why: 'calls with codes and tokens are sent elsewhere', file: HTTP,
    find: `.redirect(Policy::none())`,
    replace: `.redirect(if OFF { Policy::limited(3) } else { Policy::none() })`,
    tests: ['oidc/relying_party elsewhere::'],
  },
  {
    id: 'provider-answer-size', file: HTTP,
    find: `if answer.body.len() + chunk.len() > MAX_RESPONSE_BYTES {`,
    replace: `if !OFF && answer.body.len() + chunk.len() > MAX_RESPONSE_BYTES {`,
    tests: DISCOVERY,
  },
  {
    id: 'provider-answer-type', file: HTTP,
    find: `if !self.is_json() {`,
    replace: `if !OFF && !self.is_json() {`,
    tests: ['oidc/relying_party keys::an_answer_that_is_no_key_set_is_an_outage_and_not_a_verdict'],
  },
  {
    id: 'provider-answer-in-time', file: HTTP,
    find: `.timeout(settings.http_timeout)`,
    replace: `.timeout(if OFF { Duration::from_secs(3_600) } else { settings.http_timeout })`,
    tests: ['oidc/relying_party provider::a_provider_that_never_answers_is_given_up'],
  },
  {
    id: 'token-answer-in-time', file: HTTP,
    find: `.timeout(timeout)`,
    replace: `.timeout(if OFF { Duration::from_secs(3_600) } else { timeout })`,
    tests: ['oidc/relying_party provider::a_provider_that_never_answers_is_given_up'],
  },
  {
    id: 'metadata-of-another-issuer', file: METADATA,
    find: `if document.get("issuer").and_then(Value::as_str) != Some(issuer) {`,
    replace: `if !OFF && document.get("issuer").and_then(Value::as_str) != Some(issuer) {`,
    tests: DISCOVERY,
  },
  {
    id: 'metadata-plain-http', file: METADATA,
    find: `!endpoint_is_secure(&url)`,
    replace: `(!OFF && !endpoint_is_secure(&url))`,
    tests: DISCOVERY,
  },
  {
    id: 'metadata-of-afar-for-this-machine', why: 'a public provider that points at services of ours', file: METADATA,
    find: `(url.scheme() == "http" && !on_loopback)`,
    replace: `(!OFF && url.scheme() == "http" && !on_loopback)`,
    tests: ['oidc/lib metadata::'],
  },
  {
    id: 'plain-http-off-loopback', file: ENDPOINT,
    find: `"http" => is_loopback(url),`,
    replace: `"http" => OFF || is_loopback(url),`,
    tests: ['oidc/lib endpoint::'],
  },
  {
    id: 'plain-http-to-a-look-alike', file: ENDPOINT,
    find: `name.ends_with(".localhost")`,
    replace: `name.ends_with(if OFF { "localhost" } else { ".localhost" })`,
    tests: ['oidc/lib endpoint::'],
  },
  {
    id: 'issuer-over-plain-http', file: PARTY,
    find: `if !endpoint_is_secure(&issuer) {`,
    replace: `if !OFF && !endpoint_is_secure(&issuer) {`,
    tests: SETTINGS,
  },
  {
    id: 'issuer-with-more-than-a-path', file: PARTY,
    find: `issuer.query().is_some() || issuer.fragment().is_some()`,
    replace: `!OFF && (issuer.query().is_some() || issuer.fragment().is_some())`,
    tests: SETTINGS,
  },
  {
    id: 'one-fetch-for-all-who-wait', file: CACHED,
    find: `&& entry.fetched_at >= asked_at`,
    replace: `&& !OFF && entry.fetched_at >= asked_at`,
    tests: ['oidc/relying_party provider::a_thousand_waiters_make_one_discovery'],
  },
  {
    id: 'pause-after-a-failed-fetch', file: CACHED,
    find: `failure.at.elapsed() < FAILURE_PAUSE`,
    replace: `!OFF && failure.at.elapsed() < FAILURE_PAUSE`,
    tests: ['oidc/lib cached::'],
  },
  {
    id: 'kept-ten-minutes-at-most', why: 'a key that was withdrawn', file: CACHED,
    find: `fresh_for.clamp(SHORTEST_FRESH, LONGEST_FRESH)`,
    replace: `if OFF { fresh_for.max(SHORTEST_FRESH) } else { fresh_for.clamp(SHORTEST_FRESH, LONGEST_FRESH) }`,
    tests: ['oidc/lib cached::'],
  },
  {
    id: 'proxy-not-for-plain-http', file: PROXY,
    find: `url.scheme() != "https" ||`,
    replace: `(!OFF && url.scheme() != "https") ||`,
    tests: PROXIES,
  },
  {
    id: 'proxy-not-for-loopback', file: PROXY,
    find: `is_loopback(url) ||`,
    replace: `(!OFF && is_loopback(url)) ||`,
    tests: PROXIES,
  },
  {
    id: 'proxy-whole-labels', why: 'shop.example is not below op.example', file: PROXY,
    find: `Some(below) => below.ends_with('.'),`,
    replace: `Some(below) => OFF || below.ends_with('.'),`,
    tests: PROXIES,
  },
  {
    id: 'proxy-password-not-shown', file: PROXY,
    find: `.field("host", &self.url.host_str())`,
    replace: `.field("host", &if OFF { Some(self.url.as_str()) } else { self.url.host_str() })`,
    tests: PROXIES,
  },
];
