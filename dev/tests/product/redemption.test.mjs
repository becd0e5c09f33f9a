// One callback that reaches two edges, with the certified provider, which takes the whole grant back when a code is redeemed twice.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { pause, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client, NAVIGATION, request } from './client.mjs';
import { measured } from './measured.mjs';

const HTTP_TIMEOUT_MS = 2_000;
const LIFETIME_S = 2; // of access tokens, which count as expired with half of it left
const DUE_MS = LIFETIME_S * 500 + 100;
let stack;

before(async () => {
  stack = await startStack({
    edges: 2, sessionServices: 2, store: 'redis', accessTokenTtl: LIFETIME_S,
    edgeEnv: { EDGE_RATE_LIMIT_LOGIN: '0', EDGE_ACCESS_TOKEN_ENDPOINT: 'true', OIDC_HTTP_TIMEOUT_MS: String(HTTP_TIMEOUT_MS) },
  });
});
after(() => stack?.stop());

/** The same callback at the edge of this number, with the cookies of the same browser. */
function callbackAt(edge, callback, cookie) {
  const { pathname, search, host } = new URL(callback);
  return request(`${stack.edgeUrls[edge]}${pathname}${search}`, { headers: { ...NAVIGATION, host, cookie } });
}

const cookiesOf = (person) => [...person.cookies(stack.edgeUrl)].map(([name, value]) => `${name}=${value}`).join('; ');
const sessionOf = (answer) => answer.headers.getSetCookie().map((line) => line.split(';')[0]).find((pair) => /session=./.test(pair));

/** How often a sign-in was claimed, or waited for. */
const claims = () => measured(stack, 'rpc_server_call_duration_seconds_count{rpc_method="session.v1.SessionService/BeginSignIn"');

test('a callback that reaches two edges at once is one sign-in', async () => {
  for (let round = 0; round < 3; round += 1) {
    const person = new Client();
    const callback = await person.authorize(stack);
    const before = await claims();
    // The provider answers when both are there: a callback that comes behind the sign-in is another case.
    process.kill(stack.pid('idp'), 'SIGSTOP');
    const both = Promise.all([0, 1].map((edge) => callbackAt(edge, callback, cookiesOf(person))));
    try {
      await until(HTTP_TIMEOUT_MS, async () => await claims() >= before + 2, () => 'the two edges did not come to the session service');
    } finally {
      process.kill(stack.pid('idp'), 'SIGCONT');
    }
    const answers = await both;
    assert.deepEqual(answers.map(({ status }) => status), [302, 302], answers.map(({ text }) => text).join('\n'));
    const [session, other] = answers.map(sessionOf);
    assert.ok(session);
    assert.equal(other.split('=')[0], session.split('=')[0]);
    assert.equal(other, session, 'both give the browser the same session');
    await pause(DUE_MS);
    const token = await request(`${stack.edgeUrl}/api/auth/access-token`, {
      headers: { cookie: session, 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' },
    });
    assert.equal(token.status, 200, `the refresh token of the sign-in is good: ${token.text}`);
  }
});

test('an edge killed while redeeming leaves an answer at the other, redeemed once', async () => {
  const person = new Client();
  const callback = await person.authorize(stack);
  const cookie = cookiesOf(person);
  // The other edge knows the provider too, or it could not be asked for what it does while the provider stands still.
  const neighbour = new Client();
  assert.equal((await callbackAt(1, await neighbour.authorize(stack), cookiesOf(neighbour))).status, 302);
  const before = await claims();
  process.kill(stack.pid('idp'), 'SIGSTOP');
  let first;
  try {
    first = callbackAt(0, callback, cookie).catch((error) => error);
    await until(HTTP_TIMEOUT_MS, async () => await claims() > before, () => 'the first edge did not claim the sign-in');
    const waiting = callbackAt(1, callback, cookie);
    await stack.kill('edge', 'SIGKILL');
    assert.ok((await first) instanceof Error, 'the first edge is gone before it could answer');
    const answer = await waiting;
    assert.equal(answer.status, 400, answer.text);
    assert.equal(sessionOf(answer), undefined);
  } finally {
    process.kill(stack.pid('idp'), 'SIGCONT');
    await stack.start('edge');
  }
  const again = await person.signIn(stack);
  assert.ok(sessionOf(again), 'signing in anew works');
});
