// P10: time from start to ready, size of the programs (images hold only those), and size of the browser's cookie.
import { statSync } from 'node:fs';

import { binary } from '../../dev/stack.mjs';
import { probe } from '../../dev/lib/net.mjs';
import { fixed, spread } from '../lib/measure.mjs';
import { PROFILE, releaseStack, signedIn } from '../lib/services.mjs';

const STARTS = 10;

export async function starting({ say, cleanup }) {
  const stack = cleanup(await releaseStack({ store: 'redis' }));
  const { cookie } = await signedIn(stack);
  const rows = [];
  for (const name of ['edge', 'session']) {
    const took = [];
    for (let time = 0; time < STARTS; time += 1) {
      await stack.kill(name);
      const began = performance.now();
      const started = stack.start(name);
      while ((await probe(`${stack.adminUrls[name]}/readyz`)).status !== 200) { /* asked again at once */ }
      took.push(performance.now() - began);
      await started;
    }
    say(`P10 ${name}: ${took.map((value) => value.toFixed(0)).join(' ')} ms`);
    rows.push({ id: `P10 ${name}`, work: 'start to ready', unit: 'ms', ...spread(took, 0) });
  }
  for (const program of ['auth-edge', 'session-svc']) {
    const megabytes = statSync(binary(program, PROFILE)).size / 1e6;
    rows.push({ id: `P10 ${program}`, work: 'size of the program', unit: 'MB', ...fixed(megabytes, 1) });
  }
  rows.push({ id: 'P10 cookie', work: 'session cookie as the browser sends it', unit: 'bytes', ...fixed(cookie.length) });
  return { rows };
}
