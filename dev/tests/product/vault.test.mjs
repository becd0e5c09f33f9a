// Session services with keys that a real OpenBao wraps, set up by the commands of docs/vault.md: two on one Redis, and
// the one program. OpenBao is stopped, sealed and back again.
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Caller, creation } from '../../failover.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { binary, ROOT } from '../../stack.mjs';
import { doctor } from './doctor.mjs';
import { field, fields } from './grpc.mjs';
import { OpenBao } from './openbao.mjs';

const START_MS = 30_000;
const RELOAD_MS = 30_000; // a file is read every five seconds, and a retry is at most ten seconds later
const STOP_MS = 5_000;
const OK = 0;
const ISSUER = 'http://127.0.0.1:9'; // the test sends no request there
const PROVIDER = { OIDC_ISSUER_URL: ISSUER, OIDC_CLIENT_ID: 'client', OIDC_CLIENT_SECRET: 'a secret of this test, thirty-two characters' };

const page = readFileSync(join(ROOT, 'docs/vault.md'), 'utf8');
/** The block of the page that contains a text. */
const block = (text) => [...page.matchAll(/^```\w*\n(.*?)^```$/gms)].map(([, found]) => found).find((found) => found.includes(text));
const [SETUP, SETTINGS, NEW_KEY, REWRAP] = ['secrets enable transit', 'SESSION_ENCRYPTION_KEY_FILE', '> new', 'transit/rewrap'].map(block);

const folder = mkdtempSync(join(tmpdir(), 'vestibule-vault-'));
const path = (name) => join(folder, name);
const children = [];
let vault;
let settings;

