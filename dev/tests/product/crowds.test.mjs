// Crowds of connections at every port, under the memory limits of the shipped pods: the kernel never has to kill a program, and
// whoever is signed in is served again as soon as they have gone.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { application, DEPLOYMENT, routes, shippedLimits } from '../../flood.mjs';
import { shippedLimit } from '../../lib/cgroup.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, pause, until } from '../../lib/net.mjs';
import { ROOT, startStack } from '../../stack.mjs';
import { Client } from './client.mjs';
import { CROWDS } from './crowds.mjs';

const SECONDS = 4;
const ASK_MS = 100;
const SERVED_MS = 30_000; // far above what the edge waits for anybody
const ANSWER_MS = 5_000;
const SIGNED_OUT = [401, 403];

let [folder, upstream, stack, envoy, visitor] = [];
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vestibule-crowds-'));
  upstream = await application();
  envoy = await freePort();
  const edgeEnv = { ...shippedLimits(), EDGE_EXT_AUTHZ_LISTEN: `127.0.0.1:${envoy}` };
  stack = await startStack({ routes: routes(folder, upstream.url), edgeEnv, limits: { edge: shippedLimit(DEPLOYMENT), session: shippedLimit(join(ROOT, 'k8s/base/session-svc/deployment.yaml')) } });
  visitor = new Client();
  await visitor.navigate(`${stack.edgeUrl}/api/auth/login`);
  await visitor.navigate(await visitor.authorize(stack, { account: stack.accounts[0] }));
});
after(async () => {
  await stack?.stop();
  upstream?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** The status of what the visitor asks for; 0 when nobody answers. */
async function ask() {
  try {
    const late = pause(ANSWER_MS).then(() => ({ status: 0 }));
    return (await Promise.race([visitor.me(stack), late])).status;
  } catch {
    return 0;
  }
}

test('what listeners take follows from the limit of the control group, and the log says so', () => {
  const line = stack.logs('edge').split('\n').find((one) => one.includes('connections at once'));
  const said = (name) => new RegExp(`${name}"?[=:]"?([^ ,"]+)`).exec(line)?.[1];
  assert.equal(Number(said('memory_bytes')), shippedLimit(DEPLOYMENT), line);
  assert.match(said('memory_from'), /cgroup/);
  assert.equal(Number(said('connections')), 700, line);
});

for (const [kind, program] of Object.entries(CROWDS)) {
  test(`a crowd of ${kind}`, async () => {
    const [browsers, admin, session] = [stack.edgeUrl, stack.adminUrls.edge, stack.sessionUrls[0]].map((url) => new URL(url).port);
    const [pid, group] = [stack.pid(program), stack.group(program)];
    const crowd = new Child('crowd', process.execPath, [join(ROOT, 'dev/tests/product/crowds.mjs'), kind, String(SECONDS), browsers, admin, String(envoy), session]);
    const said = [];
    try {
      while (!crowd.ended) {
        said.push(await ask());
        await pause(ASK_MS);
      }
    } finally {
      await crowd.stop('SIGKILL');
    }
    assert.equal(group.processes(), String(pid), `${program} was killed: ${stack.logs(program).slice(-500)}`);
    assert.ok(!said.some((status) => SIGNED_OUT.includes(status)), 'nobody is signed out');
    await until(SERVED_MS, async () => await ask() === 200, () => 'the visitor is served no more');
  });
}
