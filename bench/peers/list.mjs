// Who else keeps sessions for applications and can be had from Debian or npm. Each is set up as its own documentation says, for
// the same provider, account and length of answer, with keep-alive on and an access log off.
//
// Left out on purpose: nextjs-auth0, which only runs in an application built with Next.js: hundreds of megabytes and minutes
// of building for a figure that is mostly the framework's.
import { Problem } from '../../dev/lib/build.mjs';
import { inReach } from '../lib/debian.mjs';
import { prepareApache, startApache } from './apache.mjs';
import { prepareExpress, startExpress } from './express.mjs';

/** A peer that would be measured if Debian had it. */
const absent = (id, what, name) => ({
  id, what,
  async prepare() {
    throw new Problem(inReach(name) ? `${name} is in reach, but is not set up by this benchmark` : `the package lists here have no ${name}`);
  },
});

/**
 * id, what: of its rows; redis: whether it is given a Redis of its own; prepare(say): installs it or throws the reason why not;
 * start(options): see apache.mjs.
 */
export const PEERS = [
  { id: 'apache', what: 'Apache with mod_auth_openidc, sessions in Redis', redis: true, prepare: prepareApache, start: (options) => startApache('redis', options) },
  { id: 'apache shm', what: 'Apache with mod_auth_openidc, sessions in shared memory (its default)', prepare: prepareApache, start: (options) => startApache('shm', options) },
  { id: 'apache cookie', what: 'Apache with mod_auth_openidc, sessions in the cookie', prepare: prepareApache, start: (options) => startApache('cookie', options) },
  { id: 'express', what: 'express-openid-connect, sessions in Redis', redis: true, prepare: prepareExpress, start: startExpress },
  { id: 'express cookie', what: 'express-openid-connect, sessions in the cookie (its default)', prepare: prepareExpress, start: startExpress },
  absent('nginx', 'nginx with lua-resty-openidc', 'lua-resty-openidc'),
  absent('oauth2-proxy', 'oauth2-proxy', 'oauth2-proxy'),
];

/** Installs what is missing. What cannot be installed is told by the line, which asks again. */
export async function preparePeers(say) {
  for (const peer of PEERS) await peer.prepare(say).catch(() => {});
}