before(async () => {
  vault = await OpenBao.create(folder);
  await vault.script(SETUP, folder);
  const named = Object.fromEntries(SETTINGS.trim().split('\n').map((line) => line.split('=')));
  settings = { ...named, SESSION_VAULT_ADDR: vault.httpsUrl, SESSION_VAULT_CA_FILE: vault.authority };
});
after(async () => {
  for (const child of children.reverse()) await child.stop();
  await vault?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function run(name, program, args, env) {
  const child = new Child(name, binary(program), args, { env: { PATH: process.env.PATH, ...PROVIDER, ...env }, cwd: folder });
  children.push(child);
  return child;
}

/** The status of `/readyz` and its condition `vault`; nothing while the admin listener does not answer. */
async function readiness(admin) {
  const { status, body } = await probe(`http://127.0.0.1:${admin}/readyz`);
  return status ? { status, vault: JSON.parse(body).conditions.vault } : {};
}

const untilReady = (admin, child) => until(START_MS, async () => (await readiness(admin)).status === 200, () => child.tail());

/** Waits until the program reports that it waits for Vault, for this reason. */
const untilWaiting = (admin, child, reason) => until(START_MS, async () => {
  const { status, vault: condition } = await readiness(admin);
  return status === 503 && condition?.met === false && child.output.includes(reason);
}, () => child.tail());

test('two session services with wrapped keys keep every session while Vault comes and goes', async () => {
  const redisPort = await freePort();
  const redis = new Child('redis', 'redis-server', ['--port', String(redisPort), '--bind', '127.0.0.1', '--save', '', '--dir', folder]);
  children.push(redis);
  await until(START_MS, () => redis.output.includes('Ready to accept connections'), () => redis.tail());
  const env = { ...settings, SESSION_STORE: `redis://127.0.0.1:${redisPort}` };
  const services = [];
  const start = async (at) => {
    const { listen = await freePort(), admin = await freePort() } = services[at] ?? {};
    const child = run(`session-${at}`, 'session-svc', [], { ...env, SESSION_LISTEN: `127.0.0.1:${listen}`, SESSION_ADMIN_LISTEN: `127.0.0.1:${admin}` });
    services[at] = { listen, admin, child };
  };
  const sessions = [];
  /** Creates a session at one service, and reads all at every service. */
  const use = async () => {
    const callers = services.map(({ listen }) => new Caller(`http://127.0.0.1:${listen}`));
    const created = await callers[sessions.length % 2].call('CreateSession', creation(ISSUER, `person ${sessions.length}`));
    assert.equal(created.status, OK);
    sessions.push(fields(created.message)[1].toString());
    for (const caller of callers) {
      for (const id of sessions) assert.equal((await caller.call('GetSession', field(1, id))).status, OK);
      caller.close();
    }
  };
  /** The doctor's finding on Vault, in the folder of the settings. */
  const examine = async (more) => {
    const files = { SESSION_ENCRYPTION_KEY_FILE: path('session-key'), SESSION_VAULT_TOKEN_FILE: path('vault-token') };
    return (await doctor('session-svc', { ...PROVIDER, ...env, ...files, ...more })).found('vault');
  };
  for (const at of [0, 1]) await start(at);
  for (const { admin, child } of services) await untilReady(admin, child);
  await use();
  await use();
  assert.equal((await examine()).result, 'ok');
  assert.match((await examine({ SESSION_VAULT_CA_FILE: '' })).found, /Vault does not answer at SESSION_VAULT_ADDR.*UnknownIssuer/);

  // Vault goes: running services go on, and a restarted one waits and opens no port, until Vault is back and unsealed.
  await vault.stop();
  await use();
  await services[1].child.stop();
  await start(1);
  await untilWaiting(services[1].admin, services[1].child, 'Vault does not answer at SESSION_VAULT_ADDR');
  assert.equal((await probe(`http://127.0.0.1:${services[1].admin}/livez`)).status, 200);
  assert.equal((await probe(`http://127.0.0.1:${services[1].listen}/`)).status, 0);
  const { result, setting } = await examine();
  assert.deepEqual([result, setting], ['problem', 'SESSION_VAULT_ADDR']);
  await vault.start();
  await untilWaiting(services[1].admin, services[1].child, 'answers 503 \\"Vault is sealed\\"');
  await vault.unseal();
  await untilReady(services[1].admin, services[1].child);
  await use();

  // A new key while Vault is sealed: both services keep the old ring and stay ready, then have the new key.
  await vault.script(NEW_KEY, folder);
  const keys = readFileSync(path('session-key'), 'utf8').trim().split('\n');
  assert.equal(keys.length, 2);
  await vault.script('vault operator seal');
  for (const { admin, child } of services) {
    await until(RELOAD_MS, async () => (await readiness(admin)).vault.met === false, () => child.tail());
    assert.equal((await readiness(admin)).status, 200);
  }
  await use();
  await vault.unseal();
  for (const { admin, child } of services) await until(RELOAD_MS, async () => (await readiness(admin)).vault.met, () => child.tail());

  // Both keys are rewrapped by a new version of the transit key, the new one in front. After a restart it seals.
  const rewrapped = [];
  for (const key of keys.reverse()) {
    writeFileSync(path('session-key'), key);
    await vault.script(REWRAP, folder);
    rewrapped.push(readFileSync(path('session-key'), 'utf8').trim());
  }
  assert.deepEqual(rewrapped.map((key) => /^vault:v\d+/.exec(key)[0]), ['vault:v2', 'vault:v3']);
  writeFileSync(path('session-key'), `${rewrapped.join('\n')}\n`);
  for (const at of [0, 1]) {
    await services[at].child.stop();
    await start(at);
    await untilReady(services[at].admin, services[at].child);
  }
  await use();
  const token = readFileSync(path('vault-token'), 'utf8').trim();
  for (const { child } of services) assert.ok(!child.output.includes(token), 'the log has no token');
});

test('a login by JWT gives the token', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(path('issuer.pem'), publicKey.export({ type: 'spki', format: 'pem' }));
  const now = Math.floor(Date.now() / 1000);
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'ES256' })}.${part({ sub: 'session-svc', aud: 'vault', iat: now, nbf: now, exp: now + 600 })}`;
  const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  writeFileSync(path('jwt'), `${text}.${signature.toString('base64url')}\n`);
  await vault.script([
    'vault auth enable jwt', 'vault write auth/jwt/config jwt_validation_pubkeys=@issuer.pem',
    'vault write auth/jwt/role/session-svc role_type=jwt user_claim=sub bound_audiences=vault token_policies=session-svc token_ttl=5m',
  ].join('\n'), folder);
  const env = { ...PROVIDER, ...settings, SESSION_ENCRYPTION_KEY_FILE: path('session-key'), SESSION_VAULT_TOKEN_FILE: path('jwt') };
  const examine = async (login) => (await doctor('session-svc', { ...env, SESSION_VAULT_LOGIN: login })).found('vault');
  const good = await examine('auth/jwt/session-svc');
  assert.equal(good.result, 'ok', good.found);
  assert.match((await examine('auth/jwt/another')).found, /auth\/jwt\/login answers 400 .*SESSION_VAULT_LOGIN/);
});

test('what Vault rejects stops the start with the reason; a token without the right is waited for', async () => {
  const [key] = readFileSync(path('session-key'), 'utf8').split('\n');
  const env = { ...settings, SESSION_LISTEN: '127.0.0.1:0' };
  delete env.SESSION_ENCRYPTION_KEY_FILE;
  await vault.script('vault write -f transit/keys/another');
  const another = await vault.script('vault write -f -field=ciphertext transit/datakey/wrapped/another');
  const short = await vault.script('vault write -field=ciphertext transit/datakey/wrapped/vestibule bits=128');
  for (const [more, reason] of [
    [{ SESSION_ENCRYPTION_KEY: another }, /key 1 cannot be unwrapped: .*answers 400 ".*message authentication failed"/],
    [{ SESSION_ENCRYPTION_KEY: `${key},${short}` }, /key 2 cannot be unwrapped: it contains no key of 32 bytes/],
  ]) {
    const child = run('session', 'session-svc', [], { ...env, SESSION_ADMIN_LISTEN: 'off', ...more });
    assert.deepEqual(await child.exited, { code: 1, signal: null }, child.tail());
    assert.match(child.output, reason);
  }
  const admin = await freePort();
  const child = run('session', 'session-svc', [], { ...env, SESSION_ADMIN_LISTEN: `127.0.0.1:${admin}`, SESSION_ENCRYPTION_KEY: another, SESSION_VAULT_KEY: 'another' });
  await untilWaiting(admin, child, 'transit/decrypt/another answers 403');
  await vault.script('echo \'path "transit/decrypt/*" { capabilities = ["update"] }\' | vault policy write session-svc -');
  await untilReady(admin, child);
});

test('the one program waits for Vault, and stops at once while it waits', async () => {
  await vault.stop();
  const [listen, admin] = [await freePort(), await freePort()];
  const args = ['--upstream', 'http://127.0.0.1:9', '--data-dir', path('one'), '--listen', `127.0.0.1:${listen}`, '--admin-listen', `127.0.0.1:${admin}`];
  const start = () => run('vestibule', 'vestibule', args, settings);
  const stopped = start();
  await untilWaiting(admin, stopped, 'Vault does not answer');
  const began = Date.now();
  assert.deepEqual(await stopped.stop(), { code: 0, signal: null }, stopped.tail());
  assert.ok(Date.now() - began < STOP_MS, `it stopped after ${Date.now() - began} ms`);

  const child = start();
  await untilWaiting(admin, child, 'Vault does not answer');
  await vault.start();
  await vault.unseal();
  await until(START_MS, async () => (await readiness(admin)).vault?.met && (await probe(`http://127.0.0.1:${listen}/api/auth/status`)).status > 0, () => child.tail());
});
