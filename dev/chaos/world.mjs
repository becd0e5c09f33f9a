// The targets of faults: two edges, two session services, their store, the development provider and an application,
// each behind a port of the simulated network.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { personOf } from '../idp/lib/accounts.mjs';
import { freePort } from '../lib/net.mjs';
import { startStack } from '../stack.mjs';
import { Clocks } from './clocks.mjs';
import { NetworkThread } from './network-thread.mjs';
import { Rings } from './rings.mjs';
import { breaks, layoutOf } from './schedule.mjs';
import { openStore } from './stores.mjs';
import { startUpstream } from './upstream.mjs';

export const PEOPLE = 8;
const HTTP_TIMEOUT_MS = '4000'; // of exchanges with a provider that shares two cores with all other processes
const READY_MS = 60_000; // of a process that restarts while all others run
export const TOKEN_TTL_S = 8; // of access tokens at the provider, so that they expire within a run
export const TOKEN_MARGIN_S = TOKEN_TTL_S / 2; // a token counts as expired this long before its end

const REVALIDATE_S = 5; // longer than a token's lifetime: no session is refreshed earlier

const routesTo = (port) => `[[route]]
path = "/app/*"
guard = "api"
upstream = "http://127.0.0.1:${port}"
access_token = true
require_token = true
`;

const NO_LIMITS = { EDGE_RATE_LIMIT_LOGIN: '0' }; // simulated people send more requests than real ones

/** The clients that a port must tell apart, because their links may break; none if there is only one client. */
function whoConnects(name, links, faults) {
  const froms = links.filter(({ to }) => to === name).map(({ from }) => from);
  return froms.length === 1 ? { only: froms[0] } : { among: froms.filter((from) => faults.some((fault) => breaks(fault, from, name))) };
}

/** Starts all processes below `folder` with the topology's store; `faults` are the scheduled ones. */
export async function openWorld({ folder, topology, faults = [] }) {
  mkdirSync(folder, { recursive: true });
  const network = new NetworkThread();
  const upstream = await startUpstream();
  const ports = {};
  const fronts = {};
  const { edges, services, links } = layoutOf(topology);
  const clocks = new Clocks(folder);
  const rings = new Rings(folder, { edges, services });
  for (const name of [...edges, ...services, 'redis', 'idp', 'url']) ports[name] = await freePort();
  const front = (name, target = ports[name]) => network.front(name, target, whoConnects(name, links, faults));
  for (const name of [...services, ...edges, 'idp', 'url']) fronts[name] = await front(name);
  if (topology === 'redis') fronts.redis = await front('redis');
  const routes = join(folder, 'routes.toml');
  writeFileSync(routes, routesTo(await front('upstream', upstream.port)));
  const providerLog = join(folder, 'provider.jsonl');
  writeFileSync(providerLog, '');
  const disabledFile = join(folder, 'disabled');
  writeFileSync(disabledFile, '');
  let store;
  let stack;
  const close = async () => {
    await stack?.stop();
    await store?.stop?.();
    await network.stop();
    upstream.stop();
  };
  try {
    store = await openStore(topology, { network, folder, front });
    stack = await startStack({
      ...store.options, edges: edges.length, sessionServices: services.length, stateDir: folder, ports, fronts, routes,
      onStart: network.know,
      publicUrl: `http://127.0.0.1:${fronts.url}`, people: PEOPLE + 1, providerLog, disabledFile, accessTokenTtl: TOKEN_TTL_S, readyMs: READY_MS,
      env: Object.fromEntries([...edges, ...services].map((name) => [name, { ...clocks.environmentOf(name), ...rings.environmentOf(name) }])),
      edgeEnv: { ...NO_LIMITS, OIDC_HTTP_TIMEOUT_MS: HTTP_TIMEOUT_MS },
      sessionEnv: {
        OIDC_HTTP_TIMEOUT_MS: HTTP_TIMEOUT_MS,
        SESSION_ROLL_INTERVAL: '1', SESSION_REVALIDATE_SECS: String(REVALIDATE_S), ...store.options.sessionEnv,
      },
    });
  } catch (error) {
    await close();
    throw error;
  }
  const accounts = Array.from({ length: PEOPLE }, (_, at) => personOf(at + 1));
  const leaver = personOf(PEOPLE + 1);
  return { folder, topology, store, stack, network, clocks, rings, accounts, leaver, disabledFile, edges, services, ports, fronts, providerLog, close };
}
