// Who else keeps sessions for applications and can be had from Debian, npm or PyPI. Each is set up as its own documentation says,
// for the same provider, account and length of answer, with PKCE, keep-alive on and an access log off.
//
// Looked for and not found in Debian 12, npm, PyPI or crates.io: oauth2-proxy, Pomerium, Authelia, Vouch, and lua-resty-openidc
// with what it needs (of lua-resty-* Debian has core and lrucache alone).
import { readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';

import { Problem } from '../../dev/lib/build.mjs';
import { inReach } from '../lib/debian.mjs';
import { prepareApache, startApache } from './apache.mjs';
import { envoyVersion, prepareEnvoy, startEnvoy } from './envoy.mjs';
import { prepareExpress, startExpress } from './express.mjs';
import { prepareNext, startNext } from './next.mjs';

/** Versions of Debian packages, as one text. */
const fromDebian = (...names) => () => names.map((name) => spawnSync('dpkg-query', ['-W', '-f', '${Package} ${Version}', name], { encoding: 'utf8' }).stdout).join(', ');

/** Versions of npm packages that a folder here depends on. */
const fromNpm = (folder, ...names) => () => {
  const { dependencies } = JSON.parse(readFileSync(new URL(`${folder}package.json`, import.meta.url), 'utf8'));
  return [...names.map((name) => `${name} ${dependencies[name]}`), `node ${process.versions.node}`].join(', ');
};

/** A peer that would be measured if Debian had it. */
const absent = (id, what, name = id) => ({
  id, label: id, what,
  async prepare() {
    throw new Problem(inReach(name) ? `${name} is in reach, but is not set up by this benchmark` : `no package of Debian, npm or PyPI has ${name}`);
  },
});

const apache = (id, kind, where, redis) => ({
  id, label: `Apache, ${where}`, what: `Apache with mod_auth_openidc, sessions in ${where}`, redis, prepare: prepareApache,
  start: (options) => startApache(kind, options), version: fromDebian('apache2-bin', 'libapache2-mod-auth-openidc'),
});

const express = (id, where, redis) => ({
  id, label: `Express, ${where}`, what: `express-openid-connect, sessions in ${where}`, redis, prepare: prepareExpress, start: startExpress,
  version: fromNpm('./', 'express-openid-connect', 'express'),
});

/**
 * id, label, what: of its rows; redis: whether it is given a Redis of its own; prepare(say): installs it or throws the reason why
 * not; start(options): see apache.mjs; version(): of the programs, as a text; providerHost: what it is to call the provider's host
 * (127.0.0.1).
 */
export const PEERS = [
  apache('apache', 'redis', 'Redis', true),
  apache('apache shm', 'shm', 'shared memory'),
  apache('apache cookie', 'cookie', 'cookies'),
  { id: 'envoy', label: 'Envoy, cookies', what: 'Envoy with its OAuth2 filter, tokens in cookies, no ID token read', prepare: prepareEnvoy, start: startEnvoy, version: envoyVersion },
  express('express', 'Redis', true),
  express('express cookie', 'cookies'),
  {
    id: 'nextjs-auth0', label: 'nextjs-auth0, cookies', what: 'nextjs-auth0 in a Next.js application, sessions in cookies', prepare: prepareNext, providerHost: 'localhost', // it takes no provider at an IP address
    start: startNext,
    version: fromNpm('./next/', '@auth0/nextjs-auth0', 'next'),
  },
  absent('lua-resty-openidc', 'nginx with lua-resty-openidc'),
  absent('oauth2-proxy', 'oauth2-proxy'),
  absent('pomerium', 'Pomerium'),
  absent('authelia', 'Authelia'),
];

/** Installs what is missing. What cannot be installed is told by the line, which asks again. */
export async function preparePeers(say) {
  for (const peer of PEERS) await peer.prepare(say).catch(() => {});
}
