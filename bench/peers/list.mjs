// Proxies with sessions that Debian or PyPI has. Each is set up as its own documentation says, for the same provider, account and
// length of answer, with PKCE, keep-alive on and an access log off. Debian 12, npm, PyPI and crates.io have none of oauth2-proxy,
// Pomerium, Authelia, Vouch and lua-resty-openidc.
import { spawnSync } from 'node:child_process';

import { prepareApache, startApache } from './apache.mjs';
import { envoyVersion, prepareEnvoy, startEnvoy } from './envoy.mjs';

/** Versions of Debian packages, as one text. */
const fromDebian = (...names) => () => names.map((name) => spawnSync('dpkg-query', ['-W', '-f', '${Package} ${Version}', name], { encoding: 'utf8' }).stdout).join(', ');

const apache = (id, kind, where, redis) => ({
  id, label: `Apache, ${where}`, what: `Apache with mod_auth_openidc, sessions in ${where}`, redis, prepare: prepareApache,
  start: (options) => startApache(kind, options), version: fromDebian('apache2-bin', 'libapache2-mod-auth-openidc'),
});

/**
 * id, label, what: of its rows; redis: whether it is given a Redis of its own; prepare(say): installs it or throws the reason why
 * not; start(options): see apache.mjs; version(): of the programs, as a text.
 */
export const PEERS = [
  apache('apache', 'redis', 'Redis', true),
  apache('apache shm', 'shm', 'shared memory'),
  apache('apache cookie', 'cookie', 'cookies'),
  { id: 'envoy', label: 'Envoy, cookies', what: 'Envoy with its OAuth2 filter, tokens in cookies, no ID token read', prepare: prepareEnvoy, start: startEnvoy, version: envoyVersion },
];

/** Installs what is missing. What cannot be installed is told by the line, which asks again. */
export async function preparePeers(say) {
  for (const peer of PEERS) await peer.prepare(say).catch(() => {});
}
