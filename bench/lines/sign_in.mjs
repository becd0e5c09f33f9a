// P4: one login and one callback without the provider's time. With code and PKCE alone; with a pushed authorization
// request, which is the default if the provider supports it and costs one exchange more; and many at once.
import { Client } from '../../dev/tests/product/client.mjs';
import { cpuMicros, spread } from '../lib/measure.mjs';
import { releaseStack, serving } from '../lib/services.mjs';

const SIGN_INS = 100;
const AT_ONCE = 16;

const CASES = [
  { id: 'P4', work: 'login and callback, provider excluded', par: 'off', atOnce: 1 },
  { id: 'P4 pushed', work: 'the same with a pushed authorization request', par: 'require', atOnce: 1 },
  { id: 'P4 at once', work: `the same as P4, ${AT_ONCE} at once`, par: 'off', atOnce: AT_ONCE },
];

export async function signIn({ rounds, say, cleanup }) {
  const cases = [];
  for (const one of CASES) {
    const stack = cleanup(await releaseStack({ store: 'redis', edgeEnv: { OIDC_PAR: one.par } }));
    await new Client().signIn(stack); // the edge reads discovery and keys once
    cases.push({ ...one, stack, millis: [] });
  }
  for (let round = 1; round <= rounds; round += 1) {
    for (const one of cases) {
      one.millis.push(await signInMillis(one));
      say(`round ${round} ${one.id}: ${one.millis.at(-1).toFixed(2)} ms`);
    }
  }
  return { rows: cases.map(({ id, work, atOnce, millis }) => ({ id, work, unit: 'CPU ms', ...spread(millis, 2), note: `${SIGN_INS} sign-ins a round, ${atOnce === 1 ? 'one after another' : `${atOnce} at once`}` })) };
}

/** CPU time of a sign-in over all processes that serve it. */
async function signInMillis({ stack, atOnce }) {
  const pids = serving(stack);
  const used = () => pids.reduce((sum, [, pid]) => sum + cpuMicros(pid), 0);
  const before = used();
  let left = SIGN_INS;
  const visitors = Array.from({ length: atOnce }, async () => {
    while (left > 0) {
      left -= 1;
      await new Client().signIn(stack);
    }
  });
  await Promise.all(visitors);
  return (used() - before) / SIGN_INS / 1000;
}
