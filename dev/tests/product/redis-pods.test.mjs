// The component k8s/components/redis as its pods run it, with a session service. Tests what happens to sessions when
// pods stop, are killed, all restart at once, lose a disk, or get new certificates and passwords.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { Child } from '../../lib/child.mjs';
import { freePort, pause, probe, until } from '../../lib/net.mjs';
import { startRedisPods } from '../../lib/redis-pods.mjs';
import { binary } from '../../stack.mjs';
import { field, fields, invoke } from './grpc.mjs';

const [OK, DEADLINE_EXCEEDED, NOT_FOUND, UNAVAILABLE] = [0, 4, 5, 14];
const ISSUER = 'http://127.0.0.1:9';
const WAIT_MS = 60_000;
const ASKED_MS = 20_000; // the limit is three seconds; without a response it takes minutes
const TILT_MS = 3_000; // SENTINEL_TILT_TRIGGER is two seconds
const SETTLES_MS = 2_000; // connections to the new address stand, those to the old one are closed
const NEW_EVERY_MS = 25; // a session is created at this interval
const FSYNC_MS = 2_000; // appendfsync everysec: the disk may lag by a second, and by one more while it is slow
const SCRIPTS = fileURLToPath(new URL('../../../k8s/components/redis/scripts', import.meta.url));

let redis;
let service;
let storeFile;
before(async () => {
  redis = await startRedisPods();
  const [grpc, admin] = [await freePort(), await freePort()];
  storeFile = join(redis.folder, 'store');
  writeStore();
  const child = new Child('session-svc', binary('session-svc'), [], {
    env: {
      PATH: process.env.PATH, SESSION_LISTEN: `127.0.0.1:${grpc}`, SESSION_ADMIN_LISTEN: `127.0.0.1:${admin}`, SESSION_STORE_FILE: storeFile,
      SESSION_ENCRYPTION_KEY: randomBytes(32).toString('hex'), OIDC_ISSUER_URL: ISSUER, OIDC_CLIENT_ID: 'pods', OIDC_CLIENT_SECRET: 'a secret of nobody',
    },
  });
  service = { url: `http://127.0.0.1:${grpc}`, child };
  await until(WAIT_MS, async () => {
    if (child.ended) throw new Error(child.tail());
    return (await probe(`http://127.0.0.1:${admin}/readyz`)).status === 200;
  }, () => child.tail());
});
after(async () => {
  await service?.child.stop();
  await redis?.stop();
});

/** The Secret session-svc, key store. */
function writeStore() {
  writeFileSync(`${storeFile}.new`, `${redis.address()}\n`);
  renameSync(`${storeFile}.new`, storeFile);
}

test('a question has an end, also in a script that is being stopped, with the tools of the image', async () => {
  const silent = net.createServer(() => {}).listen(0, '127.0.0.1'); // accepts connections and sends nothing, like a Sentinel that is gone
  await once(silent, 'listening');
  const tools = mkdtempSync(join(tmpdir(), 'vestibule-busybox-'));
  try {
    for (const name of ['sh', 'timeout']) symlinkSync('/bin/busybox', join(tools, name));
    const ask = `trap '' TERM; . "${join(SCRIPTS, 'common.sh')}"; trap '' TERM; ask "localhost:${silent.address().port}" probe probe ping; echo over`;
    const env = { PATH: `${tools}:${process.env.PATH}`, TLS: join(redis.folder, 'redis-0/tls') };
    const { stdout } = await promisify(execFile)(join(tools, 'sh'), ['-c', ask], { env, timeout: ASKED_MS });
    assert.equal(stdout, 'over\n');
  } finally {
    silent.close();
    rmSync(tools, { recursive: true });
  }
});

const create = (sub) => invoke(service.url, 'CreateSession', Buffer.concat([field(1, ISSUER), field(2, JSON.stringify({ sub })), field(3, field(1, 'access'))]));

