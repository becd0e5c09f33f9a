// Two deployments of the product that tell each other of endings (OpenID Shared Signals): one pushes to the other's edge, and fetches what the other has
// for it. Their streams are adopted and verified by the operator's tool.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { freePort, until } from '../../lib/net.mjs';
import { binary, startStack } from '../../stack.mjs';
import { field, fields, invoke } from './grpc.mjs';

const FOLDER = mkdtempSync(join(tmpdir(), 'vestibule-signals-'));
const PROVIDER = 'http://127.0.0.1:9'; // whose sessions both have; nobody is asked there
const CAUSE_LOGOUT = 1;
const [MISSING, OK] = [5, 0]; // gRPC
let here;
let there;

const file = (name, text) => {
  const path = join(FOLDER, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};

/** A deployment: it tells `tells` and listens to `hears`. */
async function deployment(name, { signals, edge, tells, hears }) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const receivers = file(`${name}-receivers.toml`, [
    `issuer = "${signals}"`, `signing_key_file = "${file(`${name}.pem`, privateKey.export({ type: 'pkcs8', format: 'pem' }))}"`,
    '[[receiver]]', `id = "${tells.id}"`, `audience = "${tells.audience}"`, `token_file = "${tells.token}"`, ...tells.lines, '',
  ].join('\n'));
  const transmitters = file(`${name}-transmitters.toml`, [
    '[[transmitter]]', `id = "${hears.id}"`, `issuer = "${hears.issuer}"`, `audience = "${hears.audience}"`, `provider = "${PROVIDER}"`, `token_file = "${hears.token}"`, ...hears.lines, '',
  ].join('\n'));
  const sessionEnv = { SESSION_RECEIVERS: receivers, SESSION_SIGNALS_LISTEN: new URL(signals).host, SESSION_TRANSMITTERS: transmitters };
  const stack = await startStack({ store: 'redis', ports: { edge }, provider: { OIDC_ISSUER_URL: PROVIDER, OIDC_CLIENT_ID: 'vestibule', OIDC_CLIENT_SECRET: randomBytes(16).toString('hex') }, sessionEnv });
  /** The operator's tool with the settings of the service. */
  const tool = async (...args) => {
    const env = { ...process.env, ...sessionEnv, SESSION_STORE: stack.store, SESSION_ENCRYPTION_KEY: stack.secrets.encryption, OIDC_ISSUER_URL: PROVIDER, OIDC_CLIENT_ID: 'vestibule' };
    const { stdout } = await promisify(execFile)(binary('session-svc'), ['signals', ...args, '--json'], { env });
    return JSON.parse(stdout);
  };
  const call = (method, message) => invoke(stack.sessionUrls[0], method, message);
  return {
    stack,
    tool,
    /** A session of somebody: its secret. */
    async signIn(sub) {
      const user = field(2, JSON.stringify({ sub }));
      const { status, raw, messages } = await call('CreateSession', Buffer.concat([field(1, PROVIDER), user, field(8, randomUUID())]));
      assert.equal(status, OK, raw);
      return fields(messages[0])[1].toString();
    },
    signOut: (id) => call('EndSession', Buffer.concat([field(1, id), Buffer.from([0x18, CAUSE_LOGOUT])])),
    isThere: async (id) => (await call('GetSession', field(1, id))).status !== MISSING,
    ready: async () => (await (await fetch(`${stack.adminUrls.session}/readyz`)).json()).conditions,
  };
}

before(async () => {
  const ports = await Promise.all(Array.from({ length: 4 }, freePort));
  const [hereSignals, thereSignals] = ports.map((port) => `http://127.0.0.1:${port}`);
  const [, , hereEdge, thereEdge] = ports;
  const [tokenHere, tokenThere, header] = ['here', 'there', 'header'].map((name) => file(`${name}-token`, randomBytes(24).toString('hex')));
  const push = `http://127.0.0.1:${thereEdge}/api/auth/events`;
  // "here" pushes to "there", with a header both know; "there" has its events fetched.
  [here, there] = await Promise.all([
    deployment('here', {
      signals: hereSignals, edge: hereEdge,
      tells: { id: 'there', audience: 'https://there.example', token: tokenThere, lines: ['delivery = "push"', `url = "${push}"`, `authorization_file = "${header}"`] },
      hears: { id: 'there', issuer: thereSignals, audience: 'https://here.example', token: tokenHere, lines: ['delivery = "poll"'] },
    }),
    deployment('there', {
      signals: thereSignals, edge: thereEdge,
      tells: { id: 'here', audience: 'https://here.example', token: tokenHere, lines: ['delivery = "poll"'] },
      hears: { id: 'here', issuer: hereSignals, audience: 'https://there.example', token: tokenThere, lines: ['delivery = "push"', `push_url = "${push}"`, `authorization_file = "${header}"`] },
    }),
  ]);
});
after(async () => {
  await Promise.all([here, there].map((one) => one?.stack.stop()));
  rmSync(FOLDER, { recursive: true, force: true });
});

test('each adopts the stream that the other has for it, and a verification arrives by push and by poll', async () => {
  for (const one of [here, there]) {
    assert.equal((await one.ready()).transmitters.met, false, 'there is no stream yet');
    await one.tool('create', '--adopt');
    const verified = await one.tool('verify');
    assert.equal(verified.verified, true, JSON.stringify(verified));
  }
  await until(30_000, async () => (await Promise.all([here, there].map((one) => one.ready()))).every(({ transmitters }) => transmitters.met), () => 'both streams are known to work: not in time');
});

test('a person who signs out at one is signed out at the other, in both directions, and nobody else is', async () => {
  for (const [one, other] of [[here, there], [there, here]]) {
    const [theirs, same, somebodyElse] = [await one.signIn('alice'), await other.signIn('alice'), await other.signIn('bob')];
    await one.signOut(theirs);
    await until(20_000, async () => !(await other.isThere(same)), () => 'the session at the other is over: not in time');
    assert.ok(await other.isThere(somebodyElse));
  }
});

test('an ending that nobody could be told of is told when the other is back', async () => {
  const [theirs, same] = [await here.signIn('carol'), await there.signIn('carol')];
  await there.stack.kill('edge', 'SIGKILL');
  await here.signOut(theirs);
  await here.stack.restart('session', 'SIGKILL');
  assert.ok(await there.isThere(same));
  await there.stack.start('edge');
  await until(60_000, async () => !(await there.isThere(same)), () => 'the session at the other is over: not in time');
});
