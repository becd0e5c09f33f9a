// `make pods`: the manifests of k8s/overlays/dev as real pods. A user signs in, a rollout refuses no request, and a
// lost master of Redis ends no session. Listens on the ports 3000 and 9000 that the overlay names.
import assert from 'node:assert/strict';
import dns from 'node:dns';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { ACCOUNTS } from '../../idp/lib/accounts.mjs';
import { buildRedisImage, REDIS_IMAGE } from '../../images/redis.mjs';
import { writeSecrets } from '../../lib/cluster-secrets.mjs';
import { pause, until } from '../../lib/net.mjs';
import { Cluster } from '../../lib/pods/cluster.mjs';
import { podman } from '../../lib/pods/pod.mjs';
import { ROOT } from '../../stack.mjs';
import { Client } from '../product/client.mjs';

const OVERLAY = join(ROOT, 'k8s/overlays/dev');
const TAG = process.env.IMAGE_TAG || 'dev';
const ASK_MS = 50;
const REFUSED_MAX_MS = 12_000; // after a lost master, the Sentinels wait 4 s and then elect another
const FOUND_MS = 60_000;
const RECONNECTED_MS = 5_000; // every edge is connected to the new container again, also on a busy machine

const stack = { edgeUrl: 'http://127.0.0.1:3000', accounts: ACCOUNTS };
const localhost = (name, options, done) => dns.lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, options, done);
const person = Object.assign(new Client(), { agent: new http.Agent({ lookup: localhost }) });

/** The local image for an image of the manifests: ours by tag, Redis by the one made here. */
const image = (name) => (/(^|\/)redis:/.test(name) ? REDIS_IMAGE : name.replace(/:dev$/, `:${TAG}`));

let cluster;
before(async () => {
  writeSecrets(join(OVERLAY, 'secrets'));
  await buildRedisImage();
  cluster = new Cluster({ overlay: OVERLAY, image });
  await cluster.start();
  await cluster.forward(3000, 'edge');
  await cluster.forward(9000, 'dev-idp');
});
after(() => cluster?.close());

/** Polls the profile while `does` runs and a moment longer; returns wrong responses and the longest outage. */
async function watch(does) {
  let isOver = false;
  const seen = { wrong: [], refusedMs: 0, signedOut: 0 };
  const asking = (async () => {
    let good = performance.now();
    while (!isOver) {
      const status = await person.me(stack).then((answer) => answer.status, (error) => error.code);
      if (status === 200) good = performance.now();
      else seen.wrong.push(status);
      if (status === 204 || status === 401) seen.signedOut += 1;
      seen.refusedMs = Math.max(seen.refusedMs, performance.now() - good);
      await pause(ASK_MS);
    }
  })();
  try {
    await does();
    await pause(20 * ASK_MS);
  } finally {
    isOver = true;
    await asking;
  }
  return seen;
}

test('every pod starts, is ready and lives by its own probes', async () => {
  for (const pod of cluster.pods) assert.ok(await pod.passes('livenessProbe'), `${pod.name}\n${await pod.logs()}`);
});

test('a person signs in through the pods and sees the pages', async () => {
  await person.signIn(stack);
  assert.equal((await person.me(stack)).json().email, ACCOUNTS[0].email);
  assert.equal((await person.navigate(`${stack.edgeUrl}/account`)).status, 200);
});

test('the operator lists and ends sessions with the identity of its pod', async () => {
  const [pod] = cluster.podsOf('operator');
  const { sub } = (await person.me(stack)).json();
  const tool = (...words) => podman('exec', pod.idOf(pod.containers[0]), '/session-svc', 'sessions', ...words, '--json');
  const listed = async () => JSON.parse(await tool('list', '--subject', sub)).sessions.length;
  const leaver = Object.assign(new Client(), { agent: person.agent });
  await leaver.signIn(stack);
  assert.equal(await listed(), 2);
  await tool('end', '--subject', sub, '--yes');
  assert.equal(await listed(), 0);
  await person.signIn(stack);
});

for (const name of ['edge', 'session-svc', 'web']) {
  test(`a rollout of ${name} refuses nothing, and every container ends by itself`, async () => {
    const seen = await watch(async () => {
      for (const pod of [...cluster.podsOf(name)]) assert.deepEqual(await cluster.replace(name, pod), [0], pod.name);
    });
    assert.deepEqual(seen.wrong, []);
    assert.equal((await person.navigate(`${stack.edgeUrl}/account`)).status, 200);
  });
}

test('kill -9 of a session service refuses no request', async () => {
  const seen = await watch(async () => {
    for (const pod of cluster.podsOf('session-svc')) {
      await pod.kill();
      await pod.ready();
      await pause(RECONNECTED_MS);
    }
  });
  assert.deepEqual(seen.wrong, []);
});

test('an eviction of the master of Redis ends no session and undoes no sign-out', async () => {
  const leaver = Object.assign(new Client(), { agent: person.agent });
  await leaver.signIn(stack);
  const [name, value] = leaver.sessionCookie(stack);
  assert.equal((await leaver.navigate(`${stack.edgeUrl}/api/auth/logout`)).status, 302);
  const role = (pod) => podman('exec', pod.idOf(pod.containers[0]), 'sh', '-c', '. /etc/redis/scripts/common.sh; role "$SELF"').catch(() => '');
  const master = await until(FOUND_MS, async () => {
    for (const pod of cluster.podsOf('redis')) if ((await role(pod)) === 'master') return pod;
    return undefined;
  }, () => 'Redis has no master');
  const seen = await watch(() => cluster.recreate('redis', master));
  assert.equal(seen.signedOut, 0);
  assert.ok(seen.refusedMs < REFUSED_MAX_MS, `refused for ${Math.round(seen.refusedMs)} ms: ${seen.wrong.join()}`);
  const again = await person.fetch(`${stack.edgeUrl}/api/auth/me`, { headers: { accept: 'application/json' } });
  assert.equal(again.status, 200);
  leaver.cookies(stack.edgeUrl).set(name, value);
  assert.equal((await leaver.me(stack)).status, 204);
});
