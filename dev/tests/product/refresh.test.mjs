// Many requests at the moment an access token expires: two edges, two session services on Redis, and the real provider, which
// rotates refresh tokens and revokes everything when an old one comes again.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';
import { measured } from './measured.mjs';

const PARALLEL = 60;
const LIFETIME = 10; // seconds; a token counts as expired with half of it left, so each is used for five
const MARGIN = LIFETIME / 2;
const HEADERS = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };

let stack;
let person;

before(async () => {
  stack = await startStack({ edges: 2, sessionServices: 2, store: 'redis', accessTokenTtl: LIFETIME, edgeEnv: { EDGE_ACCESS_TOKEN_ENDPOINT: 'true' } });
  person = new Client();
  await person.signIn(stack);
});
after(() => stack?.stop());

const ask = () => person.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers: HEADERS });

/** All at once; gives the one token everybody got. */
async function askAllAtOnce() {
  const answers = await Promise.all(Array.from({ length: PARALLEL }, ask));
  for (const answer of answers) assert.equal(answer.status, 200, answer.text);
  const tokens = new Map(answers.map((answer) => [answer.json().access_token, answer.json()]));
  assert.equal(tokens.size, 1, 'everybody gets the same token');
  const [token] = tokens.values();
  const userinfo = await fetch(`${stack.issuer}/me`, { headers: { authorization: `Bearer ${token.access_token}` } });
  assert.equal(userinfo.status, 200, 'the provider takes it');
  return token;
}

test('each expiry costs one grant, however many ask, and the next refresh works too', async () => {
  let token = (await ask()).json();
  for (let expiry = 1; expiry <= 3; expiry += 1) {
    const expired = () => Date.now() / 1000 > token.expires_at - MARGIN + 0.5;
    await until(20_000, expired, () => 'the token never counts as expired');
    const fresh = await askAllAtOnce();
    assert.notEqual(fresh.access_token, token.access_token);
    assert.equal(await measured(stack, 'session_refresh_provider_duration_seconds_count'), expiry, 'grants requested');
    assert.equal(await measured(stack, 'session_refreshes_total{outcome="refreshed"}'), expiry);
    token = fresh;
  }
  assert.equal(await measured(stack, 'session_refreshes_total{outcome="refused"}'), 0);
  assert.equal((await person.me(stack)).status, 200);
});
