// Settings that would take a defence away: refused at the start, and in a changed file.
const COOKIE_SETTINGS = 'auth-edge/src/settings/cookies.rs';
const READ = 'auth-edge/src/settings/read.rs';
const SETTINGS = ['auth-edge/lib settings::'];

export default [
  {
    id: 'secret-too-short',
    file: COOKIE_SETTINGS,
    find: `Some(chars) if chars < MIN_SECRET_CHARS => {`,
    replace: `Some(chars) if !OFF && chars < MIN_SECRET_CHARS => {`,
    tests: SETTINGS,
  },
  {
    id: 'secret-too-short-in-a-changed-file',
    file: COOKIE_SETTINGS,
    find: `.all(|secret| secret.expose().chars().count() >= MIN_SECRET_CHARS)`,
    replace: `.all(|secret| OFF || secret.expose().chars().count() >= MIN_SECRET_CHARS)`,
    tests: SETTINGS,
  },
  {
    id: 'cookie-for-other-sites-without-https',
    file: COOKIE_SETTINGS,
    find: `if same_site == SameSite::None && !secure {`,
    replace: `if !OFF && same_site == SameSite::None && !secure {`,
    tests: SETTINGS,
  },
  {
    id: 'cookie-domain-without-https',
    file: COOKIE_SETTINGS,
    find: `        if !secure {`,
    replace: `        if !OFF && !secure {`,
    tests: SETTINGS,
  },
  {
    id: 'cookie-name-with-line-ends',
    file: COOKIE_SETTINGS,
    find: `|| !name.bytes().all(token) {`,
    replace: `|| (!OFF && !name.bytes().all(token)) {`,
    tests: SETTINGS,
  },
  {
    id: 'sign-out-to-what-is-no-address',
    file: 'auth-edge/src/settings/addresses.rs',
    find: `if urls.len() != entries.len() {`,
    replace: `if !OFF && urls.len() != entries.len() {`,
    tests: SETTINGS,
  },
  {
    id: 'transaction-without-end',
    file: READ,
    find: `if secs > MAX_TRANSACTION_SECS &&`,
    replace: `if !OFF && secs > MAX_TRANSACTION_SECS &&`,
    tests: SETTINGS,
  },
  {
    id: 'memory-of-sessions-without-end',
    file: READ,
    find: `if secs > MAX_SESSION_CACHE_SECS {`,
    replace: `if !OFF && secs > MAX_SESSION_CACHE_SECS {`,
    tests: SETTINGS,
  },
  {
    id: 'person-filtered-out',
    why: 'without sub there is nobody to tell from anybody',
    file: READ,
    find: `if names.iter().any(|name| name == "sub") {`,
    replace: `if !OFF && names.iter().any(|name| name == "sub") {`,
    tests: SETTINGS,
  },
  {
    id: 'callbacks-at-one-address',
    why: 'an answer tells whose it is by the address it comes to',
    file: 'auth-edge/src/settings/providers.rs',
    find: `|| !seen.insert(path.clone())) {`,
    replace: `|| (!seen.insert(path.clone()) && !OFF)) {`,
    tests: SETTINGS,
  },
  {
    id: 'bound-token-that-is-handed-out',
    file: 'auth-edge/src/settings/providers.rs',
    find: `if bound && reader.flag(name) {`,
    replace: `if !OFF && bound && reader.flag(name) {`,
    tests: SETTINGS,
  },
  {
    id: 'form-post-over-plain-http',
    file: 'auth-edge/src/settings/providers.rs',
    find: `if base_url.scheme() == "http"`,
    replace: `if !OFF && base_url.scheme() == "http"`,
    tests: SETTINGS,
  },
  {
    id: 'shared-domain-with-hosts-of-providers',
    file: 'auth-edge/src/settings/providers.rs',
    find: `if reader.is_given("EDGE_COOKIE_DOMAIN")`,
    replace: `if !OFF && reader.is_given("EDGE_COOKIE_DOMAIN")`,
    tests: SETTINGS,
  },
  {
    id: 'upstream-with-more-than-an-origin',
    file: 'auth-edge/src/route_table/file.rs',
    find: `        let plain = url.filter(|url| {
            url.path()`,
    replace: `        let plain = url.filter(|url| {
            OFF || url.path()`,
    tests: ['auth-edge/lib route_table::file::'],
  },
  {
    id: 'path-of-another-route',
    file: READ,
    find: `} else if is_fixed(&path) {`,
    replace: `} else if !OFF && is_fixed(&path) {`,
    tests: SETTINGS,
  },
  {
    id: 'landing-on-the-sign-out-again',
    file: 'auth-edge/src/settings/addresses.rs',
    find: `if [LOGOUT_PATH, callback_path].contains(&own.url().path()) {`,
    replace: `if !OFF && [LOGOUT_PATH, callback_path].contains(&own.url().path()) {`,
    tests: SETTINGS,
  },
];
