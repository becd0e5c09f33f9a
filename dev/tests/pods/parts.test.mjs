// The parts of the small cluster that can be judged without one.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { complaints, CONTRACT } from '../../lib/pods/contract.mjs';
import { answer } from '../../lib/pods/dns.mjs';
import { EVENTS, SHORT } from '../../lib/pods/events.mjs';
import { selects } from '../../lib/pods/manifests.mjs';
import { tableOf } from '../../lib/pods/packet-filter.mjs';
import { environment, expand, rollingBounds } from '../../lib/pods/pod-spec.mjs';
import { Volume } from '../../lib/pods/volumes.mjs';

test('every event has its line in the contract, and every line its event', () => {
  assert.deepEqual(EVENTS.map(({ name }) => name).toSorted(), Object.keys(CONTRACT).toSorted());
  for (const name of SHORT) assert.ok(name in CONTRACT, name);
});

test('whatever is not kept of a line is a complaint', () => {
  const good = { failed: 0, longestRefusalMs: 0, lost: 0, honouredMs: 0, undone: 0, overran: [] };
  const planned = 'rolling restart of edge';
  assert.deepEqual(complaints(planned, good), []);
  for (const bad of [{ failed: 1 }, { lost: 1 }, { honouredMs: 1_001 }, { undone: 1 }, { overran: ['edge'] }]) {
    assert.equal(complaints(planned, { ...good, ...bad }).length, 1, JSON.stringify(bad));
  }
  assert.deepEqual(complaints('kill -9 of edge', { ...good, failed: 9, longestRefusalMs: 100 }), []);
  assert.equal(complaints('kill -9 of edge', { ...good, failed: 9, longestRefusalMs: 60_000 }).length, 1);
});

const query = (name, type = 1) => Buffer.concat([
  Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), ...name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])), Buffer.from([0, 0, type, 0, 1]),
]);

test('the name server knows names, and says of others that there are none', () => {
  const lookUp = (name) => (name === 'web.shop.svc.cluster.local' ? ['10.1.2.3', '10.1.2.4'] : undefined);
  const found = answer(query('web.shop.svc.cluster.local'), lookUp);
  assert.equal(found.readUInt16BE(6), 2);
  assert.deepEqual([found.subarray(-4).join('.'), found.subarray(-20, -16).join('.')].toSorted(), ['10.1.2.3', '10.1.2.4']);
  const unknown = answer(query('nobody.shop.svc.cluster.local'), lookUp);
  assert.equal(unknown[3] & 15, 3);
  const six = answer(query('web.shop.svc.cluster.local', 28), lookUp);
  assert.deepEqual([six[3] & 15, six.readUInt16BE(6)], [0, 0], 'a name without an address of this kind is a name all the same');
});

test('variables are put together as Kubernetes does it', () => {
  const pod = { name: 'a', ip: '10.0.0.9', namespace: 'n', template: { spec: {}, metadata: {} } };
  const objects = { settings: { kind: 'ConfigMap', data: { A: '1', B: '2' } }, secret: { kind: 'Secret', data: { key: Buffer.from('hidden').toString('base64') } } };
  const env = environment({
    envFrom: [{ configMapRef: { name: 'settings' } }],
    env: [
      { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }, { name: 'LISTEN', value: '[$(IP)]:9$(NOBODY)$$(A)' }, { name: 'B', value: '3' },
      { name: 'S', valueFrom: { secretKeyRef: { name: 'secret', key: 'key' } } },
    ],
  }, pod, (_, name) => objects[name]);
  assert.deepEqual(env, { A: '1', B: '3', IP: '10.0.0.9', LISTEN: '[10.0.0.9]:9$(NOBODY)$(A)', S: 'hidden' });
  assert.equal(expand('$(X)', {}), '$(X)');
});

test('bounds of a rolling update are rounded as Kubernetes rounds them', () => {
  assert.deepEqual(rollingBounds({ replicas: 3 }), { surge: 1, missing: 0 });
  assert.deepEqual(rollingBounds({ replicas: 2, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }), { surge: 1, missing: 0 });
  assert.deepEqual(rollingBounds({ replicas: 2, strategy: { type: 'Recreate' } }), { surge: 0, missing: 2 });
});

test('selectors', () => {
  assert.ok(selects({}, { a: '1' }));
  assert.ok(selects({ matchExpressions: [{ key: 'a', operator: 'In', values: ['1', '2'] }] }, { a: '2' }));
  assert.ok(!selects({ matchLabels: { a: '1' }, matchExpressions: [{ key: 'b', operator: 'Exists' }] }, { a: '1' }));
  assert.ok(selects({ matchExpressions: [{ key: 'b', operator: 'DoesNotExist' }] }, { a: '1' }));
});

test('a changed Secret is swapped in whole, as the kubelet does it, and its group may read it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-volume-'));
  try {
    const secret = { kind: 'Secret', data: { key: Buffer.from('one').toString('base64') } };
    const volume = new Volume({ name: 'v', secret: { secretName: 's', defaultMode: 0o400 } }, { folder, find: () => secret, field: () => '', fsGroup: process.getgid() }).create(folder);
    const [file, data] = [join(folder, 'v/key'), join(folder, 'v/..data')];
    assert.equal(readlinkSync(file), '..data/key');
    assert.equal(statSync(file).mode & 0o777, 0o440);
    const before = readlinkSync(data);
    secret.data.key = Buffer.from('two').toString('base64');
    volume.write();
    assert.equal(readFileSync(file, 'utf8'), 'two');
    assert.notEqual(readlinkSync(data), before);
    assert.ok(!readdirSync(join(folder, 'v')).includes(before), 'what was there before is gone');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a pod that a policy selects takes and asks only what a policy names', () => {
  const template = (name, port) => ({ spec: { containers: [{ ports: [{ name: 'http', containerPort: port }] }] }, metadata: { labels: { name } } });
  const pod = (name, ip, port) => ({ name, ip, namespace: 'n', labels: { name }, template: template(name, port) });
  const [a, b, c] = [pod('a', '10.0.0.1', 80), pod('b', '10.0.0.2', 81), pod('c', '10.0.0.3', 82)];
  const policy = (spec) => ({ metadata: { namespace: 'n' }, spec });
  const only = (name) => ({ podSelector: { matchLabels: { name } } });
  const world = {
    services: [], pods: [a, b, c], labelsOf: () => ({}), node: '10.0.0.254', trusted: [],
    policies: [policy({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] }), policy({ ...only('a'), ingress: [{ from: [only('b')], ports: [{ port: 'http' }] }], egress: [{ to: [only('c')], ports: [{ port: 'http' }] }] })],
  };
  const table = tableOf(a, world);
  assert.match(table, /ip saddr 10\.0\.0\.2 tcp dport 80 accept/);
  assert.match(table, /ip daddr 10\.0\.0\.3 tcp dport 82 accept/);
  assert.doesNotMatch(table, /saddr 10\.0\.0\.3|daddr 10\.0\.0\.2/);
  assert.equal(table.match(/counter drop/g).length, 2);
  assert.doesNotMatch(tableOf(a, { ...world, policies: [] }), /counter drop/);
});
