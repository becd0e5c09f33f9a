// What requests notice of session services that are cut off: stopped processes, whose connections stay open and answer nothing.
//
//   node dev/cutoff.mjs            one of two, then both; needs redis-server and debug programs
import { performance } from 'node:perf_hooks';

import { Client } from './tests/product/client.mjs';
import { startStack } from './stack.mjs';

const SECONDS = 15;
const AT_ONCE = 4; // requests under way
const PAUSE_MS = 20;
const GIVE_UP_MS = 30_000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends requests for some seconds: how long each took, and its status. */
async function load(url, headers) {
  const took = [];
  const end = performance.now() + SECONDS * 1000;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (performance.now() < end) {
      const began = performance.now();
      const status = await fetch(url, { headers, signal: AbortSignal.timeout(GIVE_UP_MS) }).then((answer) => answer.text().then(() => answer.status), () => 'none');
      took.push({ ms: performance.now() - began, status });
      await sleep(PAUSE_MS);
    }
  }));
  return took;
}

function row(what, took) {
  const sorted = took.map(({ ms }) => ms).sort((one, other) => one - other);
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(0);
  const statuses = [...new Set(took.map(({ status }) => status))].map((status) => `${took.filter((one) => one.status === status).length} × ${status}`).join(', ');
  const slow = took.filter(({ ms }) => ms > 1000).length;
  console.log(`| ${what} | ${took.length} | ${at(0.5)} | ${at(0.99)} | ${at(1)} | ${slow} | ${statuses} |`);
}

for (const cache of ['5', '0']) {
  const stack = await startStack({ store: 'redis', sessionServices: 2, edgeEnv: { EDGE_SESSION_CACHE_SECS: cache, RUST_LOG: 'error' }, sessionEnv: { RUST_LOG: 'error' } });
  const pids = ['session', 'session-2'].map((name) => stack.pid(name));
  const signal = (name, some = pids) => some.forEach((pid) => process.kill(pid, name));
  try {
    const person = new Client();
    await person.navigate(await person.authorize(stack, { login: '/api/auth/login' }));
    const headers = { cookie: person.sessionCookie(stack).join('=') };
    const measure = async (what) => row(`cache ${cache} s: ${what}`, await load(`${stack.edgeUrl}/api/auth/me`, headers));
    if (cache === '5') console.log('| requests | sent | median ms | p99 ms | most ms | over 1 s | answers |\n|---|---|---|---|---|---|---|');
    await measure('nothing cut off');
    signal('SIGSTOP', pids.slice(1));
    await measure('one of two');
    signal('SIGCONT');
    await sleep(3000);
    await measure('one came back');
    signal('SIGSTOP');
    await measure('both');
    signal('SIGCONT');
    await sleep(3000);
    await measure('both came back');
  } finally {
    signal('SIGCONT');
    await stack.stop();
  }
}
