// Front-channel logout with a real Redis: requests with guessed values store nothing.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import http from 'node:http';
import { after, before, test } from 'node:test';

import { freePort } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

const GUESSES = 5_000;
const AT_ONCE = 16;

let stack;
let redisPort;
before(async () => {
  redisPort = await freePort();
  stack = await startStack({ store: 'redis', ports: { redis: redisPort }, edgeEnv: { EDGE_FRONTCHANNEL_LOGOUT: 'true', EDGE_RATE_LIMIT_LOGIN: '0' } });
});
after(() => stack?.stop());

/** All keys with their values; streams with their length. */
function holdings() {
  const redis = (...args) => execFileSync('redis-cli', ['-p', String(redisPort), ...args], { encoding: 'utf8' }).trim();
  const streams = redis('--scan').split('\n').filter((name) => redis('TYPE', name) === 'stream').sort();
  return { keys: Number(redis('DBSIZE')), streams: streams.map((name) => [name, redis('XLEN', name)]) };
}

test('thousands of guessed provider sessions change neither keys nor the event stream', async () => {
  const person = new Client();
  await person.signIn(stack);
  const before = holdings();
  assert.ok(before.streams.length > 0, 'a sign-in is delivered');
  const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const guess = (at) => new Promise((resolve, reject) => {
    const url = `${stack.edgeUrl}/api/auth/frontchannel-logout?iss=${encodeURIComponent(stack.issuer)}&sid=guess-${at}`;
    http.get(url, { agent }, (answer) => { answer.resume().on('end', () => resolve(answer.statusCode)); }).on('error', reject);
  });
  const statuses = await Promise.all(Array.from({ length: GUESSES }, (_, at) => guess(at)));
  agent.destroy();
  assert.deepEqual([...new Set(statuses)], [200]);
  assert.deepEqual(holdings(), before);
  assert.equal((await person.me(stack)).status, 200);
});
