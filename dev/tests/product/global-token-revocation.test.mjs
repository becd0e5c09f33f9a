// One request signs a user out of every device (Global Token Revocation), with a real provider, two edges and Redis.
import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';

const PATH = '/api/auth/global-token-revocation';
const AUDIENCE = `https://app.example${PATH}`;
const HEADER = `Bearer ${randomBytes(24).toString('hex')}`;
const FOLDER = mkdtempSync(join(tmpdir(), 'vestibule-revocation-'));
const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
let stack;
let publisher;
let issuer;

before(async () => {
  const idp = await freePort();
  publisher = http.createServer(({ url }, response) => {
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' };
    const document = url === '/keys' ? { keys: [jwk] } : { issuer, jwks_uri: `${issuer}/keys` };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
  }).listen(0, '127.0.0.1');
  await once(publisher, 'listening');
  issuer = `http://127.0.0.1:${publisher.address().port}`;
  const write = (name, text) => {
    const path = join(FOLDER, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const provider = `provider = "http://127.0.0.1:${idp}"`;
  const signals = write('signals.toml', [
    '[[transmitter]]', 'id = "incidents"', 'issuer = "https://incidents.example"', `audience = "${AUDIENCE}"`, provider, 'global_token_revocation = true', `authorization_file = "${write('header', HEADER)}"`,
    '[[transmitter]]', 'id = "org"', `issuer = "${issuer}"`, `audience = "${AUDIENCE}"`, provider, 'global_token_revocation = true', '',
  ].join('\n'));
  stack = await startStack({ store: 'redis', edges: 2, ports: { idp }, edgeEnv: { EDGE_RATE_LIMIT_LOGIN: '0' }, sessionEnv: { SESSION_SIGNALS: signals } });
});
after(async () => {
  await stack?.stop();
  publisher.closeAllConnections();
  publisher.close();
  rmSync(FOLDER, { recursive: true, force: true });
});

/** Sends a request; returns the status. */
async function revoke(subject, authorization) {
  const headers = { authorization, 'content-type': 'application/json' };
  return (await request(`${stack.edgeUrl}${PATH}`, { method: 'POST', headers, body: JSON.stringify({ sub_id: subject }) })).status;
}

/** The header with a JWT as Okta documents it. */
function signed(claims = {}) {
  const now = Math.floor(Date.now() / 1000);
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const head = part({ typ: 'global-token-revocation+jwt', alg: 'ES256', kid: 'one' });
  const text = `${head}.${part({ iss: issuer, aud: AUDIENCE, sub: 'app', jti: randomUUID(), iat: now, nbf: now - 300, exp: now + 300, ...claims })}`;
  return `Bearer ${text}.${sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

async function signIn(account) {
  const device = new Client();
  await device.signIn(stack, { account });
  return device;
}

const isSignedIn = async (device) => (await device.me(stack)).status === 200;

test('one request signs a user out of two devices, and no other user', async () => {
  const [ada, grace] = stack.accounts;
  for (const [authorization, format] of [[HEADER, 'email'], [signed(), 'iss_sub']]) {
    const devices = [await signIn(ada), await signIn(ada)];
    const other = await signIn(grace);
    const sub = (await devices[0].me(stack)).json().sub;
    const subject = format === 'email' ? { format, email: ada.email } : { format, iss: stack.issuer, sub };
    for (const wrong of [`${HEADER}0`, signed({ aud: 'https://other.example' }), signed({ exp: 1 })]) assert.equal(await revoke(subject, wrong), 401);
    for (const device of devices) assert.ok(await isSignedIn(device));
    assert.equal(await revoke(subject, authorization), 204);
    for (const device of devices) await until(5_000, async () => !(await isSignedIn(device)), () => `signed out by ${format}: not in time`);
    assert.ok(await isSignedIn(other));
    assert.ok(await isSignedIn(await signIn(ada)), 'a new sign-in is a new session');
  }
});

test('an unknown user gets the same answer as a known one, and a user of another provider is refused', async () => {
  assert.equal(await revoke({ format: 'email', email: 'nobody@example.test' }, HEADER), 204);
  assert.equal(await revoke({ format: 'iss_sub', iss: 'https://other.example', sub: 'ada' }, HEADER), 403);
  assert.equal(await revoke({ format: 'phone_number', phone_number: '+12065550100' }, HEADER), 400);
});
