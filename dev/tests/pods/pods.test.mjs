// The manifests as real pods: a browser signs in through them, policies hold, and what the short form of `make pods` does to them is noticed
// by nobody whom dev/lib/pods/contract.mjs does not name. Where pods cannot run, this fails and says what is missing.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';

import { EVENTS, SHORT } from '../../lib/pods/events.mjs';
import { images } from '../../lib/pods/images.mjs';
import { measure } from '../../lib/pods/measure.mjs';
import { warnings } from '../../lib/pods/report.mjs';
import { browse, openWorld } from '../../lib/pods/world.mjs';

const TRIES = 3;
const STALLED_MS = 450; // the product's shortest deadline
const REACHED_S = '2'; // a policy drops without a word: who has not connected by then never will
let world;

before(async () => {
  const tag = await images(process.env.IMAGE_TAG ? `tag:${process.env.IMAGE_TAG}` : 'debug', () => {});
  world = await openWorld({ tag, rate: 100, seconds: 6, say: () => {} });
});
after(() => world?.close());

/** Whether a program in this pod would get a connection to that port of another. */
const reaches = (from, to, port) =>
  spawnSync('nsenter', ['--target', String(from.netPid), '--net', 'timeout', REACHED_S, 'bash', '-c', `exec 3<>/dev/tcp/${to.ip}/${port}`], { stdio: 'ignore' }).status === 0;

test('a browser signs in through the pods', async () => {
  const { url, text, problems } = await browse(world);
  assert.equal(url, `${world.edgeUrl}/account`);
  assert.ok(text.includes(world.accounts[0].name), text);
  assert.deepEqual(problems, []);
});

test('a pod reaches what a policy names, and nothing else', () => {
  const [edge, session, web, redis] = ['edge', 'session-svc', 'web', 'redis'].map((name) => world.cluster.podsOf(name)[0]);
  const open = [[edge, session, 50051], [edge, web, 8080], [session, redis, 6379]];
  const closed = [[edge, redis, 6379], [edge, session, 9301], [web, edge, 3000], [web, session, 50051], [web, redis, 6379], [session, edge, 3000], [session, web, 8080], [redis, session, 50051]];
  const said = (pairs) => pairs.map(([from, to, port]) => `${from.name} to ${to.name}:${port} ${reaches(from, to, port) ? 'open' : 'closed'}`);
  assert.deepEqual(said(open).filter((line) => line.endsWith('closed')), []);
  assert.deepEqual(said(closed).filter((line) => line.endsWith('open')), []);
});

for (const name of SHORT) {
  test(name, async (t) => {
    const event = EVENTS.find((one) => one.name === name);
    for (let tries = 1; ; tries += 1) {
      const result = await measure(event, world);
      t.diagnostic(`${result.sent} requests, ${result.failed} failed, longest refusal ${result.longestRefusalMs} ms, slowest ${result.slowestMs} ms; the machine stood still for ${result.stalledMs} ms`);
      if (result.complaints.length === 0) return;
      const said = `${result.complaints.join('; ')}; what failed, and when it did first and last: ${JSON.stringify(result.why)}; slowest ${result.slowestMs} ms, the machine stood still for ${result.stalledMs} ms`;
      // a machine that stands still keeps everybody's deadlines from being kept, and is measured then
      if (result.stalledMs < STALLED_MS || tries === TRIES) assert.fail(`${said}\n${await warnings(world.cluster, result.began)}`);
      t.diagnostic(`once more: ${said}`);
    }
  });
}