/** Creates sessions until stopped; `stop` returns {created, refused, odd}. */
function begin() {
  const seen = { created: [], refused: 0, odd: [] };
  const under = new Set();
  const timer = setInterval(() => {
    const call = create(`person ${seen.created.length % 50}`).then(({ status, messages }) => {
      if (status === OK) seen.created.push({ id: fields(messages[0])[1].toString(), at: performance.now() });
      else if ([UNAVAILABLE, DEADLINE_EXCEEDED].includes(status)) seen.refused += 1;
      else seen.odd.push(status);
    }).finally(() => under.delete(call));
    under.add(call);
  }, NEW_EVERY_MS);
  return async () => {
    clearInterval(timer);
    await Promise.all(under);
    return seen;
  };
}

/** Runs `does` while sessions are created. Afterwards every acknowledged session must exist, except those that were
 * not on a disk at the time that `atRisk` returns. */
async function nothingIsLost(does, atRisk) {
  const stop = begin();
  let seen;
  try {
    await pause(500);
    await does();
    await redis.settled();
    await until(WAIT_MS, async () => (await create('anybody')).status === OK, () => `no session begins: ${service.child.tail()}`);
  } finally {
    seen = await stop();
  }
  const { created, refused, odd } = seen;
  assert.ok(created.length > 10, `${created.length} sessions`);
  assert.deepEqual(odd, []);
  let lost = 0;
  const safe = created.filter(({ at }) => !atRisk || at < atRisk() - FSYNC_MS || at > atRisk());
  for (const { id } of safe) if ((await invoke(service.url, 'GetSession', field(1, id))).status !== OK) lost += 1;
  assert.equal(lost, 0, `${lost} of ${safe.length} sessions lost`);
  return { created: created.length, refused };
}

const clientsOf = async (pod) => (await pod.ask(['client', 'list'])).split('\n').filter((line) => / user=session-svc /.test(line)).map((line) => /^id=(\d+)/.exec(line)[1]);
/** Runs a script in a pod, as `kubectl exec`: {code, out}. */
const run = (pod, script, input = '') => new Promise((resolve) => {
  const child = execFile('sh', [join(SCRIPTS, script)], { env: pod.env, encoding: 'buffer', maxBuffer: 1e8 }, (error, out) => resolve({ code: error?.code ?? 0, out }));
  child.stdin.on('error', () => {}).end(input);
});
/** Opens a connection of its own: the session service replaces one that does not answer in time. The returned function
 * answers whether it stayed open. */
async function openConnection(t, pod) {
  const connection = pod.connect('administrator');
  t.after(() => connection.close());
  const id = await connection.ask('client id');
  assert.match(id, /^\d+$/);
  return async () => (await connection.ask('client id')) === id;
}
const ready = async (pod) => (await run(pod, 'ready.sh')).code === 0;

test('the first start makes a master with two replicas, and all are ready', async () => {
  assert.equal((await redis.settled()).name, 'redis-0');
  assert.deepEqual(await Promise.all(redis.servers.map(ready)), [true, true, true]);
});

test('a session begins, is listed and ends, a replica has its end, and no server has refused the service anything', async () => {
  const id = fields((await create('somebody')).messages[0])[1];
  const listed = await invoke(service.url, 'ListSessions', Buffer.concat([field(1, ISSUER), field(2, 'somebody')]));
  assert.equal(listed.status, OK);
  assert.equal((await invoke(service.url, 'EndSession', field(1, id))).status, OK);
  assert.equal((await invoke(service.url, 'GetSession', field(1, id))).status, NOT_FOUND);
  for (const server of redis.servers) assert.doesNotMatch(await server.ask(['acl', 'log']), /session-svc/, server.name);
});

test('users have their rights and no others', async () => {
  const master = await redis.settled();
  const refused = [
    ['session-svc', ['get', 'other']], ['session-svc', ['config', 'get', 'maxmemory']], ['session-svc', ['flushall']], ['session-svc', ['keys', '*']],
    ['probe', ['get', 'vestibule:x']], ['probe', ['info']], ['replication', ['get', 'vestibule:x']], ['sentinel', ['get', 'vestibule:x']], ['sentinel', ['config', 'get', '*']],
  ];
  for (const [user, words] of refused) assert.match(await master.ask(words, { user }), /NOPERM/, `${user}: ${words.join(' ')}`);
  assert.match(await master.ask(['get', 'vestibule:x'], { user: 'default', password: 'any' }), /WRONGPASS|NOAUTH|AUTH failed/);
  assert.match(await redis.sentinels[0].ask(['sentinel', 'failover', 'sessions'], { user: 'session-svc' }), /NOPERM/);
  assert.equal(await master.ask(['config', 'get', 'maxmemory-policy']), 'maxmemory-policy\nnoeviction');
});

