// Redis freezes for half a minute, is killed and starts again. No user is signed out, every response is in time, and
// watches receive the events. Everything works afterwards without a restart.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { pause, probe, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';
import { field, fields, open } from './grpc.mjs';

const FROZEN_MS = 30_000;
const ANSWER_MS = 10_000; // far above the edge's deadline for a call
const UNAVAILABLE = 14;
const [ENDED, MISSED] = [5, 7]; // SessionEvent.Kind
const RESUME_TOKEN = 7; // SessionEvent.resume_token; WatchSessionsRequest.resume_token is 4

let stack;
let stateDir;

before(async () => {
  stateDir = mkdtempSync(join(tmpdir(), 'vestibule-outage-'));
  stack = await startStack({ store: 'redis', stateDir, edges: 2, sessionServices: 2 });
});
after(async () => {
  await stack?.stop();
  rmSync(stateDir, { recursive: true, force: true });
});

/** Sends every request of a signed-in browser; returns the responses other than 503. */
async function ask(person) {
  const odd = [];
  for (const path of ['/api/auth/me', '/api/auth/status', '/api/auth/check']) {
    const began = Date.now();
    const answer = await person.fetch(stack.edgeUrl + path, { headers: { accept: 'application/json' } });
    assert.ok(Date.now() - began < ANSWER_MS, `${path} took ${Date.now() - began} ms`);
    assert.deepEqual(answer.headers.getSetCookie(), [], `${path} touches no cookie`);
    if (answer.status === 503) assert.ok(answer.headers.get('retry-after'), path);
    else odd.push(`${path} ${answer.status}`);
  }
  return odd;
}

const watch = (resumeToken = '', messages = []) => open(stack.sessionUrls[0], 'WatchSessions', field(4, resumeToken), messages);
const lastToken = (messages) => fields(messages.at(-1))[RESUME_TOKEN]?.toString() ?? '';

/** Continues the watch after the last event in `heard`, across broken streams, until closed; adds to `heard`. */
function watchOn(heard) {
  let call;
  let closed = false;
  const ended = (async () => {
    while (!closed) {
      call = watch(lastToken(heard), heard);
      await call.ended;
      await pause(100);
    }
  })();
  return async () => {
    closed = true;
    call.close();
    await ended;
  };
}

test('Redis frozen for half a minute signs no user out', async () => {
  const people = [new Client(), new Client()];
  for (const person of people) await person.signIn(stack);
  const cookies = people.map((person) => person.sessionCookie(stack));
  const watched = watch();
  await until(5_000, () => watched.messages.length > 0, () => 'the watch does not begin');

  process.kill(stack.pid('redis'), 'SIGSTOP');
  const frozen = Date.now();
  try {
    const { status } = await watched.ended;
    assert.equal(status, UNAVAILABLE, 'a watch that hears nothing ends and says why');
    assert.ok(Date.now() - frozen < 5_000, `it said so after ${Date.now() - frozen} ms`);
    await until(10_000, async () => (await ask(people[0])).length === 0, () => 'answers from memory do not end');
    const newcomer = new Client();
    const callback = await newcomer.authorize(stack);
    assert.equal((await newcomer.navigate(callback)).status, 503, 'no user gets in');
    assert.equal(newcomer.sessionCookie(stack), undefined);
    while (Date.now() - frozen < FROZEN_MS) {
      for (const person of people) assert.deepEqual(await ask(person), []);
      await pause(500);
    }
    for (const name of ['session', 'session-2']) assert.equal((await probe(`${stack.adminUrls[name]}/readyz`)).status, 503, name);
    for (const name of ['edge', 'edge-2']) assert.equal((await probe(`${stack.adminUrls[name]}/readyz`)).status, 200, name);
  } finally {
    process.kill(stack.pid('redis'), 'SIGCONT');
  }

  for (const [at, person] of people.entries()) {
    await until(10_000, async () => (await person.me(stack)).status === 200, () => 'not signed in after Redis went on');
    assert.deepEqual(person.sessionCookie(stack), cookies[at]);
  }
  const heard = [...watched.messages];
  const before = heard.length;
  const close = watchOn(heard);
  try {
    await until(10_000, () => heard.length > before, () => 'the watch does not go on');
    assert.equal((await people[1].navigate(`${stack.edgeUrl}/api/auth/logout`)).status, 302);
    const delivered = () => heard.slice(before).some((message) => [ENDED, MISSED].includes(fields(message)[1]));
    await until(10_000, delivered, () => 'the sign-out is not delivered');
  } finally {
    await close();
  }
  // The balancer now uses the other edge. It receives the event in no fixed order with the watch above.
  await until(10_000, async () => (await people[1].me(stack)).status === 204, () => 'still signed in at the other edge');
  await new Client().signIn(stack);
});

test('Redis killed and restarted with its file signs no user out', async () => {
  const person = new Client();
  await person.signIn(stack);
  const cookie = person.sessionCookie(stack);
  await stack.kill('redis', 'SIGKILL');
  try {
    await until(10_000, async () => (await ask(person)).length === 0, () => 'answers from memory do not end');
  } finally {
    await stack.start('redis');
  }
  await until(10_000, async () => (await person.me(stack)).status === 200, () => 'not signed in after Redis was started again');
  assert.deepEqual(person.sessionCookie(stack), cookie);
  await new Client().signIn(stack);
});
