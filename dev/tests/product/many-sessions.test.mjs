// One person's thousands of sessions, with two session services on one Redis: listing and ending them costs Redis a page at a
// time, and other people are served meanwhile.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';

import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';
import { field, fields, invoke } from './grpc.mjs';

const SESSIONS = 5_000;
const AT_ONCE = 64;
const PAGE_MICROS = 3_000; // of Redis, and of whatever others ask meanwhile; 20,000 where scripts sort them all
const OTHERS_MS = 1_000; // the longest anybody else waits
const NOT_FOUND = 5;
const ISSUER = 'https://issuer.example.com';

let stack;
let redisPort;

before(async () => {
  stack = await startStack({ store: 'redis', sessionServices: 2, sessionEnv: { SESSION_MAX_PER_SUBJECT: '0' } });
  redisPort = new URL(stack.store).port;
});
after(() => stack?.stop());

const claims = (subject) => JSON.stringify({ sub: subject });
const creation = (subject) => Buffer.concat([field(1, ISSUER), field(2, claims(subject)), field(3, field(1, 'access'))]);
const person = (subject) => Buffer.concat([field(1, ISSUER), field(2, subject)]);

async function called(at, method, message) {
  const { status, messages, raw } = await invoke(stack.sessionUrls[at % 2], method, message);
  assert.equal(status, 0, `${method}: ${raw}`);
  return messages[0];
}

const redis = (...args) => execFileSync('redis-cli', ['-p', redisPort, ...args], { encoding: 'utf8' });

/** Microseconds of its processor Redis has used; time itself says nothing on a machine that does other work. */
const usedMicros = () => [...redis('INFO', 'cpu').matchAll(/used_cpu_(?:sys|user):([\d.]+)/g)].reduce((sum, [, secs]) => sum + Number(secs) * 1e6, 0);

/** Asks for somebody else's session until `work` is done; gives its outcome and the longest anybody waited. */
async function whileOthersAsk(work) {
  const other = new Client();
  await other.signIn(stack);
  let done = false;
  let longest = 0;
  const reading = (async () => {
    while (!done) {
      const began = Date.now();
      const answer = await other.fetch(`${stack.edgeUrl}/api/auth/me`, { headers: { accept: 'application/json' } });
      assert.equal(answer.status, 200);
      longest = Math.max(longest, Date.now() - began);
    }
  })();
  try {
    return { outcome: await work(), longest: () => longest };
  } finally {
    done = true;
    await reading;
  }
}

test('thousands of sessions are listed and ended a page at a time', async (t) => {
  for (let made = 0; made < SESSIONS; made += AT_ONCE) {
    const count = Math.min(AT_ONCE, SESSIONS - made);
    await Promise.all(Array.from({ length: count }, (_, at) => called(at, 'CreateSession', creation('mallory'))));
  }
  await called(0, 'CreateSession', creation('other'));

  const before = usedMicros();
  const listing = await whileOthersAsk(async () => {
    let [pages, token] = [0, Buffer.alloc(0)];
    do {
      // 200 on a page: a varint field of number 3.
      const request = Buffer.concat([person('mallory'), Buffer.from([0x18, 0xc8, 0x01]), field(4, token)]);
      token = fields(await called(pages, 'ListSessions', request))[2] ?? Buffer.alloc(0);
      pages += 1;
    } while (token.length > 0);
    return pages;
  });
  const page = (usedMicros() - before) / listing.outcome;
  t.diagnostic(`${listing.outcome} pages, ${page.toFixed(0)} µs of Redis each, others waited ${listing.longest()} ms`);
  assert.ok(listing.outcome >= SESSIONS / 200);
  assert.ok(page < PAGE_MICROS, `${page} µs`);
  assert.ok(listing.longest() < OTHERS_MS, `${listing.longest()} ms`);

  const ending = await whileOthersAsk(async () => {
    let ended = 0;
    // A call that was given up at its deadline goes on; one that is repeated finds what is left.
    while ((fields(await called(0, 'ListSessions', person('mallory')))[1] ?? '').length > 0) {
      const { status, messages, raw } = await invoke(stack.sessionUrls[1], 'EndSessions', person('mallory'));
      assert.ok([0, 4].includes(status), raw);
      ended += messages.length > 0 ? (fields(messages[0])[1] ?? 0) : 0;
    }
    return ended;
  });
  t.diagnostic(`${ending.outcome} delivered as ended, others waited ${ending.longest()} ms`);
  assert.ok(ending.longest() < OTHERS_MS, `${ending.longest()} ms`);
  const others = fields(await called(1, 'ListSessions', person('other')));
  assert.ok(others[1].length > 0, 'and nobody else was ended');
  const { status } = await invoke(stack.sessionUrls[0], 'GetSession', field(2, fields(others[1])[1]));
  assert.notEqual(status, NOT_FOUND);
});
