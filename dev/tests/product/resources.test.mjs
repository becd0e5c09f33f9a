// Access tokens for one named resource (RFC 8707) at the real provider, at sign-in and after a refresh.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

const ORDERS = 'https://orders.example.test/api';
const LIFETIME = 63; // seconds; a token counts as expired with 60 left, so each is used for three
const HEADERS = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };
const ASKS_FOR_ORDERS = { OIDC_RESOURCE: ORDERS };
let stack;

before(async () => {
  stack = await startStack({
    resources: [ORDERS], accessTokenTtl: LIFETIME, sessionEnv: ASKS_FOR_ORDERS, edgeEnv: { ...ASKS_FOR_ORDERS, EDGE_ACCESS_TOKEN_ENDPOINT: 'true' },
  });
});
after(() => stack?.stop());

const claimsOf = (jwt) => JSON.parse(Buffer.from(jwt.split('.')[1], 'base64url'));

async function accessToken(person) {
  const answer = await person.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers: HEADERS });
  assert.equal(answer.status, 200, answer.text);
  return answer.json().access_token;
}

test('the access token is for the configured resource, and so is the next one', async () => {
  const person = new Client();
  await person.signIn(stack);
  const first = await accessToken(person);
  const { aud, iss, sub, client_id: client } = claimsOf(first);
  assert.deepEqual([aud, iss, client], [ORDERS, stack.issuer, 'vestibule-dev']);
  assert.equal(sub, (await person.me(stack)).json().sub);
  let next;
  await until(30_000, async () => { next = await accessToken(person); return next !== first; }, () => 'the token is never refreshed');
  assert.equal(claimsOf(next).aud, ORDERS);
});

test('a resource the provider does not know ends no session and begins none', async (t) => {
  const other = await startStack({ resources: [ORDERS], edgeEnv: { OIDC_RESOURCE: 'https://unknown.example.test/' } });
  t.after(() => other.stop());
  const person = new Client();
  const answer = await person.follow(`${other.edgeUrl}/api/auth/login`);
  assert.ok(answer.status >= 400, `${answer.status} ${answer.text}`);
  assert.equal((await person.me(other)).status, 204);
  assert.equal(person.sessionCookie(other), undefined);
});
