// Tests compose.yaml on real containers: the result of `docker compose up` on a machine with nothing but containers.
// dev/test.mjs has built the images. Redis is made of Debian's packages, because there may be no registry.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import dns from 'node:dns';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { ACCOUNTS } from '../../idp/lib/accounts.mjs';
import { buildRedisImage } from '../../images/redis.mjs';
import { podmanEnvironment } from '../../lib/containers.mjs';
import { freePort, until } from '../../lib/net.mjs';
import { ROOT } from '../../stack.mjs';
import { Client } from '../product/client.mjs';

const UP_MS = 120_000;
const COMPOSE = join(ROOT, '.cache/compose/bin/podman-compose');
const project = `vestibule-compose-${process.pid}`;
const stack = { accounts: ACCOUNTS };
let env;

const compose = (...args) => {
  const { status, stdout, stderr } = spawnSync(COMPOSE, args, { cwd: ROOT, env, encoding: 'utf8', timeout: UP_MS });
  assert.equal(status, 0, `podman-compose ${args.join(' ')}\n${stdout}\n${stderr}`);
  return stdout;
};
const podman = (...args) => execFileSync('podman', args, { env, encoding: 'utf8' });
const welcome = () => podman('logs', `${project}_welcome_1`);
const isWelcomed = (times) => () => welcome().split('Vestibule is running').length - 1 >= times;
const logs = () => podman('logs', `${project}_edge_1`);

before(async () => {
  const [port, providerPort] = [await freePort(), await freePort()];
  stack.edgeUrl = `http://127.0.0.1:${port}`;
  env = {
    ...podmanEnvironment(), COMPOSE_PROJECT_NAME: project, IMAGE_TAG: process.env.IMAGE_TAG || 'dev', REDIS_IMAGE: await buildRedisImage(),
    VESTIBULE_PORT: String(port), VESTIBULE_PROVIDER_PORT: String(providerPort),
  };
});
after(() => spawnSync(COMPOSE, ['down', '--volumes', '--timeout', '5'], { cwd: ROOT, env }));

test('the file is valid, and pins the images that are not its own', () => {
  const rendered = compose('config');
  assert.doesNotMatch(rendered, /\$\{/, 'a variable that was not replaced');
  const { REDIS_IMAGE: _, ...others } = env;
  const pinned = execFileSync(COMPOSE, ['config'], { cwd: ROOT, env: others, encoding: 'utf8' });
  for (const [, image] of pinned.matchAll(/image: (\S+)/g)) assert.match(image, /^localhost\/vestibule-|@sha256:[0-9a-f]{64}$/);
});

test('one command brings everything up, and says where to go and who can sign in', async () => {
  compose('up', '--detach', '--no-build');
  await until(UP_MS, isWelcomed(1), logs);
  assert.match(welcome(), new RegExp(`${stack.edgeUrl}$`, 'm'));
  for (const { email, password } of ACCOUNTS) assert.match(welcome(), new RegExp(`${email} +${password}`));
});

// Browsers resolve names below localhost to this machine; not every resolver does.
const localhost = (name, options, done) => dns.lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, options, done);
const newClient = () => Object.assign(new Client(), { agent: new http.Agent({ lookup: localhost }) });
const client = newClient();

test('a user signs in and sees the account pages', async () => {
  await client.signIn(stack);
  assert.equal((await client.me(stack)).json().email, ACCOUNTS[0].email);
  const page = await client.navigate(`${stack.edgeUrl}/account`);
  assert.equal(page.status, 200);
  assert.match(page.text, /<div id="root">|<script/);
  const stranger = await newClient().navigate(`${stack.edgeUrl}/account`);
  assert.equal(stranger.status, 307, 'the account pages are guarded');
});

test('nothing but the edge and the provider is reached from outside', () => {
  const names = podman('ps', '--filter', `label=io.podman.compose.project=${project}`, '--format', '{{.Names}}').trim().split('\n');
  const published = names.flatMap((name) => podman('port', name).trim().split('\n').filter(Boolean).map((line) => [name, line]));
  assert.deepEqual(published.map(([name]) => name).sort(), [`${project}_edge_1`, `${project}_provider_1`]);
  for (const [, line] of published) assert.match(line, /-> 127\.0\.0\.1:/);
});

test('each service reads its own secrets and no other', () => {
  const mode = (path) => podman('run', '--rm', '--entrypoint', 'node', '--user', '10001:10001', '--volume', `${project}_secrets:/secrets:ro`, `localhost/vestibule-dev-idp:${env.IMAGE_TAG}`, '-e', `try { require('fs').readFileSync('/secrets/${path}'); console.log('read') } catch (error) { console.log(error.code) }`).trim();
  assert.equal(mode('edge/edge-secret'), 'read');
  assert.equal(mode('session-svc/encryption-key'), 'EACCES');
});

/** The user's profile. The edge answers 503, and signs no user out, until the services have reached each other. */
const profile = () => until(UP_MS, async () => {
  const me = await client.me(stack);
  assert.notEqual(me.status, 204, 'signed out');
  return me.status === 200 && me.json();
}, logs);

test('a restart of everything loses no session', async () => {
  compose('restart', '--timeout', '10');
  await until(UP_MS, isWelcomed(2), logs);
  assert.equal((await profile()).email, ACCOUNTS[0].email);
});

test('down and up again keeps the sessions, too: they are in volumes', async () => {
  compose('down', '--timeout', '10');
  compose('up', '--detach', '--no-build');
  await until(UP_MS, isWelcomed(1), logs);
  assert.equal((await profile()).email, ACCOUNTS[0].email);
  // A sign-in may still meet a session service that has not reached its store.
  await until(UP_MS, () => newClient().signIn(stack).then(() => true, () => false), logs);
});
