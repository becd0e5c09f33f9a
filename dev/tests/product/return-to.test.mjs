// Where a sign-in may land, checked by the URL parser of a browser's engine (V8's host implements the WHATWG standard): whatever the
// visitor requests, following the answers never leads off our origin.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

const SEED = 20_240_229;
const TRIES = 400;
const PARTS = ['/', '//', '\\', '\t', '\n', '\r', ' ', '.', '..', '%2e', '%2f', '%5c', '%09', ':', '@', '?', '#', ';', 'https:', 'http:', 'HTTPS:', 'javascript:', 'data:', 'blob:', 'evil.example', 'x', '\u3002', '\uff0f', '\u0000', '[::1]', '127.0.0.1'];
let stack;

before(async () => { stack = await startStack({ edgeEnv: { EDGE_RATE_LIMIT_LOGIN: '0' } }); });
after(() => stack?.stop());

/** Small and the same each time (mulberry32). */
function* random(seed) {
  for (let state = seed; ;) {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    yield ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

/** What a browser on our page would make of it, if we honour it. */
function expected(raw) {
  try {
    const url = new URL(raw, `${stack.edgeUrl}/`);
    const ours = url.protocol === 'http:' && url.host === new URL(stack.edgeUrl).host && !url.username && !url.password;
    return ours ? url.href : `${stack.edgeUrl}/`;
  } catch {
    return `${stack.edgeUrl}/`;
  }
}

// conformance: B-003
test('a return_to becomes the URL a browser makes of it on our origin, or the base', async () => {
  const numbers = random(SEED);
  const next = (below) => Math.floor(numbers.next().value * below);
  const host = new URL(stack.edgeUrl).host;
  const parts = [...PARTS, host, `${host}@`, `//${host}`];
  // A script gets the URL to navigate to: the same parsing without going to the provider.
  const ofScript = { 'sec-fetch-mode': 'cors', accept: 'application/json' };
  const visitor = new Client();
  let honoured = 0;
  for (let turn = 0; turn < TRIES; turn += 1) {
    const raw = Array.from({ length: 1 + next(8) }, () => parts[next(parts.length)]).join('');
    const answer = await visitor.fetch(`${stack.edgeUrl}/api/auth/login?${new URLSearchParams({ returnTo: raw })}`, { headers: ofScript });
    assert.equal(answer.status, 401, answer.text);
    const kept = new URL(answer.json().login_url).searchParams.get('returnTo') ?? `${stack.edgeUrl}/`;
    assert.equal(kept, expected(raw), JSON.stringify(raw));
    assert.equal(new URL(kept).origin, stack.edgeUrl, JSON.stringify(raw));
    if (kept !== `${stack.edgeUrl}/`) honoured += 1;
  }
  assert.ok(honoured > TRIES / 20, `${honoured} were honoured: the others would prove little`);
});
