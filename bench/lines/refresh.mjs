// P6: many requests for a token that just expired, over two edges and two session services: one grant, and how much
// longer than the grant a request waits.
import { fixed, h2load, quantile, spread } from '../lib/measure.mjs';
import { releaseStack, signedIn } from '../lib/services.mjs';
import { until } from '../../dev/lib/net.mjs';

const TOKEN_SECS = 2;
/** A token counts as expired after half of its lifetime. */
const MARGIN_SECS = TOKEN_SECS / 2;

export async function refresh({ rounds, say, cleanup }) {
  const rows = [];
  for (const count of [50, 1000]) {
    const stack = cleanup(await releaseStack({
      store: 'redis', edges: 2, sessionServices: 2, accessTokenTtl: TOKEN_SECS,
      edgeEnv: { EDGE_ACCESS_TOKEN_ENDPOINT: 'true' },
    }));
    const { cookie } = await signedIn(stack);
    const headers = { cookie, 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };
    const token = async () => (await (await fetch(`${stack.edgeUrls[0]}/api/auth/access-token`, { headers })).json());
    const waits = [];
    for (let round = 1; round <= rounds; round += 1) {
      const { expires_at: expires } = await token();
      await until(10_000, () => Date.now() > expires * 1000, () => 'the clock does not advance');
      const before = await refreshes(stack);
      const began = performance.now();
      const halves = await Promise.all(stack.edgeUrls.map((url) => h2load({ url: `${url}/api/auth/access-token`, headers, http1: true, count: count / 2, clients: Math.min(100, count / 2) })));
      const took = halves.flatMap(({ took: all }) => all);
      const grants = (await refreshes(stack)) - before;
      // The run outlasts the lifetime of a token only on a machine that pauses at times.
      const allowed = 1 + Math.floor((performance.now() - began) / ((TOKEN_SECS - MARGIN_SECS) * 1000));
      if (grants < 1 || grants > allowed) throw new Error(`${grants} grants for ${count} requests at one expiry`);
      waits.push(quantile(took, 0.99));
      say(`round ${round} P6 ${count}: ${grants} grant, p99 ${waits.at(-1).toFixed(1)} ms`);
    }
    rows.push(
      { id: `P6 ${count}`, work: `${count} parallel token requests at expiry, one grant: p99 with the provider's time`, unit: 'ms', ...spread(waits) },
      { id: `P6 ${count} provider`, work: 'the provider\'s own time', unit: 'ms', ...fixed(await providerMillis(stack)) },
    );
  }
  return { rows };
}

async function metric(stack, name) {
  let sum = 0;
  for (const [process, url] of Object.entries(stack.adminUrls)) {
    if (!process.startsWith('session')) continue;
    const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n');
    for (const line of lines) if (line.startsWith(name)) sum += Number(line.split(' ').at(-1));
  }
  return sum;
}

const refreshes = (stack) => metric(stack, 'session_refreshes_total{outcome="refreshed"');

async function providerMillis(stack) {
  const [sum, count] = [await metric(stack, 'session_refresh_provider_duration_seconds_sum'), await metric(stack, 'session_refresh_provider_duration_seconds_count')];
  return (sum / count) * 1000;
}
