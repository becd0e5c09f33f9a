// Access tokens for named resources at the real provider: at sign-in and after a refresh (RFC 8707), and one for each API behind the edge, by
// refresh and by token exchange (RFC 8693).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

const ORDERS = 'https://orders.example.test/api';
const BILLING = 'https://billing.example.test/api';
const LIFETIME = 6; // seconds; a token counts as expired with half of it left, so each is used for three
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

/** A server that answers with what it was authorized by, and routes to it that name an API each. */
async function apis(t) {
  const server = createServer((request, response) => response.end(JSON.stringify(request.headers.authorization ?? '')));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => server.close());
  const upstream = `http://127.0.0.1:${server.address().port}`;
  const route = (path, more) => `[[route]]\npath = "${path}/*"\nguard = "api"\nupstream = "${upstream}"\naccess_token = true\n${more}\n`;
  return [route('/own', ''), route('/orders', `resource = "${ORDERS}"\nscopes = ["profile"]`), route('/billing', `resource = "${BILLING}"`)].join('');
}

/** What an upstream gets. */
async function shownTo(person, stack, path) {
  const answer = await person.fetch(`${stack.edgeUrl}${path}/a`, { headers: HEADERS });
  assert.equal(answer.status, 200, answer.text);
  return answer.json().replace('Bearer ', '');
}

for (const grant of ['refresh', 'exchange']) {
  test(`by ${grant} each API gets a token of its own, and another when it expires`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-apis-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const routes = join(folder, 'routes.toml');
    writeFileSync(routes, await apis(t));
    const settings = { OIDC_API_TOKENS: grant, ...(grant === 'refresh' && { OIDC_RESOURCE: `${ORDERS},${BILLING}` }) };
    const own = await startStack({ resources: [ORDERS, BILLING], accessTokenTtl: LIFETIME, routes, sessionEnv: settings, edgeEnv: settings });
    t.after(() => own.stop());
    const person = new Client();
    await person.signIn(own);
    const orders = await shownTo(person, own, '/orders');
    const billing = await shownTo(person, own, '/billing');
    assert.deepEqual([claimsOf(orders).aud, claimsOf(orders).scope, claimsOf(billing).aud], [ORDERS, 'profile', BILLING]);
    assert.equal(claimsOf(orders).sub, (await person.me(own)).json().sub);
    assert.notEqual(await shownTo(person, own, '/own'), orders);
    assert.equal(await shownTo(person, own, '/orders'), orders, 'kept while it is good');
    let next;
    await until(30_000, async () => { next = await shownTo(person, own, '/orders'); return next !== orders; }, () => 'the token is never renewed');
    assert.equal(claimsOf(next).aud, ORDERS);
    assert.equal((await person.fetch(`${own.edgeUrl}/own/a`, { headers: HEADERS })).status, 200, 'the session goes on');
  });
}
