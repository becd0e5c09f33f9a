// P1 and P2: a signed-in request answered by the edge from memory, and by asking the session service each time. P11: how long
// they take at a fixed rate. Each beside its bound, which answers with as many bytes, in alternating rounds: bare axum, and
// bare axum that asks bare tonic that asks Redis.
import { releaseStack, serving, signedIn, startBound, startChain } from '../lib/services.mjs';
import { h2load, residentMiB, quantile, saturate, shares, spread } from '../lib/measure.mjs';

const RATE = 1000;

const CASES = [
  { id: 'P1', bound: 'bound', work: 'profile, session known to the edge', goal: '≤ 12', options: { store: 'redis' }, path: '/api/auth/me' },
  { id: 'P1 check', bound: 'bound', work: 'forward-auth check, session known to the edge', goal: '≤ 12', options: { store: 'redis' }, path: '/api/auth/check' },
  { id: 'P1 logged', bound: 'bound', work: 'the same as P1 with the access record written', goal: '', options: { store: 'redis', log: 'info' }, path: '/api/auth/me' },
  { id: 'P2', bound: 'chain', work: 'profile, asked each time: edge, session-svc, Redis', goal: '≤ 50', options: { store: 'redis', edgeEnv: { EDGE_SESSION_CACHE_SECS: '0' } }, path: '/api/auth/me' },
  { id: 'P2 file', bound: 'chain', work: 'the same on the embedded store', goal: '≤ 50', options: { store: 'file:', edgeEnv: { EDGE_SESSION_CACHE_SECS: '0' } }, path: '/api/auth/me' },
];

export async function sessionCheck({ rounds, seconds, say, cleanup }) {
  const cases = [];
  for (const one of CASES) {
    const stack = cleanup(await releaseStack(one.options));
    const { cookie } = await signedIn(stack);
    const request = { url: `${stack.edgeUrl}${one.path}`, headers: { cookie }, pids: serving(stack) };
    const atRest = Object.fromEntries(request.pids.map(([name, pid]) => [name, residentMiB(pid)]));
    await saturate({ ...request, seconds: 1 });
    cases.push({ ...one, ...request, atRest, results: [], latencies: [] });
  }
  const { length } = await (await fetch(cases[0].url, { headers: cases[0].headers })).text();
  const bounds = [
    { id: 'bound', work: `bare axum, ${length} bytes of JSON`, ...cleanup(await startBound(length)) },
    { id: 'chain', work: 'bare axum, one bare tonic call, one Redis GET', ...cleanup(await startChain(length)) },
  ];
  for (const one of bounds) cases.push({ ...one, goal: '', headers: {}, results: [], latencies: [] });
  for (let round = 1; round <= rounds; round += 1) {
    for (const one of cases) {
      one.results.push(await saturate({ ...one, seconds }));
      if (one.id !== 'P1 logged') one.latencies.push(quantile((await h2load({ ...one, pids: [], http1: true, rate: RATE, seconds })).took, 0.99));
      say(`round ${round} ${one.id}: ${one.results.at(-1).micros.toFixed(1)} µs`);
    }
  }
  const microsOf = ({ results }) => spread(results.map(({ micros }) => micros));
  const p99Of = ({ latencies }) => spread(latencies, 2);
  const beside = (one, figure) => {
    const bound = cases.find(({ id }) => id === one.bound);
    return bound ? `${(figure(one).median / figure(bound).median).toFixed(2)} × its bound` : '';
  };
  return [
    ...cases.map((one) => {
      const micros = microsOf(one);
      const perSecond = spread(one.results.map((result) => result.perSecond), 0);
      return { id: one.id, work: one.work, unit: 'CPU µs', goal: one.goal, ...micros, detail: [beside(one, microsOf), shares(one.results), `${perSecond.median.toFixed(0)} requests/s`].filter(Boolean).join('; ') };
    }),
    ...cases.filter(({ latencies }) => latencies.length > 0).map((one) => {
      const goal = one.bound ? '≤ 1.5 × its bound' : '';
      return { id: `P11 ${one.id}`, work: `p99 at ${RATE} requests/s`, unit: 'ms', goal, ...p99Of(one), detail: beside(one, p99Of) };
    }),
    ...cases.filter(({ id }) => id === 'P1').flatMap((one) => ['edge', 'session'].map((name) => {
      const loaded = residentMiB(one.pids.find(([known]) => known === name)[1]);
      return { id: `P8 ${name}`, work: 'resident memory at rest, and after load', unit: 'MiB', goal: '≤ 25, ≤ 60', median: loaded, text: `**${one.atRest[name].toFixed(1)}**, **${loaded.toFixed(1)}**`, detail: '' };
    })),
  ];
}
