// A client that authenticates with a key, at a provider that takes the token endpoint alone as the assertion's audience.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { freePort } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from '../product/client.mjs';
import { registration, settings } from './documents.mjs';
import { canaille } from './drivers/canaille.mjs';
import { ACCOUNT } from './suite.mjs';
import { walk } from './walk.mjs';

const CLIENT = { id: 'vestibule', secret: 'unused' };
const folder = mkdtempSync(join(tmpdir(), 'vestibule-key-'));
let [provider, edge, edgeUrl] = [];

before(async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(join(folder, 'client.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  edge = await freePort();
  edgeUrl = `http://127.0.0.1:${edge}`;
  provider = await canaille.start({
    edgeUrl, registration: registration(edgeUrl), client: CLIENT, account: ACCOUNT, accessTokenSecs: 300, clientKeys: `${edgeUrl}/.well-known/vestibule/client-jwks.json`,
  });
});
after(async () => {
  await provider?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Signs in once; gives the callback's status. */
async function signIn() {
  const stack = await startStack({
    ports: { edge }, store: 'memory:', edgeEnv: { LOG_FORMAT: 'pretty', EDGE_POST_LOGOUT_REDIRECT: undefined },
    provider: { ...settings(canaille.name, provider.origin, CLIENT), OIDC_CLIENT_AUTH_METHOD: 'private_key_jwt', OIDC_CLIENT_KEY_FILE: join(folder, 'client.pem') },
  });
  try {
    const person = new Client();
    const { landed, seen } = await walk(person, `${edgeUrl}/api/auth/login`, { edgeUrl, answer: provider.answer });
    assert.ok(landed, seen.join('\n'));
    const answer = await person.navigate(landed);
    return answer.status;
  } finally {
    await stack.stop();
  }
}

test('the assertion is made for the token endpoint once the issuer was refused', async () => {
  assert.equal(await signIn(), 302);
});
