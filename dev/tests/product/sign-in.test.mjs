// The product as processes, with the real provider: sign-in, profile, sign-out, and the response of each route.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

const UNAUTHORIZED = '{"error":"not_authenticated","description":"The user does not have an active session or is not authenticated"}';
let stack;

before(async () => { stack = await startStack({ edgeEnv: { EDGE_RATE_LIMIT_LOGIN: '0' } }); });
after(() => stack?.stop());

test('a person signs in, sees the profile and signs out, also at the provider', async () => {
  const person = new Client();
  const landed = await person.signIn(stack, { login: '/api/auth/login?returnTo=/account%3Ftab%3D1%23top' });
  assert.equal(landed.headers.get('location'), `${stack.edgeUrl}/account?tab=1#top`);
  assert.equal(landed.headers.get('cache-control'), 'no-store');

  const me = await person.me(stack);
  assert.equal(me.status, 200);
  assert.equal(me.headers.get('cache-control'), 'no-store');
  const user = me.json();
  assert.equal(user.email, stack.accounts[0].email);
  for (const protocol of ['aud', 'iss', 'iat', 'exp', 'nbf', 'nonce', 'azp', 'auth_time', 's_hash', 'at_hash', 'c_hash', 'jti', 'sid', 'typ', 'scope', 'client_id']) {
    assert.ok(!(protocol in user), `${protocol} is the protocol's, not the person's`);
  }

  const out = await person.navigate(`${stack.edgeUrl}/api/auth/logout`);
  assert.equal(out.status, 302);
  assert.ok(out.headers.get('location').startsWith(stack.issuer), 'sign-out goes on at the provider');
  assert.equal(person.sessionCookie(stack), undefined);
  assert.equal((await person.me(stack)).status, 204);
});

test('the tokens of a second sign-in work after the session of the first has ended', async () => {
  const person = new Client();
  await person.signIn(stack);
  await person.signIn(stack);
  const profiles = [];
  // Long enough for the service's background work after the first response.
  await until(15_000, async () => {
    profiles.push((await person.me(stack, '/api/auth/me?refetch=true')).status);
    return profiles.length === 20;
  }, () => `${profiles}`);
  assert.deepEqual([...new Set(profiles)], [200]);
});

test('without a session me is 204 without a body and 401 is word for word', async () => {
  const stranger = new Client();
  const me = await stranger.me(stack);
  assert.equal(me.status, 204);
  assert.equal(me.text, '');
  const unauthorized = await stranger.fetch(`${stack.edgeUrl}/api/auth/401`);
  assert.equal(unauthorized.status, 401);
  assert.equal(unauthorized.text, UNAUTHORIZED);
});

// conformance: B-041 B-020
test('the browser never sees a token', async () => {
  const person = new Client();
  await person.signIn(stack);
  await person.me(stack);
  await person.me(stack, '/api/auth/me?refetch=true');
  await person.fetch(`${stack.edgeUrl}/api/auth/status`);
  await person.fetch(`${stack.edgeUrl}/api/auth/check`);
  for (const seen of person.seen.filter((text) => text.startsWith(stack.edgeUrl))) {
    assert.doesNotMatch(seen, /"?(access|refresh|id)_token"?\s*[:=]/);
    // The sign-out at the provider carries an id_token_hint by design; no other value may look like a JWT.
    assert.doesNotMatch(seen, /eyJ[\w-]+\.eyJ[\w-]+\./);
  }
});

test('status says what is left and check answers a proxy', async () => {
  const person = new Client();
  assert.deepEqual((await person.fetch(`${stack.edgeUrl}/api/auth/status`)).json(), { state: 'signed_out' });
  const refused = await person.fetch(`${stack.edgeUrl}/api/auth/check`);
  assert.equal(refused.status, 401);
  await person.signIn(stack);
  const status = (await person.fetch(`${stack.edgeUrl}/api/auth/status`)).json();
  assert.equal(status.state, 'active');
  assert.ok(status.expires_in > 86_000 && status.expires_in <= 86_400, `${status.expires_in}`);
  assert.ok(status.absolute_expires_in > 604_000 && status.absolute_expires_in <= 604_800, `${status.absolute_expires_in}`);
  const check = await person.fetch(`${stack.edgeUrl}/api/auth/check`);
  assert.equal(check.status, 200);
  assert.equal(check.headers.get('x-auth-subject'), (await person.me(stack)).json().sub);
  assert.match(check.headers.get('x-auth-session'), /^[0-9a-f]{32}$/);
});

test('signing out at the provider ends, back-channel, the session in every browser', async () => {
  const laptop = new Client();
  await laptop.signIn(stack);
  // A second browser in the same provider session signs in without a password.
  const tablet = new Client();
  tablet.jars.set(stack.issuer, new Map(laptop.cookies(stack.issuer)));
  await tablet.signIn(stack);
  assert.equal((await tablet.me(stack)).status, 200);
  // The same person with a separate provider session: the logout token names the other one.
  const desk = new Client();
  await desk.signIn(stack);

  const out = await laptop.navigate(`${stack.edgeUrl}/api/auth/logout`);
  const page = await laptop.follow(out.headers.get('location'));
  const [, xsrf] = /name="xsrf" value="([^"]+)"/.exec(page.text);
  const back = await laptop.navigate(`${stack.issuer}/session/end/confirm`, { method: 'POST', body: new URLSearchParams({ xsrf, logout: 'yes' }) });
  assert.ok(back.headers.get('location').startsWith(stack.edgeUrl), 'the provider sends the browser back');
  await until(15_000, async () => (await tablet.me(stack)).status === 204, () => 'the other browser is still signed in');
  assert.equal((await desk.me(stack)).status, 200, 'another session of the same person stays');
});
