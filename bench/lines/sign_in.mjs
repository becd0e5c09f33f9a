// P4: one login and one callback, the provider's time left out.
import { Client } from '../../dev/tests/product/client.mjs';
import { cpuMicros, spread } from '../lib/measure.mjs';
import { releaseStack, serving } from '../lib/services.mjs';

const SIGN_INS = 100;

export async function signIn({ rounds, say, cleanup }) {
  const stack = cleanup(await releaseStack({ store: 'redis' }));
  const pids = serving(stack);
  const used = () => pids.reduce((sum, [, pid]) => sum + cpuMicros(pid), 0);
  await new Client().signIn(stack); // discovery and keys are read once
  const millis = [];
  for (let round = 1; round <= rounds; round += 1) {
    const before = used();
    for (let time = 0; time < SIGN_INS; time += 1) await new Client().signIn(stack);
    millis.push((used() - before) / SIGN_INS / 1000);
    say(`round ${round} P4: ${millis.at(-1).toFixed(2)} ms`);
  }
  return [{ id: 'P4', work: 'login and callback, provider excluded', unit: 'CPU ms', goal: '≤ 1.0', ...spread(millis, 2), detail: `${SIGN_INS} sign-ins a round, one after another` }];
}
