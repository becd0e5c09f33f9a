// Session services are replaced one after another while people keep working.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';

const LOOPS = 16;
const STALLED_MS = 1_000; // the cost of one lost connection attempt (RFC 6298, section 2: one second)
let stack;
let cookie;

before(async () => {
  // Without a session cache, every request needs a session service.
  stack = await startStack({ store: 'redis', edges: 2, sessionServices: 2, edgeEnv: { EDGE_SESSION_CACHE_SECS: '0' } });
  const person = new Client();
  await person.signIn(stack);
  cookie = person.sessionCookie(stack).join('=');
});
after(() => stack?.stop());

/** Polls the profile while `work` runs; returns the number of responses, the slowest time, and the errors. */
async function meanwhile(work) {
  let running = true;
  let answered = 0;
  let slowestMs = 0;
  const wrong = [];
  const loop = async () => {
    while (running) {
      const began = performance.now();
      try {
        const { status } = await request(`${stack.edgeUrl}/api/auth/me`, { headers: { cookie } });
        if (status === 200) answered += 1;
        else wrong.push(status);
      } catch (error) {
        wrong.push(error.code ?? error.message);
      }
      slowestMs = Math.max(slowestMs, performance.now() - began);
    }
  };
  const loops = Array.from({ length: LOOPS }, loop);
  await work();
  running = false;
  await Promise.all(loops);
  return { answered, slowestMs, wrong };
}

test('a session service that stops delays no request while there is another', async (t) => {
  const { answered, slowestMs, wrong } = await meanwhile(async () => {
    for (const name of ['session', 'session-2']) {
      await stack.kill(name);
      await stack.start(name);
    }
  });
  t.diagnostic(`the slowest of ${answered} requests took ${slowestMs.toFixed(0)} ms`);
  assert.deepEqual(wrong, []);
  assert.ok(slowestMs < STALLED_MS, `${slowestMs} ms`);
});
