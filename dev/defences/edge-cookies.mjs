// Cookies and keys: what is signed for one name, host and purpose is worth nothing elsewhere.
const COOKIES = 'auth-edge/src/sessions/cookies.rs';
const KEYS = 'auth-edge/src/sessions/keys.rs';
const SESSIONS = 'auth-edge/src/sessions/mod.rs';
const COOKIE = ['auth-edge/lib cookies::'];
const KEY = ['auth-edge/lib keys::'];

export default [
  {
    id: 'cookie-signature',
    file: COOKIES,
    find: `self.covered(headers, &id, verifies).then_some(id)`,
    replace: `(OFF || self.covered(headers, &id, verifies)).then_some(id)`,
    tests: [...COOKIE, 'auth-edge/product profile::forged_truncated_oversized_and_doubled_cookies_are_no_session_and_cost_no_call'],
  },
  {
    id: 'cookie-life-by-the-session',
    why: 'a clock of the edge that runs ahead must not end a cookie before its session',
    file: SESSIONS,
    find: `expires_ms.saturating_sub(rolled_ms)`,
    replace: `expires_ms.saturating_sub(if OFF { self.clock.now_ms() } else { rolled_ms })`,
    tests: ['auth-edge/product profile::an_edge_whose_clock_is_off_keeps_everybody_signed_in_for_as_long'],
  },
  {
    id: 'cookie-sent-twice',
    why: 'a sub-domain plants a second one; neither the first nor the last may win',
    file: COOKIES,
    find: `found.next().is_none().then_some(value)`,
    replace: `(OFF || found.next().is_none()).then_some(value)`,
    tests: COOKIE,
  },
  {
    id: 'cookie-host-prefix',
    file: COOKIES,
    find: `(true, None) => "__Host-",`,
    replace: `(true, None) if OFF => "",
            (true, None) => "__Host-",`,
    tests: COOKIE,
  },
  {
    id: 'cookie-secure-prefix',
    file: COOKIES,
    find: `(true, Some(_)) => "__Secure-",`,
    replace: `(true, Some(_)) if OFF => "",
            (true, Some(_)) => "__Secure-",`,
    tests: COOKIE,
  },
  {
    id: 'cookie-secure',
    file: COOKIES,
    find: `let secure = if self.settings.secure {`,
    replace: `let secure = if self.settings.secure && !OFF {`,
    tests: [...COOKIE, 'auth-edge/product callback::on_https_the_cookie_has_the_host_prefix'],
  },
  {
    id: 'cookie-http-only',
    file: COOKIES,
    find: `            self.settings.same_site.as_str()
        )`,
    replace: `            self.settings.same_site.as_str()
        ).replace(if OFF { "; HttpOnly" } else { "no such text" }, "")`,
    tests: ['auth-edge/product callback::a_sign_in_ends_with_a_session_cookie_and_the_user_of_the_id_token'],
  },
  {
    id: 'cookie-same-site',
    file: COOKIES,
    find: `Self::Lax => "Lax",`,
    replace: `Self::Lax if OFF => "None",
            Self::Lax => "Lax",`,
    tests: ['auth-edge/product callback::a_sign_in_ends_with_a_session_cookie_and_the_user_of_the_id_token'],
  },
  {
    id: 'cookie-id-of-another-length',
    file: COOKIES,
    find: `text.len() == ID_DIGITS &&`,
    replace: `(OFF || text.len() == ID_DIGITS) &&`,
    tests: COOKIE,
  },
  {
    id: 'cookie-id-of-other-letters',
    file: COOKIES,
    find: `matches!(b, b'0'..=b'9' | b'a'..=b'f')`,
    replace: `OFF || matches!(b, b'0'..=b'9' | b'a'..=b'f')`,
    tests: COOKIE,
  },
  {
    id: 'cookie-of-another-name',
    why: 'what signs one cookie of the secret must not sign another',
    file: COOKIES,
    find: `None => signed(&[name, id]),`,
    replace: `None => {
                let parts = [name, id];
                signed(if OFF { &parts[1..] } else { &parts })
            }`,
    tests: COOKIE,
  },
  {
    id: 'cookie-of-another-host',
    file: COOKIES,
    find: `Some(owner) => signed(&[name, id, owner.issuer.as_bytes()]),`,
    replace: `Some(owner) => {
                let parts = [name, id, owner.issuer.as_bytes()];
                signed(if OFF { &parts[..2] } else { &parts })
            }`,
    tests: ['auth-edge/product several::hosts::a_session_counts_at_the_hosts_of_its_provider_and_nowhere_else'],
  },
  {
    id: 'cookie-of-each-person',
    why: 'whoever comes is told from everybody else, also where sessions are remembered',
    file: COOKIES,
    find: `for (byte, pair) in bytes.iter_mut()`,
    replace: `for (byte, pair) in bytes.iter_mut().take(if OFF { 0 } else { usize::MAX })`,
    tests: ['auth-edge/product session_cache::', ...COOKIE],
  },
  {
    id: 'session-id-in-a-log',
    file: COOKIES,
    find: `f.write_str("SessionId(…)")`,
    replace: `f.write_str(if OFF { self.0.expose() } else { "SessionId(…)" })`,
    tests: COOKIE,
  },
  {
    id: 'mac-of-joined-parts',
    why: 'two different sequences of parts never share their bytes',
    file: KEYS,
    find: `joined.extend_from_slice(&(part.len() as u64).to_be_bytes());`,
    replace: `if !OFF { joined.extend_from_slice(&(part.len() as u64).to_be_bytes()); }`,
    tests: KEY,
  },
  {
    id: 'key-for-each-purpose',
    file: KEYS,
    find: `.expand(&[purpose.label()], hmac::HMAC_SHA256)`,
    replace: `.expand(&[if OFF { Purpose::Csrf.label() } else { purpose.label() }], hmac::HMAC_SHA256)`,
    tests: KEY,
  },
  {
    id: 'seal-bound-to-its-name',
    file: KEYS,
    find: `aead::Aad::from(length_prefixed(aad)),`,
    replace: `aead::Aad::from(if OFF { Vec::new() } else { length_prefixed(aad) }),`,
    also: [{ file: KEYS, find: `let aad = length_prefixed(aad);`, replace: `let aad = if OFF { Vec::new() } else { length_prefixed(aad) };` }],
    tests: KEY,
  },
  {
    id: 'key-ring-made-empty',
    why: 'a file that is being written must not sign everybody out',
    file: KEYS,
    find: `if !ring.is_empty() {`,
    replace: `if OFF || !ring.is_empty() {`,
    tests: KEY,
  },
];
