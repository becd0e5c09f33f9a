// Tests that the pod memory of k8s/components/redis is enough for the worst case: a full store that rewrites its
// append-only file and feeds a new replica while every record changes, which copies the child's shared pages.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { limitMemory, shippedLimit } from '../../lib/cgroup.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, until } from '../../lib/net.mjs';
import { ask } from '../../lib/redis-topology.mjs';
import { ROOT } from '../../stack.mjs';

const COMPONENT = join(ROOT, 'k8s/components/redis');
const SEVERAL_MS = 60_000;
const RECORD_BYTES = 1_000; // about the size of a session
const ENTRY_BYTES = 1_130; // memory that such a record uses
const FULL = 0.9; // of maxmemory: at the maximum, Redis rejects writes

// Settings for TLS or other servers do not apply here.
const settings = readFileSync(join(COMPONENT, 'settings/redis.conf'), 'utf8').split('\n').filter((line) => !/^(port|tls-|min-replicas)/.test(line)).join('\n');
const maxmemory = Number(/^maxmemory (\d+)mb$/m.exec(settings)[1]) * 1024 ** 2;
const records = Math.floor((maxmemory * FULL) / ENTRY_BYTES);

let folder;
let group;
const started = [];
before(() => { folder = mkdtempSync(join(tmpdir(), 'vestibule-memory-')); });
after(async () => {
  await Promise.all(started.map((child) => child.stop('SIGKILL')));
  await group?.remove();
  rmSync(folder, { recursive: true, force: true });
});

async function start(name, lines, within = (command, args) => [command, args]) {
  const port = await freePort();
  const place = mkdtempSync(join(folder, name));
  writeFileSync(join(place, 'redis.conf'), [...lines, `port ${port}`, 'bind 127.0.0.1', `dir ${place}`, ''].join('\n'));
  const child = new Child(name, ...within('redis-server', [join(place, 'redis.conf')]));
  started.push(child);
  await until(SEVERAL_MS, () => ask(port, 'PING'), () => child.tail());
  return { port, child };
}

/** Writes each record about twice. */
function overwrite(port) {
  const load = spawn('redis-benchmark', ['-p', String(port), '-q', '-t', 'set', '-d', String(RECORD_BYTES), '-r', String(records), '-n', String(records * 4), '-P', '32'], { stdio: 'ignore' });
  return new Promise((resolve) => { load.on('exit', resolve); });
}

test('a full store that rewrites its file and feeds a replica while everything changes stays within the memory of its pod', async () => {
  group = limitMemory(shippedLimit(join(COMPONENT, 'server/statefulset.yaml')));
  const { port, child } = await start('store', [settings], group.within);
  await overwrite(port);
  const one = async (section, pattern) => pattern.exec(await ask(port, `INFO ${section}`))?.[1];
  await until(SEVERAL_MS, async () => child.ended || (await one('persistence', /aof_rewrite_in_progress:(\d)/)) === '0', () => child.tail());
  assert.equal(child.ended, undefined, 'killed while it was filled');
  assert.ok(Number(await one('memory', /used_memory:(\d+)/)) > maxmemory * FULL * 0.85, 'it is not full');

  assert.match(await ask(port, 'BGREWRITEAOF'), /^\+/);
  const changing = overwrite(port);
  const replica = await start('replica', [`replicaof 127.0.0.1 ${port}`, 'save ""']);
  await changing;
  await until(SEVERAL_MS, async () => child.ended || /master_link_status:up/.test(await ask(replica.port, 'INFO replication')), () => replica.child.tail());
  assert.equal(child.ended, undefined, `killed: ${child.tail(3)}`);
  assert.equal(await one('persistence', /aof_last_bgrewrite_status:(\w+)/), 'ok');
});
