// Shows what people see when a process is down, killed or restarted, and that no user is signed out by it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { pause, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

test('the session service refreshes an access token that expires', async (t) => {
  const refreshing = await startStack({ accessTokenTtl: 2, edgeEnv: { EDGE_ACCESS_TOKEN_ENDPOINT: 'true' } });
  t.after(() => refreshing.stop());
  const person = new Client();
  await person.signIn(refreshing);
  // The margin is half of the 2 s lifetime, so requests a second apart find the token expired and get a fresh one.
  const headers = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };
  const tokens = new Set();
  for (let count = 0; count < 3; count += 1) {
    await pause(1_100);
    const answer = await person.fetch(`${refreshing.edgeUrl}/api/auth/access-token`, { headers });
    assert.equal(answer.status, 200, answer.text);
    const { access_token: token } = answer.json();
    tokens.add(token);
    const userinfo = await fetch(`${refreshing.issuer}/me`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(userinfo.status, 200, 'the provider takes the token');
  }
  assert.equal(tokens.size, 3, 'each expiry brought a new token');
});

test('a refresh while the provider is down loses nothing', async (t) => {
  const refreshing = await startStack({ accessTokenTtl: 1, edgeEnv: { EDGE_ACCESS_TOKEN_ENDPOINT: 'true', OIDC_HTTP_TIMEOUT_MS: '1500' }, sessionEnv: { OIDC_HTTP_TIMEOUT_MS: '1500' } });
  t.after(() => refreshing.stop());
  const person = new Client();
  await person.signIn(refreshing);
  const ask = () => person.fetch(`${refreshing.edgeUrl}/api/auth/access-token`, { headers: { 'x-csrf': '1', 'sec-fetch-site': 'same-origin' } });
  let last;
  await refreshing.kill('idp'); // by SIGTERM, so that the provider saves its grants
  try {
    await until(10_000, async () => (await ask()).status === 503, () => 'an expired token with the provider down is not 503');
    assert.equal((await person.me(refreshing)).status, 200);
  } finally {
    await refreshing.start('idp');
  }
  await until(10_000, async () => (last = await ask()).status === 200, () => `the refresh does not work after the provider came back: ${last?.status} ${last?.text}`);
});

test('both services start without the provider and sign in once it is there', async (t) => {
  const late = await startStack({ edgeEnv: { OIDC_HTTP_TIMEOUT_MS: '1500' } });
  t.after(() => late.stop());
  await late.kill('idp', 'SIGKILL');
  await late.restart('session', 'SIGTERM');
  await late.restart('edge', 'SIGTERM');
  const person = new Client();
  const login = await person.navigate(`${late.edgeUrl}/api/auth/login`);
  assert.ok([502, 503, 504].includes(login.status), `${login.status}`);
  assert.deepEqual(login.headers.getSetCookie(), []);
  await late.start('idp');
  await until(10_000, async () => (await person.navigate(`${late.edgeUrl}/api/auth/login`)).status === 302, () => 'sign-in does not recover');
  await person.signIn(late);
});
