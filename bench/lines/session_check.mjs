// P1 and P2: a signed-in request answered by the edge from memory, and by asking the session service each time. P11: how long
// they take at a fixed rate. All beside bare axum that answers with as many bytes, in alternating rounds.
import { releaseStack, serving, signedIn, startBound } from '../lib/services.mjs';
import { h2load, residentMiB, quantile, saturate, shares, spread } from '../lib/measure.mjs';

const RATE = 1000;

const CASES = [
  { id: 'P1', work: 'profile, session known to the edge', goal: '≤ 12', options: { store: 'redis' }, path: '/api/auth/me' },
  { id: 'P1 check', work: 'forward-auth check, session known to the edge', goal: '≤ 12', options: { store: 'redis' }, path: '/api/auth/check' },
  { id: 'P1 logged', work: 'the same as P1 with the access record written', goal: '', options: { store: 'redis', log: 'info' }, path: '/api/auth/me' },
  { id: 'P2', work: 'profile, asked each time: edge, session-svc, Redis', goal: '≤ 50', options: { store: 'redis', edgeEnv: { EDGE_SESSION_CACHE_SECS: '0' } }, path: '/api/auth/me' },
  { id: 'P2 file', work: 'the same on the embedded store', goal: '≤ 50', options: { store: 'file:', edgeEnv: { EDGE_SESSION_CACHE_SECS: '0' } }, path: '/api/auth/me' },
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
  const bound = cleanup(await startBound(length));
  cases.push({ id: 'bound', work: `bare axum, ${length} bytes of JSON`, goal: '', headers: {}, ...bound, results: [], latencies: [] });
  for (let round = 1; round <= rounds; round += 1) {
    for (const one of cases) {
      one.results.push(await saturate({ ...one, seconds }));
      if (one.id !== 'P1 logged') one.latencies.push(quantile((await h2load({ ...one, pids: [], http1: true, rate: RATE, seconds })).took, 0.99));
      say(`round ${round} ${one.id}: ${one.results.at(-1).micros.toFixed(1)} µs`);
    }
  }
  const boundP99 = spread(cases.at(-1).latencies, 2);
  return [
    ...cases.map((one) => {
      const micros = spread(one.results.map(({ micros }) => micros));
      const perSecond = spread(one.results.map((result) => result.perSecond), 0);
      return { id: one.id, work: one.work, unit: 'CPU µs', goal: one.goal, ...micros, detail: `${shares(one.results)}; ${perSecond.median.toFixed(0)} requests/s` };
    }),
    ...cases.filter(({ latencies }) => latencies.length > 0).map((one) => {
      const p99 = spread(one.latencies, 2);
      const goal = one.id === 'bound' ? '' : '≤ 1.5 × the bound';
      return { id: `P11 ${one.id}`, work: `p99 at ${RATE} requests/s`, unit: 'ms', goal, ...p99, detail: `${(p99.median / boundP99.median).toFixed(2)} × the bound` };
    }),
    ...cases.filter(({ id }) => id === 'P1').flatMap((one) => ['edge', 'session'].map((name) => {
      const loaded = residentMiB(one.pids.find(([known]) => known === name)[1]);
      return { id: `P8 ${name}`, work: 'resident memory at rest, and after load', unit: 'MiB', goal: '≤ 25, ≤ 60', median: loaded, text: `**${one.atRest[name].toFixed(1)}**, **${loaded.toFixed(1)}**`, detail: '' };
    })),
  ];
}
