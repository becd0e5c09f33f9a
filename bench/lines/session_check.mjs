// P1 and P2: the edge answers a signed-in request from memory, or asks the session service each time. Each runs in
// alternating rounds with its bound of as many bytes: bare axum, and bare axum that asks bare tonic that asks Redis.
// P2 also runs with one connection, where no requests share a call. P8: the memory of both services.
import { releaseStack, serving, signedIn, startBound, startChain } from '../lib/services.mjs';
import { fixed, median, residentMiB, saturate, shares, spread } from '../lib/measure.mjs';

const MANY = 32; // connections of a full load
const ASKED = { EDGE_SESSION_CACHE_SECS: '0' };

const CASES = [
  { id: 'P1', bound: 'bound', work: 'profile, session known to the edge', options: { store: 'redis' }, path: '/api/auth/me' },
  { id: 'P1 check', bound: 'bound', work: 'forward-auth check, session known to the edge', options: { store: 'redis' }, path: '/api/auth/check' },
  { id: 'P1 logged', bound: 'bound', work: 'the same as P1 with the access record written', options: { store: 'redis', log: 'info' }, path: '/api/auth/me' },
  { id: 'P2', bound: 'chain', work: 'profile, asked each time: edge, session-svc, Redis', options: { store: 'redis', edgeEnv: ASKED }, path: '/api/auth/me', alone: true },
  { id: 'P2 file', bound: 'chain', work: 'the same on the embedded store', options: { store: 'file:', edgeEnv: ASKED }, path: '/api/auth/me' },
];

export async function sessionCheck({ rounds, seconds, say, cleanup }) {
  const served = [];
  for (const one of CASES) {
    const stack = cleanup(await releaseStack(one.options));
    const { cookie } = await signedIn(stack);
    const request = { url: `${stack.edgeUrl}${one.path}`, headers: { cookie }, pids: serving(stack) };
    const atRest = Object.fromEntries(request.pids.map(([name, pid]) => [name, residentMiB(pid)]));
    await saturate({ ...request, seconds: 1 });
    served.push({ ...one, ...request, atRest });
  }
  const { length } = await (await fetch(served[0].url, { headers: served[0].headers })).text();
  const bounds = [
    { id: 'bound', work: `bare axum, ${length} bytes of JSON`, ...cleanup(await startBound(length)) },
    { id: 'chain', work: 'bare axum, one bare tonic call, one Redis GET', alone: true, ...cleanup(await startChain(length)) },
  ];
  const cases = [...served, ...bounds].flatMap((one) => [
    { ...one, connections: MANY, results: [] },
    ...(one.alone ? [{ ...one, id: `${one.id} alone`, bound: one.bound && `${one.bound} alone`, work: `${one.work}; one connection`, connections: 1, results: [] }] : []),
  ]);
  for (let round = 1; round <= rounds; round += 1) {
    for (const one of cases) {
      one.results.push(await saturate({ ...one, seconds }));
      say(`round ${round} ${one.id}: ${one.results.at(-1).micros.toFixed(1)} µs`);
    }
  }
  const checks = cases.map(({ id, bound, work, results }) => ({
    id, bound, work, unit: 'CPU µs', ...spread(results.map(({ micros }) => micros)), by: shares(results), perSecond: median(results.map(({ perSecond }) => perSecond)),
  }));
  return { rows: [...checks, ...memory(served[0])] };
}

/** Resident memory of both services before and after their load. */
const memory = ({ pids, atRest }) => ['edge', 'session'].flatMap((name) => [
  { id: `P8 ${name} at rest`, work: 'resident memory at rest', unit: 'MiB', ...fixed(atRest[name], 1) },
  { id: `P8 ${name} loaded`, work: 'resident memory after a full load', unit: 'MiB', ...fixed(residentMiB(pids.find(([known]) => known === name)[1]), 1) },
]);
