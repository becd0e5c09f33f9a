// What faults happen to: two edges, two session services, their store, the development provider and an application, each behind a front of
// the network's.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { personOf } from '../idp/lib/accounts.mjs';
import { freePort } from '../lib/net.mjs';
import { startStack } from '../stack.mjs';
import { Network } from './network.mjs';
import { startUpstream } from './upstream.mjs';

export const PEOPLE = 8;
export const TOKEN_TTL_S = 6; // of access tokens at the provider, so that they expire within a run
export const TOKEN_MARGIN_S = 2; // before which a token counts as expired
export const REFRESH_LEASE_S = 3; // what others wait for one that died while it refreshed

const EDGES = ['edge', 'edge-2'];
const SERVICES = ['session', 'session-2'];

const routesTo = (port) => `[[route]]
path = "/app/*"
guard = "api"
upstream = "http://127.0.0.1:${port}"
access_token = true
require_token = true
`;

const NO_LIMITS = { // people here ask more often than people do
  EDGE_RATE_LIMIT_LOGIN: '0', EDGE_ADDRESS_SHARE: '100', EDGE_SESSION_SHARE: '100',
};

/** Starts everything below `folder`. */
export async function openWorld({ folder, profile }) {
  mkdirSync(folder, { recursive: true });
  const network = new Network();
  const upstream = await startUpstream();
  const ports = {};
  const fronts = {};
  for (const name of [...EDGES, ...SERVICES, 'redis', 'idp', 'url']) ports[name] = await freePort();
  for (const name of [...SERVICES, 'redis', 'idp']) fronts[name] = await network.front(name, () => ports[name]);
  for (const name of EDGES) fronts[name] = await network.front(name, () => ports[name], 'browser');
  fronts.url = await network.front('url', () => ports.url, 'idp');
  const routes = join(folder, 'routes.toml');
  writeFileSync(routes, routesTo(await network.front('upstream', () => upstream.port)));
  const providerLog = join(folder, 'provider.jsonl');
  writeFileSync(providerLog, '');
  let stack;
  const close = async () => {
    await stack?.stop();
    network.stop();
    upstream.stop();
  };
  try {
    stack = await startStack({
      edges: EDGES.length, sessionServices: SERVICES.length, store: 'redis', redisArgs: ['--appendfsync', 'always'], stateDir: folder, ports, fronts, routes,
      onStart: (name, pid) => { network.pids[name] = pid; },
      publicUrl: `http://127.0.0.1:${fronts.url}`, people: PEOPLE, providerLog, accessTokenTtl: TOKEN_TTL_S, profile,
      edgeEnv: { ...NO_LIMITS, OIDC_HTTP_TIMEOUT_MS: '2000' },
      sessionEnv: {
        OIDC_HTTP_TIMEOUT_MS: '2000', SESSION_REFRESH_TIMEOUT_MS: '5000', SESSION_TOKEN_EXPIRY_MARGIN: String(TOKEN_MARGIN_S),
        SESSION_REFRESH_LEASE: String(REFRESH_LEASE_S), SESSION_ROLL_INTERVAL: '1',
      },
    });
  } catch (error) {
    await close();
    throw error;
  }
  const processes = [...EDGES, ...SERVICES, 'redis', 'idp'];
  const accounts = Array.from({ length: PEOPLE }, (_, at) => personOf(at + 1));
  return { folder, stack, network, accounts, edges: EDGES, services: SERVICES, processes, ports, fronts, providerLog, close };
}
