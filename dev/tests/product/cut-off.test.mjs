// Session services that are cut off: connections stay open and new ones are accepted, but no response ever comes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

const PATIENCE_MS = 20_000;
const REQUESTS = 40;
let stack;
let person;

before(async () => {
  // Without a cache, every request calls the session service.
  stack = await startStack({ store: 'redis', sessionServices: 2, edgeEnv: { EDGE_SESSION_CACHE_SECS: '0' } });
  person = new Client();
  await person.signIn(stack);
});
after(async () => {
  if (!stack) return;
  signal('SIGCONT', 'session', 'session-2');
  await stack.stop();
});

const signal = (name, ...processes) => processes.forEach((process_) => process.kill(stack.pid(process_), name));
const isStopped = (name) => / T /.test(readFileSync(`/proc/${stack.pid(name)}/stat`, 'utf8'));
/** On a busy machine a process keeps running until the first of its threads takes the signal. */
async function freeze(...processes) {
  signal('SIGSTOP', ...processes);
  await until(PATIENCE_MS, () => processes.every(isStopped), () => `${processes} went on after SIGSTOP`);
}
const patiently = (path) => person.fetch(stack.edgeUrl + path, { signal: AbortSignal.timeout(PATIENCE_MS) });

test('no user notices that one of two is cut off', async () => {
  for (const name of ['session', 'session-2']) {
    await freeze(name);
    for (let sent = 0; sent < REQUESTS; sent += 1) assert.equal((await patiently('/api/auth/me')).status, 200, `${name}, request ${sent}`);
    signal('SIGCONT', name);
  }
});

test('all cut off is 503 with Retry-After, again and again; cookie and session stay', async () => {
  const cookie = person.sessionCookie(stack);
  await freeze('session', 'session-2');
  for (const path of ['/api/auth/me', '/api/auth/status', '/api/auth/check', '/account']) {
    const answer = await patiently(path);
    assert.equal(answer.status, 503, path);
    assert.ok(answer.headers.get('retry-after'), path);
    assert.deepEqual(answer.headers.getSetCookie(), [], path);
  }
  signal('SIGCONT', 'session', 'session-2');
  assert.deepEqual(person.sessionCookie(stack), cookie);
  await until(PATIENCE_MS, async () => (await person.me(stack)).status === 200, () => 'not signed in after the session services came back');
});
