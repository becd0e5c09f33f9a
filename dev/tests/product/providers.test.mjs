// One edge, one session service and two real providers that know the same people by the same subjects.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { pause, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client, NAVIGATION, request } from './client.mjs';

const AT_OTHER = '/api/auth/login?connection=other';
const LIFETIME_S = 2; // of access tokens, which count as expired with half of it left
const DUE_MS = LIFETIME_S * 500 + 100;
const SCRIPT = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };
let stack;

before(async () => {
  stack = await startStack({ secondProvider: true, accessTokenTtl: LIFETIME_S, edgeEnv: { EDGE_RATE_LIMIT_LOGIN: '0', EDGE_ACCESS_TOKEN_ENDPOINT: 'true' } });
});
after(() => stack?.stop());

const accepts = async (issuer, token) => (await fetch(`${issuer}/me`, { headers: { authorization: `Bearer ${token}` } })).status === 200;

/** Signs in, and makes sure that it was there. */
async function signedIn(login, issuer) {
  const person = new Client();
  const callback = await person.authorize(stack, { login });
  assert.equal(new URL(callback).searchParams.get('iss'), issuer);
  assert.equal((await person.navigate(callback)).status, 302);
  assert.equal((await person.me(stack)).json().email, stack.accounts[0].email);
  return person;
}

test('a session is renewed, and signed out, at the provider it came from', async () => {
  for (const [login, issuer, another] of [['/api/auth/login', stack.issuer, stack.otherIssuer], [AT_OTHER, stack.otherIssuer, stack.issuer]]) {
    const person = await signedIn(login, issuer);
    await pause(DUE_MS);
    const answer = await person.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers: SCRIPT });
    assert.equal(answer.status, 200, answer.text);
    const { access_token: token } = answer.json();
    assert.ok(await accepts(issuer, token), 'renewed where the person signed in');
    assert.ok(!(await accepts(another, token)), 'and worth nothing elsewhere');
    const out = await person.navigate(`${stack.edgeUrl}/api/auth/logout`);
    assert.ok(out.headers.get('location').startsWith(`${issuer}/`), out.headers.get('location'));
  }
});

test('the answer of one provider is worth nothing on a sign-in begun at the other', async () => {
  const person = new Client();
  const begun = await person.navigate(`${stack.edgeUrl}${AT_OTHER}`);
  const state = new URL(begun.headers.get('location')).searchParams.get('state');
  const callback = new URL(await person.authorize(stack));
  callback.searchParams.set('state', state);
  const mixed = await person.navigate(callback.href);
  assert.equal(mixed.status, 400, mixed.text);
  assert.equal((await person.me(stack)).status, 204);
});

test('signing out of one provider leaves the namesake at the other alone', async () => {
  const here = await signedIn('/api/auth/login', stack.issuer);
  const there = await signedIn(AT_OTHER, stack.otherIssuer);
  assert.equal((await here.me(stack)).json().sub, (await there.me(stack)).json().sub);
  await here.follow(`${stack.edgeUrl}/api/auth/logout`);
  assert.equal((await here.me(stack)).status, 204);
  assert.equal((await there.me(stack)).status, 200);
});

test('while one provider is down people sign in at the other, also after a restart', async () => {
  const login = () => request(`${stack.edgeUrl}/api/auth/login`, { headers: NAVIGATION });
  await stack.kill('idp');
  try {
    await stack.restart('edge');
    await stack.restart('session');
    await signedIn(AT_OTHER, stack.otherIssuer);
    const refused = await login();
    assert.equal(refused.status, 503, refused.text);
  } finally {
    await stack.start('idp');
  }
  // A provider that did not answer is called again a moment later, not by every sign-in.
  await until(10_000, async () => (await login()).status === 302, () => 'the provider is not called again');
  await signedIn('/api/auth/login', stack.issuer);
});
