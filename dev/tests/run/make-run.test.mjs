// `make run` as a person uses it: one command, one URL, Ctrl-C; and the message when a port is taken.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Child } from '../../lib/child.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { ROOT } from '../../stack.mjs';
import { Client } from '../product/client.mjs';

const READY_MS = 30_000; // debug programs on a busy machine
const WARM_MS = 10_000; // the promised start time if nothing changed
const SETTINGS = ['EDGE_LISTEN', 'EDGE_ADMIN_LISTEN', 'SESSION_LISTEN', 'SESSION_ADMIN_LISTEN', 'VESTIBULE_IDP_LISTEN', 'VESTIBULE_REDIS_LISTEN',
  'VESTIBULE_EDGE_1_LISTEN', 'VESTIBULE_EDGE_2_LISTEN', 'VESTIBULE_EDGE_2_ADMIN_LISTEN', 'VESTIBULE_SESSION_2_LISTEN', 'VESTIBULE_SESSION_2_ADMIN_LISTEN'];

async function surroundings(t) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-run-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const env = { ...process.env, VESTIBULE_RUN_DIR: folder };
  for (const name of SETTINGS) env[name] = `127.0.0.1:${await freePort()}`;
  return { env, folder };
}

function make(t, target, env) {
  const child = new Child(target, 'make', ['--no-print-directory', target], { cwd: ROOT, env });
  t.after(() => child.stop('SIGKILL'));
  return child;
}

async function untilWelcome(child, deadlineMs) {
  await until(deadlineMs, () => {
    assert.equal(child.ended, undefined, child.tail());
    return child.output.includes('Stop: Ctrl-C');
  }, () => `no URL was printed:\n${child.tail()}`);
}

const nobodyAnswers = (env) => until(5_000, async () => {
  const answers = await Promise.all(SETTINGS.map((name) => probe(`http://${env[name]}/`)));
  return answers.every(({ status, body }) => status === 0 && /ECONNREFUSED/.test(body));
}, () => 'a process was left behind');

test('make run prints one URL and the accounts, hides secrets and stops on Ctrl-C', async (t) => {
  const { env, folder } = await surroundings(t);
  const child = make(t, 'run', env);
  await untilWelcome(child, WARM_MS);
  assert.deepEqual([...new Set(child.output.match(/http:\/\/\S+/g))], [`http://${env.EDGE_LISTEN}`]);
  assert.match(child.output, /ada@example\.test/);
  assert.match(child.output, /grace@example\.test/);
  assert.equal((await probe(`http://${env.EDGE_LISTEN}/`)).status, 200);
  assert.equal((await probe(`http://${env.EDGE_LISTEN}/api/auth/me`)).status, 204);
  for (const file of ['secrets.json', 'edge-secret', 'encryption-key', 'client-secret', 'logs/edge.log']) {
    assert.equal(statSync(join(folder, file)).mode & 0o077, 0, file);
  }
  child.signal('SIGINT');
  await child.exited;
  await nobodyAnswers(env);
});

test('make run-redis runs two edges and two session services on Redis', async (t) => {
  const { env } = await surroundings(t);
  const child = make(t, 'run-redis', env);
  await untilWelcome(child, 20_000);
  for (const name of ['EDGE_LISTEN', 'VESTIBULE_EDGE_1_LISTEN', 'VESTIBULE_EDGE_2_LISTEN']) {
    assert.equal((await probe(`http://${env[name]}/api/auth/me`)).status, 204, name);
  }
  for (const name of ['SESSION_ADMIN_LISTEN', 'VESTIBULE_SESSION_2_ADMIN_LISTEN']) {
    assert.equal((await probe(`http://${env[name]}/readyz`)).status, 200, name);
  }
  child.signal('SIGTERM');
  await child.exited;
  await nobodyAnswers(env);
});

