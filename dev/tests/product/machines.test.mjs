// API clients with tokens of their own at the real provider: from an address alone to an answer, with JWTs (RFC 9068), opaque tokens
// (RFC 7662) and bound ones (RFC 9449), in the ways a service and an MCP client go.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

const ORDERS = 'https://orders.example.test/';
const OPAQUE = 'https://opaque.example.test/';
const MACHINE = 'a-service';
const FOLDER = mkdtempSync(join(tmpdir(), 'vestibule-machines-'));
const seen = [];
let stack;
let upstream;

before(async () => {
  upstream = http.createServer((request, response) => {
    seen.push(request.headers);
    response.end('orders');
  });
  await new Promise((listening) => upstream.listen(0, '127.0.0.1', listening));
  const at = `http://127.0.0.1:${upstream.address().port}`;
  const rule = (path, ...lines) => ['[[route]]', `path = "${path}"`, 'guard = "api"', `upstream = "${at}"`, '[route.bearer]', ...lines, ''].join('\n');
  const routes = join(FOLDER, 'routes.toml');
  writeFileSync(routes, [
    rule('/api/orders/*', `audience = "${ORDERS}"`, 'scopes = ["orders:read"]'),
    rule('/api/opaque/*', `audience = "${OPAQUE}"`, 'introspection = true'),
    rule('/mcp', 'scopes = ["orders:read"]'),
  ].join(''));
  const edge = await freePort();
  stack = await startStack({
    ports: { edge }, routes, machineClient: MACHINE, resources: [ORDERS, `http://127.0.0.1:${edge}/mcp`], opaqueResources: [OPAQUE],
  });
});
after(async () => {
  await stack?.stop();
  upstream?.close();
  rmSync(FOLDER, { recursive: true, force: true });
});

const encode = (part) => Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url');

/** A key and the proofs made with it. */
function holder() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = publicKey.export({ format: 'jwk' });
  return (method, address, token) => {
    const claims = { htm: method, htu: address, iat: Math.floor(Date.now() / 1000), jti: randomUUID() };
    if (token) claims.ath = createHash('sha256').update(token).digest('base64url');
    const signed = `${encode({ typ: 'dpop+jwt', alg: 'ES256', jwk })}.${encode(claims)}`;
    return `${signed}.${sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  };
}

/** The token endpoint's answer to the client credentials grant. */
async function grant(tokenEndpoint, parameters, headers = {}) {
  const answer = await fetch(tokenEndpoint, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${MACHINE}:${stack.secrets.client}`).toString('base64')}`, ...headers },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...parameters }),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

const tokenFor = async (resource, scope = 'orders:read') => (await grant(`${stack.issuer}/token`, { resource, scope })).access_token;
const call = (path, authorization, headers = {}) => fetch(`${stack.edgeUrl}${path}`, { headers: { authorization, ...headers } });

test('a service gets through with a token for the resource and its scope, and with no other', async () => {
  const token = await tokenFor(ORDERS);
  assert.equal(JSON.parse(Buffer.from(token.split('.')[0], 'base64url')).typ, 'at+jwt');
  const answer = await call('/api/orders/7', `Bearer ${token}`);
  assert.deepEqual([answer.status, await answer.text()], [200, 'orders']);
  const got = seen.at(-1);
  assert.deepEqual([got['x-auth-subject'], got['x-auth-client'], got['x-auth-issuer']], [MACHINE, MACHINE, stack.issuer]);
  assert.deepEqual([got.authorization, got['x-auth-session']], [undefined, undefined]);
  for (const [wrong, status] of [
    [await tokenFor(`${stack.edgeUrl}/mcp`), 401],
    [await tokenFor(OPAQUE), 401],
    [await tokenFor(ORDERS, 'profile'), 403],
    [`${token.slice(0, -8)}AAAAAAAA`, 401],
  ]) {
    assert.equal((await call('/api/orders/7', `Bearer ${wrong}`)).status, status, wrong);
  }
});

test('a client that knows an address alone finds the provider, asks for a token for it, and comes back', async () => {
  const address = `${stack.edgeUrl}/mcp`;
  const first = await fetch(address, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
  assert.equal(first.status, 401);
  const challenge = first.headers.get('www-authenticate');
  const [, where] = /^Bearer .*?resource_metadata="([^"]+)"/.exec(challenge);
  const metadata = await (await fetch(where)).json();
  assert.equal(metadata.resource, address);
  const [server] = metadata.authorization_servers;
  const discovered = await (await fetch(`${server}/.well-known/openid-configuration`)).json();
  assert.equal(discovered.issuer, server);
  const { access_token: token } = await grant(discovered.token_endpoint, { resource: metadata.resource, scope: metadata.scopes_supported.join(' ') });
  const answer = await fetch(address, { method: 'POST', body: '{}', headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 200, await answer.text());
});

test('an opaque token is asked about, and no more after it was revoked', async () => {
  const token = await tokenFor(OPAQUE);
  assert.equal(token.split('.').length, 1);
  assert.equal((await call('/api/opaque/7', `Bearer ${token}`)).status, 200);
  assert.equal(seen.at(-1)['x-auth-client'], MACHINE);
  const revoked = await fetch(`${stack.issuer}/token/revocation`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${MACHINE}:${stack.secrets.client}`).toString('base64')}` },
    body: new URLSearchParams({ token }),
  });
  assert.equal(revoked.status, 200, await revoked.text());
  await until(20_000, async () => (await call('/api/opaque/7', `Bearer ${token}`)).status === 401, () => 'a revoked token goes on');
});

test('a bound token passes with a proof for each request, and neither without nor twice with one', async () => {
  const proof = holder();
  const { access_token: token, token_type: type } = await grant(`${stack.issuer}/token`, { resource: ORDERS, scope: 'orders:read' }, { dpop: proof('POST', `${stack.issuer}/token`) });
  assert.equal(type, 'DPoP');
  const address = `${stack.edgeUrl}/api/orders/7`;
  const shown = proof('GET', address, token);
  assert.equal((await call('/api/orders/7', `DPoP ${token}`, { dpop: shown })).status, 200);
  assert.equal((await call('/api/orders/7', `DPoP ${token}`, { dpop: shown })).status, 401);
  assert.equal((await call('/api/orders/7', `DPoP ${token}`)).status, 401);
  assert.equal((await call('/api/orders/7', `Bearer ${token}`)).status, 401);
  const stolen = holder()('GET', address, token);
  assert.equal((await call('/api/orders/7', `DPoP ${token}`, { dpop: stolen })).status, 401);
  const sent = { method: 'POST', body: 'a=b', headers: { authorization: `DPoP ${token}`, dpop: proof('POST', address, token) } };
  assert.equal((await fetch(address, sent)).status, 200);
});

test('people go on as ever beside them, and their ID token opens nothing', async () => {
  const person = new Client();
  await person.signIn(stack);
  assert.equal((await person.fetch(`${stack.edgeUrl}/api/orders/7`)).status, 200);
  assert.ok(seen.at(-1)['x-auth-session']);
  const wrong = await person.fetch(`${stack.edgeUrl}/api/orders/7`, { headers: { authorization: 'Bearer forged' } });
  assert.equal(wrong.status, 401);
  assert.equal((await person.fetch(`${stack.edgeUrl}/api/orders/7`)).status, 200, 'and is signed in still');
});