test('a master that has to stop hands over, and comes back as a replica', async () => {
  const old = await redis.settled();
  const { refused } = await nothingIsLost(async () => {
    await old.stop();
    old.start();
  });
  assert.notEqual(await redis.master(), old);
  assert.equal(await old.role(), 'slave');
  assert.ok(refused * NEW_EVERY_MS < 4_000, `${refused} calls were refused: as long as an unplanned failover takes`);
});

test('a master that has to stop hands over by a Sentinel that acts: one that has just paused does not', async () => {
  const old = await redis.settled();
  const slow = redis.sentinels.slice(0, 2);
  slow.forEach((pod) => pod.containers.server.signal('SIGSTOP'));
  await pause(TILT_MS);
  slow.forEach((pod) => pod.containers.server.signal('SIGCONT'));
  const acts = async (pod) => /^sentinel_tilt:0/m.test(await pod.ask(['info', 'sentinel']));
  for (const pod of slow) await until(WAIT_MS, async () => !(await acts(pod)), () => `${pod.name} acts all the same`);
  const { refused } = await nothingIsLost(async () => {
    await old.stop();
    old.start();
  });
  assert.notEqual(await redis.master(), old);
  assert.ok(refused * NEW_EVERY_MS < 4_000, `${refused} calls were refused`);
  for (const pod of slow) await until(WAIT_MS, () => acts(pod), () => `${pod.name} still acts on nothing`);
});

test('a master that is killed is replaced, and comes back as a replica', async () => {
  const old = await redis.settled();
  await nothingIsLost(async () => {
    await old.kill();
    await until(WAIT_MS, async () => ![old, undefined].includes(await redis.master()), () => 'the Sentinels name no other master');
    old.start();
  });
  assert.equal(await old.role(), 'slave');
});

test('servers and Sentinels that all stop at once find each other again', async () => {
  await redis.settled();
  await nothingIsLost(async () => {
    await Promise.all(redis.pods.map((pod) => pod.stop()));
    redis.pods.forEach((pod) => pod.start());
  });
});

test('servers and Sentinels that are all killed at once find each other again, and lose what no disk had yet', async () => {
  await redis.settled();
  let killed;
  await nothingIsLost(async () => {
    await pause(FSYNC_MS);
    killed = performance.now();
    await Promise.all(redis.pods.map((pod) => pod.kill()));
    redis.pods.forEach((pod) => pod.start());
  }, () => killed);
});

test('a master that comes back with an empty disk empties no replica', async () => {
  const old = await redis.settled();
  await nothingIsLost(async () => {
    await old.kill();
    old.emptyDisk();
    old.start(); // long before the Sentinels notice
  });
  assert.notEqual(await redis.master(), old);
  assert.match(old.log, /this disk is empty/);
});

test('replicas that are not linked to their master are not ready', async () => {
  const master = await redis.settled();
  const replica = redis.servers.find((pod) => pod !== master);
  await replica.ask(['replicaof', 'localhost', '1']);
  assert.equal(await ready(replica), false);
  await redis.settled(); // its own container, or a Sentinel, makes it a replica of its master
  assert.equal(await ready(replica), true);
});

test('probes find every server alive, write nothing into its log, and notice one that does not answer', async () => {
  await redis.settled();
  const alive = async (pod) => (await run(pod, 'alive.sh')).code === 0;
  const failures = () => redis.pods.map(({ log }) => (log.match(/Error accepting a client connection/g) ?? []).length);
  const before = failures();
  assert.deepEqual(await Promise.all(redis.pods.map(alive)), redis.pods.map(() => true));
  assert.deepEqual(failures(), before);
  const [pod] = redis.sentinels;
  const connected = net.connect(pod.port, 'localhost');
  await once(connected, 'connect');
  connected.end(); // as a probe of the port does
  await until(WAIT_MS, () => failures().some((count, at) => count > before[at]), () => 'a connection without TLS is not in the log');
  pod.containers.server.signal('SIGSTOP');
  assert.equal(await alive(pod), false);
  pod.containers.server.signal('SIGCONT');
  await redis.settled();
});

