// Schedules of faults.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { layoutOf, schedule, topologyOf } from '../../chaos/schedule.mjs';

const SEEDS = Array.from({ length: 60 }, (_, at) => at + 1);
const ofAll = SEEDS.flatMap((seed) => schedule(seed, 30).map((fault) => ({ ...fault, topology: topologyOf(seed) })));

test('the same seed gives the same faults, another seed others', () => {
  for (const seed of SEEDS) assert.deepEqual(schedule(seed, 30), schedule(seed, 30));
  assert.equal(new Set(SEEDS.map((seed) => JSON.stringify(schedule(seed, 30)))).size, SEEDS.length);
});

test('every fault is of what is there, and over in time', () => {
  for (const { topology, kind, target, from, to, at, lasts } of ofAll) {
    const { edges, services, stores, links } = layoutOf(topology);
    assert.ok(at + lasts <= 30_000, `${kind} at ${at}`);
    if (target) assert.ok([...edges, ...services, ...stores, 'idp', ...(topology === 'sentinel' ? ['master'] : [])].includes(target), `${kind} ${target} in ${topology}`);
    if (from) assert.ok(links.some((link) => link.from === from && link.to === to), `${kind} ${from} to ${to} in ${topology}`);
  }
});

test('sixty seeds make every kind of fault, and break every link', () => {
  const kinds = new Set(ofAll.map(({ kind }) => kind));
  assert.deepEqual([...kinds].sort(), [
    'clock', 'cut', 'delay', 'failover', 'full-disk', 'full-memory', 'hold', 'hold-one-way', 'isolate', 'kill', 'kill-master', 'new-keys', 'outage', 'restart', 'restart-all', 'rotate-keys',
    'slow-provider', 'stop', 'stop-master',
  ]);
  const broken = new Set(SEEDS.flatMap((seed) => schedule(seed, 300, { topology: 'redis' })).map(({ from, to }) => `${from} ${to}`));
  for (const { from, to } of layoutOf('redis').links) assert.ok(broken.has(`${from} ${to}`), `${from} to ${to}`);
});

test('kinds can be chosen', () => {
  assert.deepEqual([...new Set(schedule(1, 300, { kinds: ['kill', 'cut'] }).map(({ kind }) => kind))].sort(), ['cut', 'kill']);
});