test('ports in use are all named, each with its setting, before anything is built', async (t) => {
  const { env } = await surroundings(t);
  const taken = ['EDGE_LISTEN', 'SESSION_LISTEN', 'VESTIBULE_IDP_LISTEN'];
  for (const name of taken) {
    const server = net.createServer();
    await new Promise((resolve) => server.listen(Number(env[name].split(':')[1]), '127.0.0.1', resolve));
    t.after(() => server.close());
  }
  const child = make(t, 'run', env);
  const { code } = await child.exited;
  assert.notEqual(code, 0);
  for (const name of taken) {
    assert.ok(child.output.includes(`Port ${env[name].split(':')[1]} `), child.output);
    assert.ok(child.output.includes(`${name}=127.0.0.1:`), child.output);
  }
  assert.doesNotMatch(child.output, /building/);
});

test('an address off loopback is refused', async (t) => {
  const { env } = await surroundings(t);
  const child = make(t, 'run', { ...env, EDGE_LISTEN: '0.0.0.0:3000' });
  assert.notEqual((await child.exited).code, 0);
  assert.match(child.output, /EDGE_LISTEN=0\.0\.0\.0:3000: make run stays on loopback/);
});

/** The process of this name, from the output of `make run` at the start or after a restart. */
const processOf = (child, name) => {
  const [, first] = new RegExp(`Processes: .*?\\b${name} (\\d+)`).exec(child.output) ?? [];
  const back = [...child.output.matchAll(new RegExp(`\\b${name} is back \\(process (\\d+)\\)`, 'g'))].at(-1)?.[1];
  return Number(back ?? first);
};

/** Kills a process and waits until `make run` reports its replacement. */
async function killAndAwait(child, name) {
  const before = processOf(child, name);
  process.kill(before, 'SIGKILL');
  await until(READY_MS, () => {
    assert.equal(child.ended, undefined, child.tail());
    return processOf(child, name) !== before;
  }, () => `${name} did not come back:\n${child.tail()}`);
}

test('each process that is killed comes back and make run says so: who was signed in stays so', async (t) => {
  const { env } = await surroundings(t);
  const child = make(t, 'run', env);
  await untilWelcome(child, READY_MS);
  const edge = `http://${env.EDGE_LISTEN}`;
  const browser = new Client();
  const stack = { edgeUrl: edge, accounts: [{ email: 'ada@example.test', password: 'analytical-engine' }] };
  await browser.signIn(stack);
  for (const name of ['session', 'edge', 'idp']) {
    await killAndAwait(child, name);
    assert.match(child.output, new RegExp(`${name} ended \\(SIGKILL\\); starting it again`));
    const me = await browser.me(stack, '/api/auth/me?refetch=true');
    assert.equal(me.status, 200, `after the end of ${name}`);
    assert.equal(me.json().name, 'Ada Lovelace');
  }
  child.signal('SIGINT');
  await child.exited;
  await nobodyAnswers(env);
});

test('on Redis the other replicas and the store come back too', async (t) => {
  const { env } = await surroundings(t);
  const child = make(t, 'run-redis', env);
  await untilWelcome(child, READY_MS);
  for (const name of ['redis', 'session-2', 'edge-2']) await killAndAwait(child, name);
  assert.equal((await probe(`http://${env.SESSION_ADMIN_LISTEN}/readyz`)).status, 200);
  assert.equal((await probe(`http://${env.VESTIBULE_EDGE_2_LISTEN}/api/auth/me`)).status, 204);
});

test('a process that keeps ending is given up with its last words, and the rest stops', async (t) => {
  const { env } = await surroundings(t);
  const child = make(t, 'run', env);
  await untilWelcome(child, READY_MS);
  for (let times = 0; times < 5; times += 1) await killAndAwait(child, 'idp');
  process.kill(processOf(child, 'idp'), 'SIGKILL');
  const { code } = await child.exited;
  assert.notEqual(code, 0);
  assert.match(child.output, /idp ended 6 times within a minute; it is not started again\. The last it wrote:\n[^]*"issuer"/);
  await nobodyAnswers(env);
});

test('killing make run outright leaves no process behind', async (t) => {
  const { env } = await surroundings(t);
  const child = make(t, 'run', env);
  await untilWelcome(child, WARM_MS);
  child.signal('SIGKILL');
  await child.exited;
  await nobodyAnswers(env);
});
