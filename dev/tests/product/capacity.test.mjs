// Whether the arithmetic of `make capacity` is right: what it says sessions take is what they take in a real Redis, and in a real cluster.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { storeBytes } from '../../../bench/capacity/bytes.mjs';
import { ASSUMED, CONSTANTS, values } from '../../../bench/capacity/constants.mjs';
import { capacity } from '../../../bench/capacity/model.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, until } from '../../lib/net.mjs';
import { startTopology } from '../../lib/redis-topology.mjs';
import { ROOT, binary } from '../../stack.mjs';

const execute = promisify(execFile);
const SESSIONS = 10_000;
const BOUND = 0.1;
const SEVERAL_MS = 60_000;
const BUILD_MS = 20 * 60_000;

const stops = [];
before(() => execute('cargo', ['build', '-p', 'session-svc', '--example', 'store_figures'], { cwd: ROOT, maxBuffer: 1e8, timeout: BUILD_MS }));
after(() => Promise.all(stops.map((stop) => stop())));

/** Bytes of Redis for each session, as it says itself, and of what is sealed. */
async function measured(url) {
  const { stdout } = await execute(binary('examples/store_figures', 'debug'), [url, String(SESSIONS), 'bytes'], { maxBuffer: 1e8 });
  const [, bytes, sealed] = [...stdout.matchAll(/(\d+) bytes a session, of (\d+) sealed/g)].at(-1).map(Number);
  return { bytes, sealed };
}

function compare({ bytes, sealed }, masters) {
  const constants = values(CONSTANTS);
  assert.ok(Math.abs(sealed / constants.sealedBytes - 1) < 0.02, `a session is sealed in ${sealed} bytes, the arithmetic begins with ${constants.sealedBytes}`);
  const { all, servers } = storeBytes({ sessions: SESSIONS, masters, ...constants });
  const predicted = (all - servers) / SESSIONS; // what a server takes without sessions was taken off the measured figure
  const share = predicted / bytes;
  assert.ok(Math.abs(share - 1) < BOUND, `predicted ${predicted.toFixed(0)} bytes, measured ${bytes}`);
}

test('a session takes in one Redis what is predicted', async () => {
  const port = await freePort();
  const redis = new Child('redis', 'redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']);
  stops.push(() => redis.stop('SIGKILL'));
  await until(SEVERAL_MS, () => redis.output.includes('Ready to accept connections'), () => redis.tail());
  compare(await measured(`redis://127.0.0.1:${port}`), 1);
});

test('a session takes in a cluster what is predicted', async () => {
  const cluster = await startTopology('cluster');
  stops.push(cluster.stop);
  compare(await measured(cluster.url), 3);
});

test('a million sessions take no more than 1,300 bytes each, and a hundred million no more than a third beyond that', () => {
  const sized = (sessions) => capacity({ sessions, requests: sessions / 200, constants: values(CONSTANTS), assumed: values(ASSUMED) });
  assert.ok(sized(1_000_000).perSession <= 1_300, `${sized(1_000_000).perSession} bytes each`);
  assert.ok(sized(100_000_000).perSession <= 1_734, `${sized(100_000_000).perSession} bytes each`);
});
