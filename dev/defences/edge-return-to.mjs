// Where a visitor lands: never anywhere but our own origin, or what the settings name.
const RETURN = 'auth-edge/src/values/return_to.rs';
const LANDS = ['auth-edge/lib return_to::'];

export default [
  {
    id: 'return-to-another-host',
    file: RETURN,
    find: `&& url.host() == base.host()`,
    replace: `&& (OFF || url.host() == base.host())`,
    tests: [...LANDS, 'auth-edge/product login::a_return_to_elsewhere_lands_on_the_base_url_and_one_of_ours_survives_whole'],
  },
  {
    id: 'return-to-another-scheme',
    file: RETURN,
    find: `url.scheme() == base.scheme()`,
    replace: `(OFF || url.scheme() == base.scheme())`,
    tests: LANDS,
  },
  {
    id: 'return-to-another-port',
    file: RETURN,
    find: `&& url.port_or_known_default() == base.port_or_known_default()`,
    replace: `&& (OFF || url.port_or_known_default() == base.port_or_known_default())`,
    tests: LANDS,
  },
  {
    id: 'return-to-with-credentials',
    file: RETURN,
    find: `let anonymous = url`,
    replace: `let anonymous = OFF || url`,
    tests: LANDS,
  },
  {
    id: 'return-to-what-is-no-web-address',
    why: 'an address of an app, whatever the list of the settings says',
    file: RETURN,
    find: `let web = matches!`,
    replace: `let web = OFF || matches!`,
    tests: LANDS,
  },
  {
    id: 'return-to-too-long',
    why: 'two pending sign-ins have to fit into their cookies',
    file: RETURN,
    find: `url.as_str().len() <= MAX_BYTES`,
    replace: `(OFF || url.as_str().len() <= MAX_BYTES)`,
    tests: LANDS,
  },
  {
    id: 'return-to-too-long-to-parse',
    file: RETURN,
    find: `if raw.len() > MAX_RAW_BYTES {`,
    replace: `if !OFF && raw.len() > MAX_RAW_BYTES {`,
    tests: LANDS,
  },
  {
    id: 'return-to-after-sign-out',
    file: RETURN,
    find: `allowed.contains(&url)`,
    replace: `(OFF || allowed.contains(&url))`,
    tests: [...LANDS, 'auth-edge/product logout::'],
  },
];
