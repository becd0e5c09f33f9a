// The strictest way to be a client, at the real provider: keys it fetches from us, pushed and signed requests, and tokens bound to
// a key (RFC 7523, 9101, 9126, 9449), at sign-in and at every refresh with rotation after it.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { probe, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

const LIFETIME = 4; // seconds; a token counts as expired with half of it left, so each is used for two
const REFRESHES = 3;
const KEYS = mkdtempSync(join(tmpdir(), 'vestibule-keys-'));
let stack;

function keyFile(name) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const file = join(KEYS, name);
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  return file;
}

before(async () => {
  const settings = {
    OIDC_CLIENT_KEY_FILE: keyFile('client.pem'), OIDC_SIGNED_REQUESTS: 'true', OIDC_PAR: 'require', OIDC_DPOP: 'on', OIDC_DPOP_KEY_FILE: keyFile('dpop.pem'),
  };
  stack = await startStack({ clientAuth: 'private_key_jwt', requireDpopNonce: true, accessTokenTtl: LIFETIME, edgeEnv: settings, sessionEnv: settings });
});
after(async () => {
  await stack?.stop();
  rmSync(KEYS, { recursive: true, force: true });
});

/** The sum of the session service's samples whose name and labels begin like this. */
async function measured(beginning) {
  const { body } = await probe(`${stack.adminUrls.session}/metrics`);
  return body.split('\n').filter((line) => line.startsWith(beginning)).reduce((sum, line) => sum + Number(line.split(' ').pop()), 0);
}

test('tokens of a sign-in are refreshed and rotated repeatedly, sign-out revokes them', async () => {
  const person = new Client();
  const started = await person.navigate(`${stack.edgeUrl}/api/auth/login`);
  assert.deepEqual([...new URL(started.headers.get('location')).searchParams.keys()], ['client_id', 'request_uri']);
  await person.signIn(stack);
  for (let refresh = 1; refresh <= REFRESHES; refresh += 1) {
    await until(30_000, async () => {
      const me = await person.me(stack, '/api/auth/me?refetch=true');
      assert.equal(me.status, 200, me.text);
      assert.equal(me.json().email, stack.accounts[0].email);
      return (await measured('session_refreshes_total{outcome="refreshed"}')) >= refresh;
    }, () => `refresh ${refresh} never happens`);
  }
  assert.equal(await measured('session_refreshes_total{outcome="refused"}'), 0);
  const out = await person.navigate(`${stack.edgeUrl}/api/auth/logout`);
  assert.equal(out.status, 302);
  assert.equal((await person.me(stack)).status, 204);
  await until(15_000, async () => (await measured('session_revocations_total{outcome="done"}')) >= 1, () => 'the refresh token is never revoked');
});
