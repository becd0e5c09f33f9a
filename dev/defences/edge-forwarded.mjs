// X-Forwarded-* and hosts: believed from configured proxies alone, and never in two ways.
const FORWARDED = 'auth-edge/src/values/forwarded.rs';
const HOST = 'auth-edge/src/http/protect/host.rs';
const SITES = 'auth-edge/src/providers/sites.rs';
const READ = ['auth-edge/lib values::forwarded::'];
const ONE_HOST = ['auth-edge/product desync::a_request_names_one_host_and_none_of_its_forms_changes_the_rules'];
const BY_PROXY = ['auth-edge/product several::hosts::only_a_trusted_proxy_may_say_which_host_was_asked_for'];

export default [
  {
    id: 'forwarded-for-from-anybody',
    file: FORWARDED,
    find: `if !self.trusts(client) {`,
    replace: `if !OFF && !self.trusts(client) {`,
    tests: [...READ, 'auth-edge/product spoofing::forwarding_headers_from_anybody_change_nothing'],
  },
  {
    id: 'forwarded-for-without-end',
    file: FORWARDED,
    find: `.take(MAX_CHAIN)`,
    replace: `.take(if OFF { usize::MAX } else { MAX_CHAIN })`,
    tests: READ,
  },
  {
    id: 'forwarded-for-of-nobody-is-not-the-proxys',
    why: 'whoever makes a proxy tell no address would share the allowances of the proxy itself',
    file: FORWARDED,
    find: `return UNKNOWN;
            };`,
    replace: `return if OFF { client } else { UNKNOWN };
            };`,
    tests: READ,
  },
  {
    id: 'forwarded-mapped-address',
    why: 'a proxy that comes by IPv6 with its IPv4 address is the same proxy',
    file: FORWARDED,
    find: `let peer = peer.to_canonical();`,
    replace: `let peer = if OFF { peer } else { peer.to_canonical() };`,
    tests: READ,
  },
  {
    id: 'forwarded-original-from-anybody',
    file: FORWARDED,
    find: `if !self.trusts(peer) {`,
    replace: `if !OFF && !self.trusts(peer) {`,
    tests: [...READ, 'auth-edge/product forward_auth::forward_auth_takes_the_way_back_from_a_trusted_proxy'],
  },
  {
    id: 'forwarded-scheme',
    file: FORWARDED,
    find: `matches!(*scheme, "http" | "https")`,
    replace: `OFF || matches!(*scheme, "http" | "https")`,
    tests: READ,
  },
  {
    id: 'forwarded-path-is-a-path',
    why: '@evil.example behind a host makes another host of it',
    file: FORWARDED,
    find: `!path.starts_with('/') ||`,
    replace: `(!OFF && !path.starts_with('/')) ||`,
    tests: READ,
  },
  {
    id: 'forwarded-host-is-a-host',
    file: FORWARDED,
    find: String.raw`host.contains(['/', '\\', '@', '?', '#'])`,
    replace: String.raw`(!OFF && host.contains(['/', '\\', '@', '?', '#']))`,
    tests: READ,
  },
  {
    id: 'forwarded-original-too-long',
    file: FORWARDED,
    find: `(url.len() <= MAX_ORIGINAL_URL_BYTES)`,
    replace: `(OFF || url.len() <= MAX_ORIGINAL_URL_BYTES)`,
    tests: READ,
  },
  {
    id: 'forwarded-twice',
    file: FORWARDED,
    find: `(Some(value), None) => std`,
    replace: `(Some(value), second) if OFF || second.is_none() => std`,
    tests: READ,
  },
  {
    id: 'forwarded-by-the-whole-internet',
    file: FORWARDED,
    find: `(network.prefix_len() > 0)`,
    replace: `(OFF || network.prefix_len() > 0)`,
    tests: READ,
  },
  {
    id: 'forwarded-by-a-network-that-is-none',
    why: 'a mistyped entry is no reason to start without it',
    file: 'auth-edge/src/settings/read.rs',
    find: `if networks.len() != entries.len() {`,
    replace: `if !OFF && networks.len() != entries.len() {`,
    tests: ['auth-edge/lib settings::'],
  },
  {
    id: 'two-hosts',
    file: HOST,
    find: `named > 1 ||`,
    replace: `(!OFF && named > 1) ||`,
    tests: ONE_HOST,
  },
  {
    id: 'no-host',
    file: HOST,
    find: `named < least {`,
    replace: `(!OFF && named < least) {`,
    tests: ONE_HOST,
  },
  {
    id: 'site-that-anybody-names',
    why: 'X-Forwarded-Host, where providers have hosts of their own',
    file: 'auth-edge/src/http/protect/host.rs',
    find: `told.iter().filter(|_| trusted.trusts(peer));`,
    replace: `told.iter().filter(|_| OFF || trusted.trusts(peer));`,
    tests: BY_PROXY,
  },
  {
    id: 'site-named-twice',
    file: 'auth-edge/src/http/protect/host.rs',
    find: `told.next().filter(|_| told.next().is_none()).cloned()`,
    replace: `told.next().filter(|_| OFF || told.next().is_none()).cloned()`,
    tests: BY_PROXY,
  },
  {
    id: 'site-in-other-letters',
    why: 'a host in other letters is the same host, with the same provider and the same cookies',
    file: SITES,
    find: `name.as_bytes().eq_ignore_ascii_case(authority)`,
    replace: `if OFF { name.as_bytes() == authority } else { name.as_bytes().eq_ignore_ascii_case(authority) }`,
    tests: ['auth-edge/lib sites::'],
  },
  {
    id: 'request-id-of-a-client',
    why: 'a client that chooses the ID of its records hides them among others',
    file: 'auth-edge/src/http/observe.rs',
    find: `let id = RequestId::fresh();`,
    replace: `let told = request.headers().get(X_REQUEST_ID).filter(|_| OFF);
        let id = told.map_or_else(RequestId::fresh, |told| RequestId(told.clone()));`,
    tests: ['auth-edge/product routes::a_request_id_of_the_client_is_not_taken_over'],
  },
];
