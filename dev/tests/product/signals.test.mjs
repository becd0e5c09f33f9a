// Two deployments of the product send session endings to each other's edge (OpenID Shared Signals).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { binary, startStack } from '../../stack.mjs';
import { field, fields, invoke } from './grpc.mjs';

const FOLDER = mkdtempSync(join(tmpdir(), 'vestibule-signals-'));
const PROVIDER = 'http://127.0.0.1:9'; // the issuer of both deployments' sessions; the test sends it no request
const CAUSE_LOGOUT = 1;
const [MISSING, OK] = [5, 0]; // gRPC
let here;
let there;

const file = (name, text) => {
  const path = join(FOLDER, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};

/** Serves metadata and keys as files, as an operator publishes them. */
async function startPublisher() {
  const publisher = {};
  publisher.server = http.createServer((request, response) => {
    const name = { '/.well-known/ssf-configuration': 'metadata', '/jwks.json': 'keys' }[request.url];
    response.writeHead(name ? 200 : 404, { 'content-type': 'application/json' }).end(publisher.documents[name]);
  }).listen(0, '127.0.0.1');
  await once(publisher.server, 'listening');
  publisher.issuer = `http://127.0.0.1:${publisher.server.address().port}`;
  return publisher;
}

/** A deployment that sends its events to the edge of `other`, and accepts events from `other`. */
async function deployment({ name, publisher, edge }, other, header) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signals = file(`${name}-signals.toml`, [
    `issuer = "${publisher.issuer}"`, `signing_key_file = "${file(`${name}.pem`, privateKey.export({ type: 'pkcs8', format: 'pem' }))}"`,
    '[[receiver]]', `id = "${other.name}"`, `audience = "https://${other.name}.example"`, `url = "http://127.0.0.1:${other.edge}/api/auth/events"`, `authorization_file = "${header}"`,
    '[[transmitter]]', `id = "${other.name}"`, `issuer = "${other.publisher.issuer}"`, `audience = "https://${name}.example"`, `provider = "${PROVIDER}"`, `authorization_file = "${header}"`, '',
  ].join('\n'));
  const sessionEnv = { SESSION_SIGNALS: signals };
  publisher.documents = Object.fromEntries(['metadata', 'keys'].map((name) => [name, execFileSync(binary('session-svc'), ['receivers', name], { env: { ...process.env, ...sessionEnv } })]));
  const stack = await startStack({ store: 'redis', ports: { edge }, provider: { OIDC_ISSUER_URL: PROVIDER, OIDC_CLIENT_ID: 'vestibule', OIDC_CLIENT_SECRET: randomBytes(16).toString('hex') }, sessionEnv });
  const call = (method, message) => invoke(stack.sessionUrls[0], method, message);
  return {
    stack,
    /** Creates a session for a person; returns its secret. */
    async signIn(sub) {
      const user = field(2, JSON.stringify({ sub }));
      const { status, raw, messages } = await call('CreateSession', Buffer.concat([field(1, PROVIDER), user, field(8, randomUUID())]));
      assert.equal(status, OK, raw);
      return fields(messages[0])[1].toString();
    },
    signOut: (id) => call('EndSession', Buffer.concat([field(1, id), Buffer.from([0x18, CAUSE_LOGOUT])])),
    isThere: async (id) => (await call('GetSession', field(1, id))).status !== MISSING,
  };
}

let publishers = [];

before(async () => {
  const ports = await Promise.all([freePort(), freePort()]);
  publishers = await Promise.all([startPublisher(), startPublisher()]);
  const header = file('header', `Bearer ${randomBytes(24).toString('hex')}`);
  const sides = ['here', 'there'].map((name, at) => ({ name, publisher: publishers[at], edge: ports[at] }));
  [here, there] = await Promise.all([deployment(sides[0], sides[1], header), deployment(sides[1], sides[0], header)]);
});
after(async () => {
  await Promise.all([here, there].map((one) => one?.stack.stop()));
  for (const { server } of publishers) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(FOLDER, { recursive: true, force: true });
});

test('a user who signs out at one is signed out at the other, in both directions, and no other user is', async () => {
  // Two users: an event also ends a session that the same user begins within its second.
  for (const [one, other, user] of [[here, there, 'alice'], [there, here, 'dora']]) {
    const [theirs, same, somebodyElse] = [await one.signIn(user), await other.signIn(user), await other.signIn('bob')];
    await one.signOut(theirs);
    await until(20_000, async () => !(await other.isThere(same)), () => 'the session at the other is over: not in time');
    assert.ok(await other.isThere(somebodyElse));
  }
});

test('an ending that could not be sent is sent when the other is back', async () => {
  const [theirs, same] = [await here.signIn('carol'), await there.signIn('carol')];
  await there.stack.kill('edge', 'SIGKILL');
  await here.signOut(theirs);
  await here.stack.restart('session', 'SIGKILL');
  assert.ok(await there.isThere(same));
  await there.stack.start('edge');
  await until(60_000, async () => !(await there.isThere(same)), () => 'the session at the other is over: not in time');
});
