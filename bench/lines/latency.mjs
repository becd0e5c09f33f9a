// P11 and the plot of latency over load: those of P1, P2 and their bounds at rising rates, each up to the first rate
// that is too high. The rate of P11 runs in alternating rounds, whose requests together give the percentiles.
import { openLoop, openLoopTool, percentiles } from '../lib/open_loop.mjs';
import { spread } from '../lib/measure.mjs';
import { releaseStack, signedIn, startBound, startChain } from '../lib/services.mjs';

const RATES = [500, 1000, 2000, 4000, 8000, 12000, 16000, 24000];
const RATE = 1000; // of P11
const ASKED = { EDGE_SESSION_CACHE_SECS: '0' };

export async function latency({ rounds, seconds, say, cleanup }) {
  const program = await openLoopTool(say);
  const ours = [];
  for (const [id, work, edgeEnv] of [['P1', 'session known to the edge'], ['P2', 'asked each time', ASKED]]) {
    const stack = cleanup(await releaseStack({ store: 'redis', edgeEnv }));
    const { cookie } = await signedIn(stack);
    ours.push({ id, work, url: `${stack.edgeUrl}/api/auth/me`, headers: { cookie } });
  }
  const { length } = await (await fetch(ours[0].url, { headers: ours[0].headers })).text();
  const cases = [
    { ...ours[0], bound: 'bound' }, { ...ours[1], bound: 'chain' },
    { id: 'bound', work: 'bare axum', url: cleanup(await startBound(length)).url },
    { id: 'chain', work: 'bare axum, tonic and Redis', url: cleanup(await startChain(length)).url },
  ].map((one) => ({ ...one, rounds: [], points: [] }));
  const measured = async ({ id, url, headers }, rate) => {
    const result = await openLoop({ program, url, headers, rate, seconds });
    const { p50, p99, p999 } = percentiles(result.took);
    say(`${id} at ${rate}/s: p50 ${p50.toFixed(2)}, p99 ${p99.toFixed(2)}, p99.9 ${p999.toFixed(2)} ms${result.keptUp ? '' : ', did not keep up'}`);
    return result;
  };
  for (let round = 1; round <= rounds; round += 1) for (const one of cases) one.rounds.push(await measured(one, RATE));
  for (const rate of RATES) {
    for (const one of cases.filter(({ points }) => points.every(({ keptUp }) => keptUp))) {
      if (rate !== RATE) one.points.push(point(rate, await measured(one, rate)));
      else one.points.push(point(rate, together(one.rounds)));
    }
  }
  return {
    rows: cases.map(({ id, work, bound, rounds: all }) => ({ id: `P11 ${id}`, bound: bound && `P11 ${bound}`, work: `p99 at ${RATE} requests/s: ${work}`, unit: 'ms', ...spread(all.map(({ took }) => percentiles(took).p99), 2) })),
    series: { latency: cases.map(({ id, work, points }) => ({ id, work, points })) },
  };
}

const point = (rate, { took, reached, keptUp }) => ({ rate, reached, keptUp, requests: took.length, ...percentiles(took) });

/** Joins the rounds of one rate. */
const together = (rounds) => ({
  took: rounds.flatMap(({ took }) => took),
  reached: Math.min(...rounds.map(({ reached }) => reached)),
  keptUp: rounds.every(({ keptUp }) => keptUp),
});