test('a replaced certificate is shown by every server, connections in use stay, no call is refused, and no container restarts', async (t) => {
  const master = await redis.settled();
  const restarts = redis.pods.map((pod) => pod.restarts);
  const serials = await Promise.all(redis.pods.map((pod) => pod.serial()));
  const isOpen = await openConnection(t, master);
  const { refused } = await nothingIsLost(async () => {
    redis.mountCertificates();
    await until(WAIT_MS, async () => {
      const now = await Promise.all(redis.pods.map((pod) => pod.serial()));
      return now.every((serial, at) => serial.startsWith('serial=') && serial !== serials[at]);
    }, () => redis.pods.map((pod) => pod.log.split('\n').slice(-3).join('\n')).join('\n'));
  });
  assert.equal(refused, 0);
  assert.deepEqual(redis.pods.map((pod) => pod.restarts), restarts);
  assert.ok(await isOpen());
  assert.equal(await redis.master(), master);
});

test('passwords are replaced in three steps: no call is refused, connections in use stay, and the old ones end', async (t) => {
  const master = await redis.settled();
  const old = Object.fromEntries(Object.entries(redis.passwords).map(([user, [password]]) => [user, password]));
  const inUse = async (step) => {
    redis.mountPasswords();
    await until(WAIT_MS, async () => {
      const answers = await Promise.all(redis.pods.flatMap((pod) => ['administrator', 'session-svc'].map((user) => pod.ask(['ping'], { user, password: redis.passwords[user].at(-1) }))));
      const gone = step < 3 || (await Promise.all(redis.pods.map((pod) => pod.ask(['ping'], { user: 'session-svc', password: old['session-svc'] })))).every((answer) => !/^PONG/.test(answer));
      return gone && answers.every((answer) => /^PONG/m.test(answer));
    }, () => `step ${step}: ${redis.pods.map((pod) => pod.log.split('\n').slice(-4).join('\n')).join('\n')}`);
    await redis.settled();
  };
  const first = await clientsOf(master);
  const restarts = redis.pods.map((pod) => pod.restarts);
  const { refused } = await nothingIsLost(async () => {
    for (const user of Object.keys(old)) redis.passwords[user].push(randomBytes(16).toString('hex'));
    await inUse(1); // the new certificate is known
    for (const user of Object.keys(old)) redis.passwords[user].reverse();
    writeStore();
    await inUse(2); // and in use
    await until(WAIT_MS, async () => {
      const ids = await clientsOf(master);
      await pause(SETTLES_MS);
      const later = await clientsOf(master);
      return ids.length > 0 && !ids.some((id) => first.includes(id)) && ids.join() === later.join();
    }, () => 'the session service keeps its first connections');
    for (const user of Object.keys(old)) redis.passwords[user].pop();
    const isOpen = await openConnection(t, master);
    await inUse(3); // and the only one
    assert.ok(await isOpen());
  });
  assert.equal(refused, 0);
  assert.deepEqual(redis.pods.map((pod) => pod.restarts), restarts);
  const replica = redis.servers.find((pod) => pod !== master);
  await replica.ask(['client', 'kill', 'type', 'master']);
  await redis.settled(); // with the new password
});

test('a backup brings back what was there, and what came later is gone', async () => {
  const begun = async () => fields((await create('somebody')).messages[0])[1].toString();
  const there = async (id) => (await invoke(service.url, 'GetSession', field(1, id))).status;
  await redis.settled();
  const before = await begun();
  const { code, out } = await run(await redis.settled(), 'backup.sh');
  assert.equal(code, 0);
  const later = await begun();
  for (const pod of redis.servers) {
    assert.notEqual((await run(pod, 'restore.sh', 'no backup')).code, 0);
    assert.equal((await run(pod, 'restore.sh', out)).code, 0);
  }
  await Promise.all(redis.servers.map((pod) => pod.stop()));
  redis.servers.forEach((pod) => pod.start());
  await redis.settled();
  await until(WAIT_MS, async () => (await there(before)) === OK, () => service.child.tail());
  assert.equal(await there(later), NOT_FOUND);
});
